import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Terminal } from "../../src/cli/terminal.ts";

class Stream {
  text = "";
  readonly isTTY: boolean;
  readonly columns = 40;
  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }
  write(text: string): void {
    this.text += text;
  }
}

function newTerminal(isTTY: boolean, env: Record<string, string> = {}) {
  const time = { nowMs: 0 };
  const stdout = new Stream(isTTY);
  const stderr = new Stream(isTTY);
  return { time, stdout, stderr, terminal: new Terminal({ stdout, stderr, env, now: () => time.nowMs }) };
}

describe("Terminal", () => {
  it("uses colours only on a terminal", () => {
    assert.notEqual(newTerminal(true).terminal.style("red", "x"), "x");
    assert.equal(newTerminal(false).terminal.style("red", "x"), "x");
    assert.equal(newTerminal(true, { NO_COLOR: "1" }).terminal.style("red", "x"), "x");
    assert.equal(newTerminal(true, { TERM: "dumb" }).terminal.styleError("red", "x"), "x");
    assert.notEqual(newTerminal(true, { NO_COLOR: "" }).terminal.style("red", "x"), "x");
  });

  it("redraws progress in one line on a terminal, and erases it before another line", () => {
    const { terminal, stderr, stdout, time } = newTerminal(true, { NO_COLOR: "1" });
    terminal.progress("one");
    terminal.progress("too soon");
    time.nowMs = 200;
    terminal.progress("two");
    assert.equal(stderr.text, "\r\x1b[2Kone\r\x1b[2Ktwo");
    terminal.print("done");
    assert.ok(stderr.text.endsWith("\r\x1b[2K"));
    assert.equal(stdout.text, "done\n");
  });

  it("cuts progress to the width of the terminal, as a wrapped line cannot be erased", () => {
    const { terminal, stderr } = newTerminal(true, { NO_COLOR: "1" });
    terminal.progress("x".repeat(100));
    assert.equal(stderr.text, `\r\x1b[2K${"x".repeat(38)}…`);
  });

  it("appends a progress line every few seconds without a terminal", () => {
    const { terminal, stderr, time } = newTerminal(false);
    for (let second = 0; second <= 6; second++) {
      time.nowMs = second * 1_000;
      terminal.progress(`at ${second}`);
    }
    assert.equal(stderr.text, "at 3\nat 6\n");
  });

  it("writes an error in one line, without control characters", () => {
    const { terminal, stderr } = newTerminal(false);
    terminal.error("a server said:\n  \x1b[2Jboo");
    assert.equal(stderr.text, "listwatch: a server said: �[2Jboo\n");
  });
});
