import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { parse } from "yaml";
import { loadYaml } from "../../src/hono/answers/yaml.ts";
import { compareKeys, yamlNumber } from "../../src/hono/answers/yaml_scalar.ts";
import { propertyOptions } from "../property.ts";
// What kube-apiserver v1.36.3 answered for these values, in `spec.v` of a custom resource.
import recorded from "./recorded/yaml.json" with { type: "json" };

const yaml = await loadYaml();

// kube-apiserver writes a space for it.
const NEXT_LINE = "\u0085";

function yamlOf(value: unknown): string {
  return yaml.document(JSON.stringify({ spec: { v: [value] } })).slice("spec:\n  v:\n".length);
}

function compareAll(
  recordings: readonly (readonly [unknown, string])[],
  written: (value: unknown) => string,
): void {
  assert.ok(recordings.length > 10);
  for (const [value, expected] of recordings) {
    if (typeof value === "string" && value.includes(NEXT_LINE)) continue;
    assert.equal(written(value), expected, JSON.stringify(value));
  }
}

type Recordings = [unknown, string][];

describe("loadYaml", () => {
  it("writes strings as kube-apiserver writes them", () => {
    compareAll(recorded.strings as Recordings, yamlOf);
    compareAll(recorded.mapValues as Recordings, (key) => yamlOf({ key }));
  });

  it("writes keys as kube-apiserver writes them", () => {
    compareAll(recorded.keys as Recordings, (key) => yamlOf({ [key as string]: 1 }));
  });

  it("writes mappings and lists as kube-apiserver writes them", () => {
    compareAll(recorded.shapes as Recordings, yamlOf);
  });

  it("writes numbers as kube-apiserver writes them, with all digits of integers", () => {
    compareAll(recorded.numbers as Recordings, (text) => {
      // The server holds longer ones as floats.
      const isExact = /^-?[0-9]{16,19}$/.test(text as string) && text !== "9223372036854775808";
      const json = isExact ? text : JSON.stringify(JSON.parse(text as string));
      return yaml.document(`{"spec":{"v":[${json}]}}`).slice("spec:\n  v:\n".length);
    });
    assert.equal(yamlNumber(-0), "0");
  });

  it("escapes U+0085, so that a parser reads the same string", () => {
    assert.equal(yamlOf("a\u0085b\u2028c\u2029"), '  - "a\\Nb\\Lc\\P"\n');
  });

  it("writes keys in the order of kube-apiserver", () => {
    const [, text] = recorded.sorted as [string[], string];
    const keys = Array.from(
      text.matchAll(/^ {2}("(?:[^"\\]|\\.)*"|'[^']*'|[^?: \n](?:[^:\n]|:(?! ))*): 0$/gm),
    )
      .map(([, key]) => parse(key.replace(/"\\U([0-9A-F]{8})"/, '"\\U$1"')))
      .map(String)
      // Which of the others comes first depends on what they are sorted with.
      .filter((key) => !/^0|^1[a-z]/.test(key));
    assert.ok(keys.length > 45);
    assert.deepEqual([...keys].reverse().sort(compareKeys), keys);
  });

  it("writes levels below the hundredth on one line: their text grows in proportion", () => {
    const nested = (depth: number, inner: string) =>
      `${'{"a":['.repeat(depth / 2)}${inner}${"]}".repeat(depth / 2)}`;
    const hostile =
      '{"<<":"\\u0085\\ufeff\\u2028\\u0000: #","b":9007199254740993,"c":[null,true,1.5e-7,{}],"":"x"}';
    const text = yaml.document(nested(120, hostile));
    let value = parse(text, { version: "1.1", merge: false, intAsBigInt: true });
    for (let i = 0; i < 60; i++) value = value.a[0];
    assert.deepEqual(value, {
      "<<": "\u0085\uFEFF\u2028\0: #",
      b: 9007199254740993n,
      c: [null, true, 1.5e-7, {}],
      "": "x",
    });
    for (const depth of [1_000, 9_000]) {
      assert.ok(yaml.document(nested(depth, "1")).length < 20 * depth + 20_000);
      const digits = depth < 5_000 ? /12345678901234567890/ : /1\.?2345678901234567/;
      assert.match(yaml.item(nested(depth, "12345678901234567890")), digits);
    }
  });

  it("writes what is read back as the same value", () => {
    const value = fc.jsonValue({ maxDepth: 4 });
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({
        unit: fc.constantFrom(..."ab:#-? \n\t'\"\\|>&*!%@{}[],~0123.eE_+=xoTZ\u0085\u2028\u00a0\ufeff😀"),
      }),
      fc.array(fc.constantFrom("word", "a:", "#", "it's", '"q"', "😀", "\t", ""), { maxLength: 60 }).map((
        words,
      ) => words.join(" ")),
    );
    const object = fc.dictionary(text, fc.oneof(text, value, fc.array(text), fc.dictionary(text, text)));
    const property = fc.property(object, (given) => {
      // U+2028 and U+2029 are line breaks in YAML 1.1, but not for this parser.
      const json = JSON.stringify(given).replace(/[\u2028\u2029]/g, "");
      const plain = JSON.parse(json);
      assert.deepEqual(
        parse(yaml.document(json), { maxAliasCount: 0, logLevel: "error" }),
        plain,
      );
    });
    fc.assert(property, propertyOptions(500));
  });
});
