import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fieldIndex } from "@listwatch/cache";
import { seededRandom } from "../../src/testing/seeded_random.ts";
import { TextFields } from "../../src/text/field_tree.ts";
import { type ObjectText, ObjectTextReader } from "../../src/text/object_text_reader.ts";
import { propertyOptions } from "../property.ts";

const PATHS = [
  "a",
  "a.b",
  "a.b.c",
  "a[].b",
  "a.b[]",
  'a["__proto__"].b',
  'b["k\\"1"]',
  "b[].c[]",
  'c["é"]',
  "c.metadata.a",
] as const;

const NAMES = [..."aaaaaabbbbcc", "metadata", "__proto__", 'k"1', "é", "", "length", "0", "\ud800"];

/** Random JSON texts, of which many have values at the paths. */
class RandomText {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  below(n: number): number {
    return Math.floor(this.#random() * n);
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)];
  }

  object(depth = 0): string {
    const members = Array.from({ length: this.below(depth === 0 ? 8 : 5) }, () => {
      const name = this.#string(this.one(NAMES));
      return `${this.#space()}${name}${this.#space()}:${this.#space()}${
        this.value(depth + 1)
      }${this.#space()}`;
    });
    return `{${members.join(",") || this.#space()}}`;
  }

  value(depth: number): string {
    const kind = this.below(depth > 4 ? 6 : 10);
    if (kind < 3) {
      return this.#string(
        this.one(["x", "y", "", "a", "]", "}", '"', "\\", "\\\\", "é", "😀", "\udc00", "\n"]),
      );
    }
    if (kind === 3) {
      return this.one(["0", "-0", "1", "1.0", "1e3", "1E-7", "-1.5e+2", "9007199254740993", "1e400", "0.1"]);
    }
    if (kind < 6) return this.one(["true", "false", "null"]);
    if (kind < 8) return this.object(depth);
    const elements = Array.from(
      { length: this.below(4) },
      () => `${this.#space()}${this.value(depth + 1)}${this.#space()}`,
    );
    return `[${elements.join(",") || this.#space()}]`;
  }

  #space(): string {
    return this.below(8) === 0 ? this.one([" ", "\n", "\t\r", "  "]) : "";
  }

  #string(value: string): string {
    if (this.below(12) > 0) return JSON.stringify(value);
    // Raw, as far as JSON allows it, or all of it escaped.
    if (this.below(2) === 0 && !/[\\"\n]/.test(value)) return `"${value}"`;
    const escapes = value.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    return `"${escapes.join("")}"`;
  }
}

function newReader(): ObjectTextReader {
  const fields = new TextFields();
  for (const path of PATHS) fields.add(path);
  return new ObjectTextReader(fields);
}

const indexFuncs = PATHS.map((path) => fieldIndex<unknown>(path));

const valuesOf = (object: unknown) => indexFuncs.map((indexFunc) => indexFunc(object));

/** What a function returns, or the name of what it throws. */
function outcome(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return (error as Error).name;
  }
}

