import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { typedValue } from "../../src/protocol/screen_values.ts";
import { propertyOptions } from "../property.ts";

describe("typedValue", () => {
  it("reads numbers, quantities, times and booleans", () => {
    const numbers: [unknown, number][] = [
      [7, 7],
      ["7", 7],
      ["-1.5", -1.5],
      ["100m", 0.1],
      ["2Gi", 2 * 2 ** 30],
      ["1e3", 1000],
      ["1E", 1e18],
      ["3k", 3000],
    ];
    // https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
    "KMGTPE".split("").forEach((letter, i) => {
      numbers.push([`3${letter}i`, 3 * 1024 ** (i + 1)], [
        `2${letter.replace("K", "k")}`,
        2 * 1000 ** (i + 1),
      ]);
    });
    "mun".split("").forEach((letter, i) => numbers.push([`1${letter}`, Number(`1e-${3 * (i + 1)}`)]));
    for (const [value, number] of numbers) assert.deepEqual(typedValue(value), { type: "number", number });
    assert.deepEqual(typedValue(true), { type: "boolean", number: 1 });
    assert.deepEqual(typedValue(false), { type: "boolean", number: 0 });
    assert.deepEqual(typedValue("1970-01-01T00:00:01.5Z"), { type: "time", number: 1500 });
  });

  it("reads digits as JavaScript does, however many there are and what is beside them", () => {
    const character = fc.constantFrom(..."0123456789".repeat(3), " ", "/", ":", "-", ".", "٣");
    fc.assert(
      fc.property(fc.string({ unit: character, minLength: 1, maxLength: 24 }), (text) => {
        const isNumber = /^-?([0-9]+\.?[0-9]*|\.[0-9]+)$/.test(text);
        const expected = isNumber ? { type: "number", number: Number(text) } : { type: "text", text };
        assert.deepEqual(typedValue(text), expected);
      }),
      propertyOptions(2_000),
    );
  });

  it("takes everything else for text, and objects for nothing", () => {
    for (const text of ["", "web-2", "1.2.3", "5 m", "12Kib", "2026-13-31T12:00:00Z", "1".repeat(65)]) {
      assert.deepEqual(typedValue(text), { type: "text", text });
    }
    for (const value of [null, undefined, {}, []]) assert.equal(typedValue(value), undefined);
  });
});
