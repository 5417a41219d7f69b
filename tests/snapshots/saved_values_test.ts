import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { crc32 as native } from "node:zlib";
import { checkFormat, crc32, readVersion, refusalOf, truncated } from "../../src/snapshots/saved_values.ts";
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

describe("readVersion", () => {
  it("refuses a version that lacks a field, or has another thing in it", () => {
    const version = { resourceVersion: "5", savedAtMs: 1, needsList: false };
    assert.deepEqual(readVersion(version), version);
    const whole = { ...version, watchedVersion: "4", clusterUid: "a" };
    assert.deepEqual(readVersion(whole), whole);
    for (const field of Object.keys(whole)) {
      assert.throws(() => readVersion({ ...whole, [field]: {} }), { reason: "corrupt" }, field);
    }
    assert.throws(() => readVersion(null), { reason: "corrupt" });
  });
});

describe("checkFormat", () => {
  it("says of a later format that it is one, and of anything else that it is none", () => {
    checkFormat(2, 2);
    assert.throws(() => checkFormat(3, 2), { reason: "newer-format" });
    for (const format of [1, "3", undefined]) {
      assert.throws(() => checkFormat(format, 2), { reason: "corrupt" }, String(format));
    }
  });
});

describe("refusalOf", () => {
  it("keeps a refusal and the reason of a fault; other errors say that it cannot be read", () => {
    const fault = truncated("a record has 1 byte of 2");
    const refusal = refusalOf("the store", fault);
    assert.deepEqual([refusal.reason, refusal.cause], ["truncated", fault]);
    assert.equal(refusalOf("the store", refusal), refusal);
    assert.equal(refusalOf("the store", new Error("away")).reason, "unreadable");
  });
});