describe("ObjectTextReader.fieldsOf", () => {
  it("reads from 100,000 random texts what the index functions give for the parsed objects", () => {
    const { numRuns, seed = Date.now() } = propertyOptions(100_000);
    const random = new RandomText(seed);
    const reader = newReader();
    let values = 0;
    for (let i = 0; i < numRuns; i++) {
      const text = random.below(20) === 0 ? ` ${random.value(0)}\n` : random.object();
      const expected = valuesOf(JSON.parse(text));
      const actual = reader.fieldsOf(text);
      for (const each of expected) values += each.length;
      // Most are equal, and compared faster so.
      if (JSON.stringify(actual) === JSON.stringify(expected)) continue;
      assert.deepEqual(actual, expected, `seed ${seed}: ${text}`);
    }
    assert.ok(values > numRuns / 4, `${values} values in ${numRuns} texts`);
  });

  it("refuses an object that ends early, at every character, and text behind one", () => {
    const random = new RandomText(7);
    const reader = newReader();
    for (let i = 0; i < 300; i++) {
      const text = random.object().trim();
      for (let end = 0; end < text.length; end++) {
        assert.throws(() => reader.fieldsOf(text.slice(0, end)), SyntaxError, text.slice(0, end));
      }
      for (const more of ["}", '"', "1", ",", "{}"]) {
        assert.throws(() => reader.fieldsOf(text + more), SyntaxError);
      }
    }
  });

  it("reads what JSON.parse reads of texts with a fault, and throws nothing but a SyntaxError", () => {
    const random = new RandomText(11);
    const reader = newReader();
    const faults = ['"', "{", "}", "[", "]", ",", ":", "\\", "1", " ", "t", "\u0001"];
    for (let i = 0; i < 30_000; i++) {
      const text = random.object();
      const at = random.below(text.length);
      const faulty = text.slice(0, at) + random.one(faults) + text.slice(at + random.below(2));
      const expected = outcome(() => valuesOf(JSON.parse(faulty)));
      const actual = outcome(() => reader.fieldsOf(faulty));
      if (expected !== "SyntaxError") assert.deepEqual(actual, expected, faulty);
      else assert.ok(actual === "SyntaxError" || Array.isArray(actual), faulty);
    }
  });

  it("takes the last of fields that occur twice, whatever it is", () => {
    const reader = newReader();
    assert.deepEqual(reader.fieldsOf('{"a":{"b":"x"},"a":{"b":"y"}}')[1], ["y"]);
    assert.deepEqual(reader.fieldsOf('{"a":{"b":"x"},"a":1}').slice(0, 2), [["1"], []]);
    assert.deepEqual(reader.fieldsOf('{"a":"x","\\u0061":null}')[0], []);
  });

  it("reads a field no more that was removed, and the others as before", () => {
    const fields = new TextFields();
    const reader = new ObjectTextReader(fields);
    const [a, , kind] = ["a", "b", "kind"].map((path) => fields.add(path));
    const text = '{"metadata":{"name":"web-1"},"a":"x","b":"y"}';
    const read = () => (reader.read(text, { apiVersion: "v1", kind: "Pod" }) as ObjectText).fields;
    assert.deepEqual(read(), [["x"], ["y"], ["Pod"]]);
    fields.remove(a);
    fields.remove(kind);
    assert.deepEqual(read(), [[], ["y"], []]);
  });

  it("writes numbers as String does, also those that JavaScript rounds", () => {
    const reader = newReader();
    const read = (number: string) => reader.fieldsOf(`{"a":${number}}`)[0];
    assert.deepEqual(["1.0", "1e3", "-0", "9007199254740993", "1e400"].map(read), [
      ["1"],
      ["1000"],
      ["0"],
      ["9007199254740992"],
      ["Infinity"],
    ]);
  });

  it("reads texts of any length, before and after one another", () => {
    const reader = newReader();
    for (const length of [10, 100_000, 10, 8_190, 8_191, 8_192, 8_193, 300_000, 10]) {
      const text = JSON.stringify({ c: ["x".repeat(length), "é"], a: { b: `${length}` } });
      assert.deepEqual(reader.fieldsOf(text)[1], [`${length}`]);
    }
  });

  it("reads many values of one field, each once, in the time of one walk", () => {
    const reader = newReader();
    const values = Array.from({ length: 200_000 }, (_, i) => `${i % 150_000}`);
    assert.equal(reader.fieldsOf(JSON.stringify({ a: { b: values } }))[4].length, 150_000);
  });

  it("reads a depth that the parser reads", () => {
    const deep = "[".repeat(5_000) + "]".repeat(5_000);
    assert.deepEqual(newReader().fieldsOf(`{"c":${deep},"a":"x"}`)[0], ["x"]);
  });
});
