import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ageLater, later } from "../../../src/cli/dashboard/browser/texts.ts";

describe("later", () => {
  it("adds to a duration, also to that of a remark behind a number", () => {
    const texts = ["59s", "3m18s", "2d", "5 (59s ago)", "12 (2d3h ago)"];
    assert.deepEqual(texts.map((text) => later(text, 2_000)), [
      "61s",
      "3m20s",
      "2d",
      "5 (61s ago)",
      "12 (2d3h ago)",
    ]);
    assert.deepEqual(texts.map((text) => later(text, 999)), texts);
    assert.equal(later("12 (2d3h ago)", 24 * 3_600_000), "12 (3d3h ago)");
  });

  it("leaves every other text as it is", () => {
    for (const text of ["", "5", "<none>", "2026-01-01T00:00:00Z", "5 (x)", "web-5m", "5m web", "(5s ago)"]) {
      assert.equal(later(text, 60_000), text);
    }
  });
});

describe("ageLater", () => {
  const HOUR_MS = 3_600_000;

  it("is the age of the object, where the cell was that", () => {
    assert.equal(ageLater("179m", 3 * HOUR_MS, 1_000), "3h");
    assert.equal(ageLater("2d23h", 73 * HOUR_MS, HOUR_MS + 1_000), "3d1h");
  });

  it("is as much more than the cell, where that was of another time, or too early or late by a second", () => {
    assert.equal(ageLater("5m", 3 * HOUR_MS, 60_000), "6m");
    assert.equal(ageLater("58s", 60_000, 1_000), "59s");
    assert.equal(ageLater("<unknown>", NaN, 60_000), "<unknown>");
  });
});
