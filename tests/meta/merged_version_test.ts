import { compareResourceVersions } from "@listwatch/cache";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  decodeMergedVersion,
  encodeMergedVersion,
  hasReached,
  isMergedVersion,
  newLayout,
} from "../../src/meta/merged_version.ts";
import { isComparableResourceVersion } from "../../src/meta/object.ts";
import { propertyOptions } from "../property.ts";

const LAYOUT = "0123456789";
const part = fc.oneof(fc.nat(20), fc.nat(), fc.bigInt({ min: 0n, max: (1n << 64n) - 1n })).map(String);
const parts = fc.array(part, { minLength: 1, maxLength: 12 });

describe("encodeMergedVersion", () => {
  it("is read again as it was written, and is a version that clients can compare", () => {
    fc.assert(
      fc.property(parts, (parts) => {
        const text = encodeMergedVersion({ layout: LAYOUT, parts });
        assert.deepEqual(decodeMergedVersion(text), { layout: LAYOUT, parts });
        assert.ok(isComparableResourceVersion(text));
        assert.ok(text.length > 20, "an API server's version has no more than 20 digits");
      }),
      propertyOptions(300),
    );
  });

  it("is greater when no part goes back and one advances", () => {
    fc.assert(
      fc.property(parts, fc.array(part, { minLength: 12, maxLength: 12 }), (parts, steps) => {
        const later = parts.map((version, i) => String(BigInt(version) + BigInt(steps[i])));
        const [before, after] = [parts, later].map((parts) => encodeMergedVersion({ layout: LAYOUT, parts }));
        const isSame = parts.every((version, i) => version === later[i]);
        assert.equal(compareResourceVersions(after, before), isSame ? 0 : 1);
        assert.equal(hasReached(after, before), true);
        assert.equal(hasReached(before, after), isSame);
      }),
      propertyOptions(300),
    );
  });

  it("refuses what is no version, and too many of them", () => {
    for (const parts of [[], ["a"], ["1", ""], ["01"], ["-1"], Array.from({ length: 1_000 }, () => "1")]) {
      assert.throws(() => encodeMergedVersion({ layout: LAYOUT, parts }), RangeError);
    }
  });
});

describe("newLayout", () => {
  it("is ten digits that stay so, and change with the names and their order", () => {
    const layouts = [["a", "b"], ["b", "a"], ["ab"], [], ["n15"]].map(newLayout);
    for (const layout of layouts) assert.match(layout, /^[0-9]{10}$/);
    assert.equal(new Set(layouts).size, layouts.length);
    assert.deepEqual([...layouts.slice(0, 2), layouts[4]], ["7686051647", "7240673432", "0536239465"]);
  });
});

describe("decodeMergedVersion", () => {
  it("reads versions of as many parts as there may be", () => {
    for (const count of [9, 10, 100, 999]) {
      const parts = Array.from({ length: count }, (_, i) => String(i));
      const text = encodeMergedVersion({ layout: LAYOUT, parts });
      assert.deepEqual(decodeMergedVersion(text), { layout: LAYOUT, parts });
      assert.ok(isMergedVersion(text));
    }
  });

  it("refuses what has no parts, or does not divide by their number, or has other characters", () => {
    const texts = [
      `99999999${LAYOUT}000`,
      `999999999900000000001${LAYOUT}002`,
      `9999999a${LAYOUT}001`,
      `099999999${LAYOUT}001`,
    ];
    for (const text of texts) {
      assert.equal(decodeMergedVersion(text), undefined, text);
      assert.equal(isMergedVersion(text), false, text);
    }
  });

  it("does not take an API server's version for a merged one", () => {
    for (const version of ["", "0", "1", "12345678", "18446744073709551615", "9".repeat(40)]) {
      assert.equal(decodeMergedVersion(version), undefined, version);
    }
  });

  it("refuses a sum that is less than its parts", () => {
    const text = encodeMergedVersion({ layout: LAYOUT, parts: ["5", "6"] });
    assert.equal(decodeMergedVersion(text.replace("10000011", "10000004")), undefined);
  });
});

describe("hasReached", () => {
  it("needs each part: a greater number alone is not enough", () => {
    const version = (parts: string[], layout = LAYOUT) => encodeMergedVersion({ layout, parts });
    assert.equal(compareResourceVersions(version(["100", "1"]), version(["5", "6"])), 1);
    assert.equal(hasReached(version(["100", "1"]), version(["5", "6"])), false);
    assert.equal(hasReached(version(["100", "6"]), version(["5", "6"])), true);
    assert.equal(hasReached(version(["100", "6"]), version(["5", "6"], "9876543210")), false);
    assert.equal(hasReached(version(["100", "6"]), "5"), false);
    assert.equal(hasReached("500", version(["100", "6"])), false);
    assert.equal(hasReached("10", "9"), true);
    assert.equal(hasReached("9", "10"), false);
    assert.equal(hasReached("10", "10"), true);
    assert.equal(hasReached(version(["5", "6"]), version(["5", "6"])), true);
    assert.equal(hasReached(version(["5", "6"]), version(["5", "6", "0"])), false);
    assert.equal(hasReached(version(["5", "6", "7"]), version(["5", "6"])), false);
  });
});
