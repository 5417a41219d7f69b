import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { visibleText } from "../../src/util/logger.ts";

describe("visibleText", () => {
  it("does not change ordinary text of any script", () => {
    for (const text of ["", "web-1", "größe 数量 מספר 🚀", "a\u0301"]) {
      assert.equal(visibleText(text, 100), text);
    }
  });

  it("escapes invisible characters and direction marks", () => {
    assert.equal(
      visibleText("a\x1b[2J\u202eb\u2066\ufeff\x9b\n\0", 100),
      "a\\x1b[2J\\u202eb\\u2066\\ufeff\\x9b\\x0a\\x00",
    );
    assert.equal(visibleText("\u{e0041}\ud800", 100), "\\u{e0041}\\ud800");
  });

  it("cuts long text, and not within a surrogate pair", () => {
    assert.equal(visibleText("x".repeat(500), 10), "xxxxxxxxx…");
    assert.equal(visibleText("x".repeat(10), 10), "xxxxxxxxxx");
    assert.equal(visibleText("\u202e".repeat(10), 10), "\\u202e\\u2…");
    assert.equal(visibleText("🚀🚀🚀", 4), "🚀…");
    for (let n = 1; n < 12; n++) assert.ok(visibleText("🚀\u202e🚀x".repeat(9), n).isWellFormed());
  });
});
