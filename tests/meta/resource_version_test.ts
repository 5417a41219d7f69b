import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compareResourceVersions } from "@listwatch/cache";
import { isComparableResourceVersion } from "@listwatch/cache/store";
import { propertyOptions } from "../property.ts";

describe("compareResourceVersions", () => {
  it("orders decimal numbers of any length, the empty version first", () => {
    const ascending = [
      "",
      "0",
      "1",
      "9",
      "10",
      "99",
      "100",
      "9007199254740992",
      "9007199254740993",
      "18446744073709551615",
      "18446744073709551616",
    ];
    for (const [i, a] of ascending.entries()) {
      for (const [j, b] of ascending.entries()) {
        assert.equal(compareResourceVersions(a, b), Math.sign(i - j), `${a} and ${b}`);
      }
    }
  });

  it("agrees with numbers of any size", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n ** 80n }), fc.bigInt({ min: 1n, max: 2n ** 80n }), (a, b) => {
        const expected = a < b ? -1 : a > b ? 1 : 0;
        assert.equal(compareResourceVersions(String(a), String(b)), expected);
      }),
      propertyOptions(1_000),
    );
  });
});

describe("isComparableResourceVersion", () => {
  it("accepts decimal digits without a leading zero only", () => {
    for (const text of ["1", "42", "18446744073709551616"]) {
      assert.equal(isComparableResourceVersion(text), true, text);
    }
    for (const text of ["", "0", "01", "-1", "+1", "1.5", "1e3", " 1", "1\n", "abc", "١"]) {
      assert.equal(isComparableResourceVersion(text), false, JSON.stringify(text));
    }
  });
});
