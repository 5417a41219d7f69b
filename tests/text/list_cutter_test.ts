import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ItemTooLargeError, ListCutter } from "../../src/text/list_cutter.ts";
import { ObjectParser } from "../../src/text/object_reader.ts";
import { ObjectText, ObjectTextReader } from "../../src/text/object_text_reader.ts";
import { anyCharacter, propertyOptions } from "../property.ts";

const texts = new ObjectTextReader();
const parser = new ObjectParser();
const TYPE = { apiVersion: "v1", kind: "Pod" };

interface CutOptions {
  readonly splits?: readonly number[];
  readonly maxItemBytes?: number;
  /** Whether the items are parsed, and not read as text. */
  readonly parses?: boolean;
}

/** The items as they were read, and the list without them. */
function cut(list: string | Uint8Array, options: CutOptions = {}) {
  const { splits = [], maxItemBytes = 1e9, parses = false } = options;
  const bytes = typeof list === "string" ? new TextEncoder().encode(list) : list;
  const items: unknown[] = [];
  const prefixes: string[] = [];
  const reader = parses ? parser.items(() => undefined) : texts.items(() => TYPE);
  const cutter = new ListCutter(reader, {
    maxItemBytes,
    onItems: (prefix) => prefixes.push(prefix),
    onItem: (item) => items.push(item instanceof ObjectText ? JSON.parse(item.text) : item),
  });
  const ends = [...new Set(splits.map((at) => at % (bytes.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...ends, bytes.length]) {
    cutter.push(bytes.subarray(from, to));
    from = to;
  }
  return { items, envelope: cutter.envelope, prefixes };
}

function typed(item: unknown): unknown {
  const isUntyped = typeof item === "object" && item !== null && !Array.isArray(item) && "metadata" in item &&
    !("kind" in item) && !("apiVersion" in item);
  return isUntyped ? { ...TYPE, ...item } : item;
}

describe("ListCutter", () => {
  it("hands out the items with their type, and keeps what is around them", () => {
    const { items, envelope, prefixes } = cut(
      '{"a":[[1]],"items" : [ {"metadata":{"name":"ü"}} ,\n{"b":1}],"c":["]"]}',
    );
    assert.deepEqual(prefixes, ['{"a":[[1]],']);
    assert.deepEqual(items, [{ ...TYPE, metadata: { name: "ü" } }, { b: 1 }]);
    assert.deepEqual(JSON.parse(envelope), { a: [[1]], items: [], c: ["]"] });
  });

  it("takes items that are no objects", () => {
    assert.deepEqual(cut('{"items":[1, "a,]\\"" ,null,[[]],-2.5e3,true]}').items, [
      1,
      'a,]"',
      null,
      [[]],
      -2.5e3,
      true,
    ]);
  });

  it("is not misled by items elsewhere", () => {
    const text = '{"metadata":{"items":[1]},"x":"items","y":["items",[2]],"items":[{"items":[3]}]}';
    assert.deepEqual(cut(text).items, [{ items: [3] }]);
  });

  it("knows the key of the items however it is written, and no other for it", () => {
    const text = '{"k":"v", "it\\u0065ms" : [{"a":1},2]}';
    for (let at = 0; at <= text.length; at++) {
      const { items, envelope, prefixes } = cut(text, { splits: [at] });
      assert.deepEqual(items, [{ a: 1 }, 2]);
      assert.deepEqual(JSON.parse(envelope), { k: "v", items: [] });
      assert.deepEqual(prefixes, ['{"k":"v", ']);
    }
    for (const key of ["it\\\\u0065ms", "\\titems", "items\\u0000", "it\\u0065m"]) {
      assert.deepEqual(cut(`{"${key}":[1]}`).items, [], key);
    }
  });

  it("hands out the first of two arrays of items only, and leaves the other one to the envelope's parser", () => {
    const { items, envelope } = cut('{"items":[1],"items":[2]}');
    assert.deepEqual(items, [1]);
    assert.equal(envelope, '{"items":[],"items":[2]}');
  });

  it("finds the end of an item that was split between a backslash and what it escapes", () => {
    const text = '{"items":["\\"",{"a":"\\"}"},{"b":"\\\\"}]}';
    for (let at = 0; at <= text.length; at++) {
      assert.deepEqual(cut(text, { splits: [at] }).items, JSON.parse(text).items, text.slice(0, at));
    }
  });

  it("leaves items that are no array in the envelope", () => {
    for (const text of ['{"items":null}', '{"items":{"a":[1]}}', "[1]", '"items"']) {
      assert.deepEqual(cut(text), { items: [], envelope: text, prefixes: [] });
    }
  });

  it("refuses what is between the items and is no comma", () => {
    for (
      const text of ['{"items":[,1]}', '{"items":[1,]}', '{"items":[1 2]}', '{"items":[{}{}]}', '{"items":[}']
    ) {
      assert.throws(() => cut(text), SyntaxError, text);
    }
  });

  it("gives back every list as it was written, wherever its bytes are split", () => {
    const item = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.record({
        metadata: fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue()),
        spec: fc.jsonValue(),
      }),
    );
    const list = fc.record({
      before: fc.jsonValue(),
      items: fc.array(item, { maxLength: 6 }),
      after: fc.jsonValue(),
    });
    const splits = fc.array(fc.nat(), { maxLength: 12 });
    fc.assert(
      fc.property(
        list,
        splits,
        fc.constantFrom(undefined, 1),
        fc.boolean(),
        (list, splits, indent, parses) => {
          const text = JSON.stringify(list, undefined, indent).toWellFormed();
          const { items, envelope } = cut(text, { splits, parses });
          const parsed = JSON.parse(text);
          assert.deepEqual(items, parses ? parsed.items : parsed.items.map(typed));
          assert.deepEqual(JSON.parse(envelope), { ...parsed, items: [] });
        },
      ),
      propertyOptions(1_500),
    );
  });

  it("finds the ends of items that are written alike, whatever is in them", () => {
    // What all items begin with comes inside of them too: in arrays, in texts, and at their very end.
    const inner = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.string(),
        fc.constantFrom('},{"metadata":{', "}]", '{"metadata":{}}'),
        tie("item"),
      ),
      item: fc.record({
        metadata: fc.dictionary(fc.string(), tie("value"), { maxKeys: 3 }),
        list: fc.array(tie("value"), { maxLength: 3 }),
      }),
    }));
    fc.assert(
      fc.property(
        fc.array(inner.item, { maxLength: 30 }),
        fc.array(fc.nat(), { maxLength: 5 }),
        fc.constantFrom({}, { apiVersion: "example.com/v1", kind: "Widget" }),
        (items, splits, type) => {
          const written = items.map((item) => JSON.parse(JSON.stringify({ ...type, ...(item as object) })));
          const { items: read } = cut(`{"items":${JSON.stringify(written)}}`, { splits, parses: true });
          assert.deepEqual(read, written);
        },
      ),
      propertyOptions(1_000),
    );
  });

  it("accepts just what a JSON parser accepts, whatever bytes come, and gives the same however they are split", () => {
    const tokens = [
      ..."{}[]:, ",
      '"items"',
      '"metadata"',
      '"a"',
      "1",
      "-",
      "null",
      "tru",
      "\\",
      '"',
      "é",
      "\n",
      "\0",
    ];
    const token = fc.constantFrom(
      ...tokens.map((text) => new TextEncoder().encode(text)),
      Uint8Array.of(0xc3),
    );
    const join = (parts: readonly Uint8Array[]) => Uint8Array.from(parts.flatMap((part) => [...part]));
    const around = (inner: Uint8Array) =>
      join([new TextEncoder().encode('{"items":['), inner, new TextEncoder().encode("]}")]);
    const bytes = fc.oneof(
      fc.array(token, { maxLength: 30 }).map(join),
      fc.array(token, { maxLength: 12 }).map((parts) => around(join(parts))),
    );
    const outcome = (bytes: Uint8Array, splits: readonly number[], parses: boolean) => {
      try {
        const { items, envelope } = cut(bytes, { splits, parses });
        const parsed = JSON.parse(envelope);
        return { value: items.length === 0 ? parsed : { ...parsed, items } };
      } catch (error) {
        assert.ok(error instanceof SyntaxError);
        return { refused: true };
      }
    };
    fc.assert(
      fc.property(bytes, fc.array(fc.nat(), { maxLength: 8 }), fc.boolean(), (bytes, splits, parses) => {
        const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
        let expected: unknown;
        try {
          const value = JSON.parse(text);
          const isList = Array.isArray(value?.items);
          expected = { value: isList && !parses ? { ...value, items: value.items.map(typed) } : value };
        } catch {
          expected = { refused: true };
        }
        const twice = (text.match(/"items"/g)?.length ?? 0) > 1;
        if (!twice) assert.deepEqual(outcome(bytes, splits, parses), expected);
        assert.deepEqual(outcome(bytes, splits, parses), outcome(bytes, [], parses));
      }),
      propertyOptions(4_000),
    );
  });

  it("takes time in proportion to an item that comes in many pieces, and any depth", () => {
    const item = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const text = `{"items":[${item},{"a":"${"\\\\".repeat(10_000)}"}]}`;
    const { items } = cut(text, { splits: Array.from(text, (_, i) => i) });
    assert.equal(items.length, 2);
    assert.deepEqual(items[1], { a: "\\".repeat(10_000) });
  });

  it("refuses an item over the limit, whole or not", () => {
    const text = `{"items":[{"a":1},{"a":"${"x".repeat(50)}"}]}`;
    for (const splits of [[], [30], [40, 50]]) {
      assert.throws(
        () => cut(text, { maxItemBytes: 40, splits }),
        (error) => error instanceof ItemTooLargeError && error.message === "items[1] is longer than 40 bytes",
      );
      assert.equal(cut(text, { maxItemBytes: 58, splits }).items.length, 2);
    }
    assert.throws(() => cut(text.slice(0, 70), { maxItemBytes: 40 }), ItemTooLargeError);
  });
});
