import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fnv64, hashRanges, shardIndexOf } from "../../src/meta/shard_hash.ts";
import { propertyOptions } from "../property.ts";

const texts = fc.string({ unit: "grapheme", maxLength: 40 });

/** FNV-1a of the UTF-8 of a text, as it is defined. */
function fnv(text: string, { bits, basis, prime }: Record<"bits" | "basis" | "prime", bigint>): bigint {
  return new TextEncoder().encode(text).reduce(
    (hash, byte) => BigInt.asUintN(Number(bits), (hash ^ BigInt(byte)) * prime),
    basis,
  );
}

describe("fnv64", () => {
  it("is the hash of the UTF-8, in 16 digits", () => {
    assert.deepEqual(["", "a", "foobar"].map(fnv64), [
      "cbf29ce484222325",
      "af63dc4c8601ec8c",
      "85944171f73967e8",
    ]);
    fc.assert(
      fc.property(texts, (text) => {
        const hash = fnv(text, { bits: 64n, basis: 0xcbf29ce484222325n, prime: 0x100000001b3n });
        assert.equal(fnv64(text), hash.toString(16).padStart(16, "0"));
      }),
      propertyOptions(300),
    );
  });
});

describe("shardIndexOf", () => {
  it("is the place of the finished 32-bit hash among equal ranges, also of keys beyond ASCII", () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 1_000 }), (key, count) => {
        let hash = Number(fnv(key, { bits: 32n, basis: 0x811c9dc5n, prime: 0x01000193n }));
        hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
        hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
        const finished = (hash ^ (hash >>> 16)) >>> 0;
        assert.equal(shardIndexOf(key, count), Math.floor(finished * count / 2 ** 32));
      }),
      propertyOptions(300),
    );
  });
});

describe("shardIndexOf, by single keys", () => {
  it("hashes the UTF-8, from the first character on that has two bytes", () => {
    const most = 2 ** 32;
    assert.deepEqual(["a", "\x7f", "\x80", "a\x80", "é"].map((key) => shardIndexOf(key, most)), [
      444641715,
      3904999568,
      1400953013,
      890218637,
      2387039943,
    ]);
  });
});

describe("hashRanges", () => {
  it("begin at 0 and end at 2^64, in 16 digits but for the end", () => {
    assert.deepEqual(hashRanges(1), ["0".repeat(16), `1${"0".repeat(16)}`]);
    assert.deepEqual(hashRanges(3).slice(1, 3), ["5555555555555555", "aaaaaaaaaaaaaaaa"]);
    assert.ok(hashRanges(32).slice(0, -1).every((bound) => bound.length === 16));
  });
});
