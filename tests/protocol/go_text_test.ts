import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseDuration, quotedByGo, quotedStart } from "../../src/protocol/statuses.ts";

// Each answer is kube-apiserver's, v1.36.3.
describe("quotedByGo", () => {
  const texts: Record<string, string> = {
    "web-1": '"web-1"',
    "a b": '"a b"',
    'a"b\\c': '"a\\"b\\\\c"',
    "\0": '"\\x00"',
    "a\r\nb\t\v\x07": '"a\\r\\nb\\t\\v\\a"',
    "\x7f": '"\\x7f"',
    "\u00e9\u20ac\u{1f600}": '"\u00e9\u20ac\u{1f600}"',
    "\u00a0\u2028": '"\\u00a0\\u2028"',
    "\u{e0001}": '"\\U000e0001"',
  };
  for (const [text, quoted] of Object.entries(texts)) {
    it(`writes ${JSON.stringify(text)} as ${quoted}`, () => assert.equal(quotedByGo(text), quoted));
  }
});

describe("parseDuration", () => {
  it("quotes what it refuses by bytes", () => {
    assert.equal(parseDuration('1"\\'), 'time: unknown unit "\\"\\\\" in duration "1\\"\\\\"');
    assert.equal(parseDuration("\u007f\u0080 \u001f"), 'time: invalid duration "\x7f\\xc2\\x80 \\x1f"');
  });
});

describe("quotedStart", () => {
  it("has no more than the first 300 characters", () => {
    assert.equal(quotedStart('a"'), '"a\\""');
    assert.equal(quotedStart("a".repeat(1_000)), `"${"a".repeat(300)}..."`);
  });
});

describe("parseDuration", () => {
  const durations: Record<string, number> = {
    "32s": 32_000,
    "6m21s": 381_000,
    "1h15m30.9s": 4_530_900,
    "-5ms": -5,
    "-1m1s": -61_000,
    "0": 0,
    "+0": 0,
    ".5s": 500,
    "1.s": 1_000,
    "1ns": 1e-6,
    "1us": 1e-3,
    "1\u00b5s": 1e-3,
    "1\u03bcs": 1e-3,
    "9223372036s": 9_223_372_036_000,
  };
  for (const [text, ms] of Object.entries(durations)) {
    it(`reads ${JSON.stringify(text)} as ${ms} ms`, () => assert.equal(parseDuration(text), ms));
  }

  const problems: Record<string, string> = {
    "abc": 'invalid duration "abc"',
    "": 'invalid duration ""',
    "-": 'invalid duration "-"',
    "s": 'invalid duration "s"',
    ".s": 'invalid duration ".s"',
    "--1s": 'invalid duration "--1s"',
    "10": 'missing unit in duration "10"',
    "1s2": 'missing unit in duration "1s2"',
    "1d": 'unknown unit "d" in duration "1d"',
    "1S": 'unknown unit "S" in duration "1S"',
    "10 s": 'unknown unit " s" in duration "10 s"',
    "1m 2s": 'unknown unit "m " in duration "1m 2s"',
    "1e3s": 'unknown unit "e" in duration "1e3s"',
    "1h-1s": 'unknown unit "h-" in duration "1h-1s"',
    "1s\0": 'unknown unit "s\\x00" in duration "1s\\x00"',
    "\u00e9": 'invalid duration "\\xc3\\xa9"',
    "9223372037s": 'invalid duration "9223372037s"',
    "99999999999999999999s": 'invalid duration "99999999999999999999s"',
  };
  for (const [text, problem] of Object.entries(problems)) {
    it(`says of ${JSON.stringify(text)}: ${problem}`, () => {
      assert.equal(parseDuration(text), `time: ${problem}`);
    });
  }
});
