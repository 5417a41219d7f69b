import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { parse } from "yaml";
import { loadYaml } from "../../../src/hono/send/yaml.ts";
import { anyCharacter, propertyOptions } from "../../property.ts";
// What kube-apiserver v1.36.3 answered for these values, in `spec.v` of a custom resource.
import recorded from "../recorded/yaml.json" with { type: "json" };

const yaml = await loadYaml();

const START = "spec:\n  v:\n";

function documentOf(value: unknown): string {
  return yaml.document(JSON.stringify({ spec: { v: [value] } }));
}

// Ends of lines in YAML 1.1, but not for the parser here; kube-apiserver writes a space for the first.
const LINE_ENDS = /[\u0085\u2028\u2029]/;

/** Whether only Go reads back what kube-apiserver wrote: it takes numbers that are too large for strings. */
function isOfGoOnly(value: unknown): boolean {
  const json = JSON.stringify(value);
  return LINE_ENDS.test(json) || /e\+?(309|400|999)/.test(json);
}

// kubectl reads YAML 1.1, others read YAML 1.2.
const READERS = [{ version: "1.1", merge: true }, { version: "1.2" }] as const;

const STRINGS = recorded.strings as [unknown, string][];
const MAP_VALUES = (recorded.mapValues as [unknown, string][]).map(([key, text]) => [{ key }, text] as const);
const KEYS = (recorded.keys as [string, string][]).map(([key, text]) => [{ [key]: 1 }, text] as const);

describe("loadYaml", () => {
  it("writes the values that kube-apiserver writes", () => {
    const all = [...STRINGS, ...MAP_VALUES, ...KEYS, ...recorded.shapes as [unknown, string][]];
    assert.ok(all.length > 900);
    for (const [value, expected] of all) {
      const text = documentOf(value);
      if (!isOfGoOnly(value)) assert.deepEqual(parse(text), parse(START + expected), text);
      for (const reader of READERS) {
        const read = parse(text, { ...reader, logLevel: "error" });
        assert.deepEqual(read, { spec: { v: [value] } }, text);
      }
    }
  });

  it("quotes the strings that kube-apiserver quotes as they would be something else", () => {
    const isQuoted = (text: string) => /^ {2}- (key: )?["'|]/.test(text);
    for (const [value, expected] of [...STRINGS, ...MAP_VALUES, ...KEYS]) {
      const text = documentOf(value).slice(START.length);
      // Tabs and characters beyond 16 bits are permitted in plain text.
      const isEscape = /\\t|\\U/.test(expected);
      if (isQuoted(expected) && !isEscape) assert.ok(isQuoted(text), text);
    }
  });

  it("writes the numbers that kube-apiserver writes, with all digits of integers", () => {
    for (const [text, expected] of recorded.numbers as [string, string][]) {
      const written = yaml.document(`{"spec":{"v":[${text}]}}`);
      const [read, same] = [written, START + expected].map((each) =>
        parse(each, { version: "1.1" }).spec.v[0]
      );
      assert.ok(read === same, `${read}, and not ${same}`);
      if (/^-?[0-9]{16,}$/.test(text)) assert.ok(written.endsWith(`- ${text}\n`), written);
    }
  });

  it("escapes what ends lines in YAML 1.1, so that each parser reads the same string", () => {
    assert.ok(documentOf("a\u0085b\u2028c\u2029").endsWith('- "a\\u0085b\\u2028c\\u2029"\n'));
    assert.ok(documentOf({ "a\u2028": 1 }).endsWith('- "a\\u2028": 1\n'));
  });

  it("writes keys in their order", () => {
    assert.equal(yaml.document('{"b":1,"a":{"z":1,"y":2},"10":1}'), '"10": 1\na:\n  "y": 2\n  z: 1\nb: 1\n');
  });

  it("writes an object of more than a hundred levels on one line: its text grows in proportion", () => {
    const nested = (depth: number, inner: string) =>
      `${'{"a":['.repeat(depth / 2)}${inner}${"]}".repeat(depth / 2)}`;
    const hostile =
      `{"<<":"\\u0085\u0085\uFEFF\u2028\\u0000: #",\n"b":9007199254740993,"c":[null,1.5e-7,{}],"":"x"}`;
    const text = yaml.document(nested(120, hostile));
    let value = parse(text, { version: "1.1", merge: false, intAsBigInt: true });
    for (let i = 0; i < 60; i++) value = value.a[0];
    assert.deepEqual(value, {
      "<<": "\u0085\u0085\uFEFF\u2028\0: #",
      b: 9007199254740993n,
      c: [null, 1.5e-7, {}],
      "": "x",
    });
    for (const depth of [1_000, 9_000]) {
      assert.ok(yaml.document(nested(depth, "1")).length < 20 * depth + 20_000);
      assert.match(yaml.item(nested(depth, "12345678901234567890")), /^- .*12345678901234567890.*\n$/);
    }
  });

  it("writes lines of nothing but blanks so that no reader drops the blanks", () => {
    for (const text of [" \n", "  \n \n", "\n \n", " \n\n", "\n", " "]) {
      const value = { a: text, b: { c: text }, d: [text] };
      for (const reader of READERS) {
        assert.deepEqual(
          parse(yaml.document(JSON.stringify(value)), { ...reader, logLevel: "error" }),
          value,
        );
      }
    }
  });

  it("writes what is read back as the same value", () => {
    const value = fc.jsonValue({ maxDepth: 4 });
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.string({
        unit: fc.constantFrom(..."ab:#-? \n\t'\"\\|>&*!%@{}[],~0123.eE_+=<xoTZ\u0085\u2028\u00a0\ufeff😀"),
      }),
      fc.array(fc.constantFrom("word", "a:", "#", "it's", '"q"', "😀", "\t", ""), { maxLength: 60 }).map((
        words,
      ) => words.join(" ")),
    );
    const object = fc.dictionary(text, fc.oneof(text, value, fc.array(text), fc.dictionary(text, text)));
    const property = fc.property(object, (given) => {
      const json = JSON.stringify(given);
      for (const reader of READERS) {
        const read = parse(yaml.document(json), { ...reader, maxAliasCount: 0, logLevel: "error" });
        assert.deepEqual(read, JSON.parse(json));
      }
    });
    fc.assert(property, propertyOptions(200));
  });
});
