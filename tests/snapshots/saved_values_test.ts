import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { crc32 as native } from "node:zlib";
import { crc32 } from "../../src/snapshots/saved_values.ts";
import { seededRandom } from "../../src/testing/seeded_random.ts";

describe("crc32", () => {
  it("is that of other programs, at once or part by part", () => {
    assert.equal(crc32(new TextEncoder().encode("123456789")), 0xcbf43926);
    const random = seededRandom(1);
    for (let length = 0; length < 200; length++) {
      const bytes = Uint8Array.from({ length }, () => Math.floor(random() * 256));
      assert.equal(crc32(bytes), native(bytes), `${length} bytes`);
      const at = Math.floor(random() * length);
      assert.equal(crc32(bytes.subarray(at), crc32(bytes.subarray(0, at))), native(bytes));
    }
  });
});
