import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { fnv64, shardIndexOf, ShardSelector } from "../../src/meta/shard_hash.ts";
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

describe("ShardSelector", () => {
  it("has equal ranges without gaps, which each hash is in one of", () => {
    const rangesOf = (of: number) =>
      Array.from({ length: of }, (_, index) => ShardSelector.range("uid", index, of).ranges[0]);
    assert.deepEqual(rangesOf(2), [["0000000000000000", "8000000000000000"], [
      "8000000000000000",
      "10000000000000000",
    ]]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.string(), (of, uid) => {
        const ranges = rangesOf(of);
        assert.equal(ranges[0][0], "0000000000000000");
        assert.equal(ranges.at(-1)![1], "10000000000000000");
        for (let i = 1; i < of; i++) assert.equal(ranges[i][0], ranges[i - 1][1]);
        const own = ranges.filter((range) =>
          new ShardSelector("uid", [range]).matches({ metadata: { uid } })
        );
        assert.equal(own.length, 1);
      }),
      propertyOptions(100),
    );
  });

  it("has the beginning of a range, and not its end", () => {
    const object = { metadata: { uid: "0-uid" } };
    const hash = fnv64("0-uid");
    const has = (start: string, end: string) => new ShardSelector("uid", [[start, end]]).matches(object);
    assert.equal(has("0".repeat(16), hash), false);
    assert.equal(has(hash, "f".repeat(16)), true);
    assert.equal(has(hash, `1${"0".repeat(16)}`), true);
  });

  it("has the objects of all of its ranges", () => {
    const parts = [0, 2].flatMap((index) => ShardSelector.range("namespace", index, 4).ranges);
    const both = new ShardSelector("namespace", parts);
    for (const namespace of ["shop", "blog", "db", "kube-system", "a", "web", "prod"]) {
      const own = [0, 1, 2, 3].find((index) =>
        ShardSelector.range("namespace", index, 4).matches({ metadata: { namespace } })
      );
      assert.equal(both.matches({ metadata: { namespace } }), own === 0 || own === 2);
    }
    assert.equal(
      String(both),
      "shardRange(object.metadata.namespace, '0x0000000000000000', '0x4000000000000000') || " +
        "shardRange(object.metadata.namespace, '0x8000000000000000', '0xc000000000000000')",
    );
  });
});
