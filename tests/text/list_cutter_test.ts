import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ListCutter } from "../../src/text/list_cutter.ts";
import { propertyOptions } from "../property.ts";

interface Cut {
  readonly items: string[];
  readonly envelope: string;
  readonly prefix: string;
}

function cut(text: string, splits: readonly number[] = []): Cut {
  const items: string[] = [];
  let prefix = "";
  const cutter = new ListCutter<string>({
    parse: (text, start, end) => {
      JSON.parse(text.slice(start, end));
      return text.slice(start, end);
    },
    onItem: (item) => items.push(item),
    onItems: (begin) => (prefix = begin),
  });
  const ends = [...new Set(splits.map((at) => at % (text.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...ends, text.length]) {
    cutter.push(text.slice(from, to));
    from = to;
  }
  return { items, envelope: cutter.envelope, prefix };
}

describe("ListCutter", () => {
  it("hands out the items, and keeps what is around them", () => {
    const { items, envelope, prefix } = cut(
      '{"kind":"PodList","items":[{"a":[1,"]"]}, {"b":{}}],"metadata":{}}',
    );
    assert.deepEqual(items, ['{"a":[1,"]"]}', '{"b":{}}']);
    assert.equal(envelope, '{"kind":"PodList","items":[],"metadata":{}}');
    assert.equal(prefix, '{"kind":"PodList",');
  });

  it("takes items that are no objects", () => {
    assert.deepEqual(cut('{"items":[1, "a,]\\"" ,null,[[]],-2.5e3,true]}').items, [
      "1",
      '"a,]\\""',
      "null",
      "[[]]",
      "-2.5e3",
      "true",
    ]);
  });

  it("is not misled by items elsewhere", () => {
    const text = '{"metadata":{"items":[1]},"x":"items","y":["items",[2]],"items":[{"items":[3]}]}';
    assert.deepEqual(cut(text).items, ['{"items":[3]}']);
  });

  it("knows the key of the items however it is written, and no other for it", () => {
    const text = '{"k":"v", "it\\u0065ms" : [{"a":1},2]}';
    for (let at = 0; at <= text.length; at++) {
      const { items, envelope, prefix } = cut(text, [at]);
      assert.deepEqual(items, ['{"a":1}', "2"]);
      assert.deepEqual(JSON.parse(envelope), { k: "v", items: [] });
      assert.equal(prefix, '{"k":"v", ');
    }
    for (const key of ["it\\\\u0065ms", "\\titems", "items\\u0000", "it\\u0065m"]) {
      assert.deepEqual(cut(`{"${key}":[1]}`).items, [], key);
    }
  });

  it("leaves items that are no array in the envelope", () => {
    for (const text of ['{"items":null}', '{"items":{"a":[1]}}', "[1]", '"items"']) {
      assert.deepEqual(cut(text), { items: [], envelope: text, prefix: "" });
    }
  });

  it("refuses what is between the items and is no comma", () => {
    for (
      const text of ['{"items":[,1]}', '{"items":[1,]}', '{"items":[1 2]}', '{"items":[{}{}]}', '{"items":[}']
    ) {
      assert.throws(() => cut(text), SyntaxError, text);
    }
  });

  it("gives back every list as it was written, wherever it is split", () => {
    const list = fc.record({
      kind: fc.string(),
      before: fc.jsonValue(),
      items: fc.array(fc.jsonValue({ maxDepth: 3 }), { maxLength: 6 }),
      after: fc.jsonValue(),
    });
    const splits = fc.array(fc.nat(), { maxLength: 12 });
    fc.assert(
      fc.property(list, splits, fc.constantFrom(undefined, 1), (list, splits, indent) => {
        const { items, envelope } = cut(JSON.stringify(list, undefined, indent), splits);
        const parsed = JSON.parse(JSON.stringify(list));
        assert.deepEqual(items.map((item) => JSON.parse(item)), parsed.items);
        assert.deepEqual(JSON.parse(envelope), { ...parsed, items: [] });
      }),
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
          const written = items.map((item) => JSON.stringify({ ...type, ...(item as object) }));
          assert.deepEqual(cut(`{"items":[${written.join(",")}]}`, splits).items, written);
        },
      ),
      propertyOptions(1_000),
    );
  });

  it("accepts just what a JSON parser accepts, whatever bytes come, and gives the same however they are split", () => {
    const token = fc.constantFrom(
      ..."{}[]:, ",
      '"items"',
      '"a"',
      "1",
      "-",
      "null",
      "tru",
      "\\",
      '"',
      "é",
      "\n",
      "\u0001",
    );
    const text = fc.oneof(
      fc.array(token, { maxLength: 30 }).map((tokens) => tokens.join("")),
      fc.array(token, { maxLength: 12 }).map((tokens) => `{"items":[${tokens.join("")}]}`),
    );
    const outcome = (text: string, splits: readonly number[]) => {
      try {
        const { items, envelope } = cut(text, splits);
        const around = JSON.parse(envelope);
        const cutItems = items.map((item) => JSON.parse(item));
        return { value: cutItems.length === 0 ? around : { ...around, items: cutItems } };
      } catch {
        return { refused: true };
      }
    };
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 8 }), (text, splits) => {
        let expected: unknown;
        try {
          expected = { value: JSON.parse(text) };
        } catch {
          expected = { refused: true };
        }
        const twice = (text.match(/"items"/g)?.length ?? 0) > 1;
        if (!twice) assert.deepEqual(outcome(text, splits), expected);
        assert.deepEqual(outcome(text, splits), outcome(text, []));
      }),
      propertyOptions(4_000),
    );
  });

  it("takes time in proportion to an item that comes in many pieces, and any depth", () => {
    const item = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
    const all = `{"items":[${item}]}`;
    const lengths: number[] = [];
    const cutter = new ListCutter<number>({
      parse: (_, start, end) => end - start,
      onItem: (length) => lengths.push(length),
      onItems: () => {},
    });
    for (const character of all) cutter.push(character);
    assert.deepEqual(lengths, [item.length]);
    assert.equal(cutter.envelope, '{"items":[]}');
  });
});
