import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { finishLane, textHash } from "../../src/util/hash.ts";

describe("textHash", () => {
  it("is another one for each text that differs in one character, at each place, and in its length", () => {
    const text = "shop/web-1\u0000\ud83d";
    const texts = new Set([text, "", `${text}a`, text.slice(0, -1)]);
    for (let i = 0; i < text.length; i++) {
      for (const other of ["a", "b", "\u0000", "\uffff"]) {
        texts.add(text.slice(0, i) + other + text.slice(i + 1));
      }
    }
    assert.equal(new Set(Array.from(texts, textHash)).size, texts.size);
    for (const each of texts) assert.match(textHash(each), /^[0-9a-f]{16}$/);
  });
});

describe("textHash, which lists that clients hold depend on", () => {
  it("stays as it is", () => {
    assert.deepEqual(["", "web-1", "shop/web-1\u00e9"].map(textHash), [
      "811c9dc501000193",
      "76b7b71f868e16c8",
      "35ccafa54f2dce6f",
    ]);
  });
});

describe("finishLane", () => {
  it("gives another number of 32 bits for each", () => {
    const numbers = Array.from({ length: 64 }, (_, i) => i < 32 ? i : 1 << (i - 32));
    const lanes = new Set(numbers.map(finishLane));
    assert.equal(lanes.size, new Set(numbers).size);
    for (const lane of lanes) assert.ok(Number.isInteger(lane) && lane >= 0 && lane < 2 ** 32);
    assert.equal(finishLane(1), 0x514e28b7);
  });
});
