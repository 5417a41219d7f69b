import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { sortText } from "../../../src/hono/screens/order_spec.ts";
import { propertyOptions } from "../../property.ts";

function sorted(values: readonly unknown[], isDescending = false, isText = false): unknown[] {
  const texts = values.map((value) => [sortText(value, { isDescending, isText }), value] as const);
  return texts.sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0).map(([, value]) => value);
}

describe("sortText", () => {
  it("orders numbers and quantities by their value", () => {
    const values = [-1e300, -2, -0.5, 0, "100m", 0.5, "1", 2, 10, "1Ki", "2Mi", "1G", "1Gi", 1e300, Infinity];
    assert.deepEqual(sorted(values.toReversed()), values);
    assert.deepEqual(sorted(values, true), values.toReversed());
  });

  it("orders numbers whose bits are all set or none, as powers of two and the numbers before them", () => {
    const values = [-33, -32, -17.5, -17, -16, 0x10fffe, 0x10ffff, 0x110000, 2_147_000_000, 2_147_483_647];
    assert.deepEqual(sorted(values.toReversed()), values);
    assert.deepEqual(sorted(values, true), values.toReversed());
    const texts = ["a\ufffe", "a\uffff"];
    assert.deepEqual(sorted(texts, true), texts.toReversed());
  });

  it("orders numbers in texts by their value, whatever the case of letters", () => {
    const values = [
      "a",
      "A1",
      "a2",
      "a9",
      "a10",
      "a10b",
      "a10b1",
      "b",
      "web-2-x",
      "web-10-a",
      "web-100000000000",
    ];
    assert.deepEqual(sorted(values.toReversed()), values);
    assert.deepEqual(sorted(values, true), values.toReversed());
  });

  it("orders times, and types one after the other", () => {
    const values = [false, true, "2026-01-01T00:00:00Z", "2026-01-01T01:00:01+01:00", "", "text"];
    assert.deepEqual(sorted(values.toReversed()), values);
  });

  it("puts what has no value at the end, in both directions", () => {
    assert.deepEqual(sorted([undefined, "b", "a"]), ["a", "b", undefined]);
    assert.deepEqual(sorted([undefined, 1, "a"], true), ["a", 1, undefined]);
    assert.deepEqual(sorted([null, {}, NaN, 1]), [1, null, {}, NaN]);
  });

  it("is the same for texts that differ behind 256 characters only", () => {
    const text = (end: string) => sortText("x".repeat(255) + end, { isDescending: false });
    assert.notEqual(text("a"), text("b"));
    assert.equal(text("ya"), text("yb"));
  });

  it("orders the first two characters that there are, with which texts are ended", () => {
    const values = ["a", "a\u0000", "a\u0000b", "a\u0001", "a\u0001a", "a\u0002"];
    assert.deepEqual(sorted(values.toReversed()), values);
    assert.deepEqual(sorted(values, true), values.toReversed());
  });

  it("takes names for texts, numbers in them as well", () => {
    assert.deepEqual(sorted(["1e3", "web", "20", "3"], false, true), ["1e3", "3", "20", "web"]);
  });

  it("puts names that are none at the end, too", () => {
    for (const isDescending of [false, true]) {
      const [none, name] = [undefined, "10"].map((value) => sortText(value, { isDescending, isText: true }));
      assert.ok(name < none);
    }
  });

  it("is never the beginning of another one", () => {
    const values = ["", "a", "ab", "a\u0000", "a\u0001", "\u0000", "0", "00", 0, 1, -1, true, undefined];
    for (const isDescending of [false, true]) {
      for (const a of values) {
        for (const b of values) {
          const [first, second] = [a, b].map((value) => sortText(value, { isDescending }));
          if (first !== second) assert.deepEqual(second.startsWith(first), false, `${first} ${second}`);
        }
      }
    }
  });

  it("orders any texts in one direction as in the other", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "b", "\u0000", "\u007f", "\u0080", "\u00ff", "\u0100"),
    });
    fc.assert(
      fc.property(text, text, (a, b) => {
        const [up, down] = [false, true].map((isDescending) => {
          const [first, second] = [a, b].map((value) => sortText(value, { isDescending }));
          return first < second ? -1 : first > second ? 1 : 0;
        });
        assert.equal(up + down, 0);
      }),
      propertyOptions(500),
    );
  });

  it("is the same for the same value, whichever was before it, and compares as numbers do", () => {
    const number = fc.oneof(
      fc.double({ noNaN: true }),
      fc.integer({ min: -2, max: 2 }),
      fc.constantFrom(-0, 0, 2 ** 53, -(2 ** 53), Number.MIN_VALUE, -Number.MIN_VALUE, -Infinity, Infinity),
    );
    const epoch = "1970-01-01T00:00:00Z";
    fc.assert(
      fc.property(fc.array(number, { minLength: 2, maxLength: 6 }), fc.boolean(), (numbers, isDescending) => {
        const texts = numbers.map((number) => sortText(number, { isDescending }));
        const [time, zero] = [epoch, 0].map((value) => sortText(value, { isDescending }));
        assert.equal(isDescending ? time < zero : time > zero, true);
        for (const [i, a] of numbers.entries()) {
          sortText(a, { isDescending: !isDescending });
          assert.equal(sortText(a, { isDescending }), texts[i]);
          for (const [k, b] of numbers.entries()) {
            assert.equal(texts[i] < texts[k], isDescending ? a > b : a < b, `${a} ${b}`);
          }
        }
      }),
      propertyOptions(500),
    );
  });
});
