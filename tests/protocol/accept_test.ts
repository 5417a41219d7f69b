import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { wantsPretty } from "../../src/protocol/representations.ts";

describe("wantsPretty", () => {
  const cases: [query: string, userAgent: string | undefined, expected: boolean][] = [
    ["", undefined, false],
    ["", "kubectl/v1.36.3", false],
    ["", "curl/8.5.0", true],
    ["", "Wget/1.21", true],
    ["", "Mozilla/5.0 (X11)", true],
    ["pretty=true", undefined, true],
    ["pretty=1", undefined, true],
    ["pretty=T", undefined, true],
    ["pretty=false", "curl/8.5.0", false],
    ["pretty=x", "curl/8.5.0", false],
    ["pretty=", "curl/8.5.0", true],
    ["pretty=", undefined, false],
  ];
  for (const [query, userAgent, expected] of cases) {
    it(`is ${expected} for ?${query} and ${userAgent ?? "no User-Agent"}`, () => {
      assert.equal(wantsPretty(new URLSearchParams(query), userAgent), expected);
    });
  }
});
