import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  afterTextValue,
  closingQuote,
  onOneLine,
  textMember,
  textMembers,
} from "../../src/text/json_walk.ts";
import { propertyOptions } from "../property.ts";

/** What the members of a text say, read one by one. */
function entriesOf(json: string, open = 0): [unknown, unknown][] {
  return Array.from(
    textMembers(json, open),
    ({ key, start, end }) => [JSON.parse(`"${key}"`), JSON.parse(json.slice(start, end))],
  );
}

describe("textMembers", () => {
  it("finds what a parser finds, whatever the values are, and however the text is indented", () => {
    const text = fc.oneof(fc.string(), fc.constantFrom('"', "\\", '\\"', "}", "]", '{"a":', ","));
    const value = fc.oneof(fc.jsonValue({ maxDepth: 3 }), text, fc.dictionary(text, text), fc.array(text));
    fc.assert(
      fc.property(fc.dictionary(text, value), fc.constantFrom(undefined, 1, "\t"), (object, indent) => {
        const json = JSON.stringify(object, undefined, indent);
        // Texts are compared: V8's JSON.parse may take two keys of one
        // length for each other where both have escapes.
        const expected = Object.entries(object).map((
          [key, value],
        ) => [JSON.stringify(key), JSON.stringify(value)]);
        for (const [text, open] of [[json, 0], [`[7, ${json}, {"a":1}]`, 4]] as const) {
          const found = Array.from(textMembers(text, open), ({ key, start, end }) => {
            const value = text.slice(start, end);
            return [`"${key}"`, value];
          });
          assert.deepEqual(found.map(([key]) => key), expected.map(([key]) => key));
          if (indent === undefined) assert.deepEqual(found, expected);
        }
      }),
      propertyOptions(2_000),
    );
  });

  it("gives each member of a key that is written twice", () => {
    assert.deepEqual(entriesOf('{"a":1,"a":2}'), [["a", 1], ["a", 2]]);
    assert.equal(textMember('{"a":1,"a":2}', 0, "a")?.start, 5);
    assert.equal(textMember('{"b":1}', 0, "a"), undefined);
  });

  it("ends where a text that is cut short ends, and has nothing of what is no object", () => {
    const json = '{"a":{"b":["}",1]},"c":"\\"","d":-1.5e3 , "e":null}';
    const whole = entriesOf(json);
    for (let end = 0; end < json.length; end++) {
      const found = Array.from(textMembers(json.slice(0, end)), ({ key }) => key);
      assert.deepEqual(found, whole.slice(0, found.length).map(([key]) => key));
    }
    for (
      const other of [
        ...["", "[]", '"{"', "null", "{", '{"a"', '{"a":', "{a:1}", '{"a" 1}'],
        ...['["a":1]', '"a":1', ' "a":1}', '{a":1}', '{"a";1}', '{"a', '{"a\\":1}'],
      ]
    ) {
      assert.deepEqual(Array.from(textMembers(other)), [], other);
    }
  });
});

describe("onOneLine", () => {
  it("has no line break of any kind, and is the same JSON", () => {
    const texts: [json: string, line: string][] = [
      ['{"a":1}', '{"a":1}'],
      ['{\n  "a": 1\n}', '{   "a": 1 }'],
      ['{\r"a":1}', '{ "a":1}'],
      ['{\r\n"a":1}', '{  "a":1}'],
      ['{"a":"\u2028"}', '{"a":"\\u2028"}'],
      ['{"a":"\u2029"}', '{"a":"\\u2029"}'],
      ['{\n"a":"\u2028\u2029\u2028"}', '{ "a":"\\u2028\\u2029\\u2028"}'],
    ];
    for (const [json, line] of texts) {
      assert.equal(onOneLine(json), line);
      assert.deepEqual(JSON.parse(line), JSON.parse(json));
    }
  });
});

describe("closingQuote", () => {
  it("is the first quote that is not escaped, behind any number of backslashes", () => {
    for (let backslashes = 0; backslashes < 6; backslashes++) {
      const text = `x"a${"\\".repeat(backslashes)}"b"`;
      const isEscaped = backslashes % 2 === 1;
      assert.equal(closingQuote(text, 1), isEscaped ? text.length - 1 : text.length - 3, text);
      assert.equal(closingQuote(text.slice(0, -2), 1), isEscaped ? -1 : text.length - 3);
    }
    assert.equal(closingQuote('""', 0), 1);
    for (const text of ['"', '"a', '"\\', '"\\\\', '"\\"']) assert.equal(closingQuote(text, 0), -1, text);
  });
});

describe("afterTextValue", () => {
  it("is behind a value of any kind, and -1 where it does not end", () => {
    for (
      const value of ['"a"', '""', "1", "-1.5e3", "true", "null", "{}", "[]", '{"a":[{"b":"}\\"]"}]}', "[[]]"]
    ) {
      for (const [before, after] of [["", ""], ["x", ","], ["[", "]"], ["x:", "}"], ["", " "]]) {
        const text = before + value + after;
        assert.equal(afterTextValue(text, before.length), before.length + value.length, text);
      }
    }
    for (const text of ["", ",", '"a', "[", "{", '{"a"', '["a', "[[]", '["]']) {
      assert.equal(afterTextValue(text, 0), -1, text);
    }
  });
});
