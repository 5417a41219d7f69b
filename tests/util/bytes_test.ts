import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fromBase64, toBase64 } from "../../src/util/bytes.ts";

describe("fromBase64", () => {
  it("reads UTF-8 in both alphabets, and refuses other bytes", () => {
    for (const text of ["", "web-1", "\u00ff\u00fe?>", "\u20ac\u{1f600}"]) {
      assert.equal(fromBase64(toBase64(text)), text);
      assert.equal(fromBase64(toBase64(text).replaceAll("+", "-").replaceAll("/", "_")), text);
    }
    assert.equal(toBase64("\u00ff\u00fe?>"), "w7/Dvj8+");
    assert.throws(() => fromBase64(btoa("\xff")), TypeError);
  });
});
