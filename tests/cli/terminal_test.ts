import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Terminal, terminalLogger } from "../../src/cli/terminal.ts";

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
    const [stdout, stderr] = [new Stream(true), new Stream(false)];
    assert.equal(new Terminal({ stdout, stderr, now: () => 0 }).styleError("red", "x"), "x");
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
    const { text } = stderr;
    terminal.print("more");
    assert.equal(stderr.text, text, "it is erased once");
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

function newLogger() {
  const lines: string[] = [];
  let nowMs = 0;
  const stderr = { write: (text: string) => lines.push(text.trimEnd()) };
  const now = () => nowMs;
  const logger = terminalLogger(new Terminal({ stdout: stderr, stderr, now }), now);
  return { logger, lines, advance: (ms: number) => (nowMs += ms) };
}

describe("terminalLogger", () => {
  it("prints warnings and errors, each in one line of visible text", () => {
    const { logger, lines } = newLogger();
    logger.debug("a detail");
    logger.info("an event");
    logger.warn("pods: the snapshot is locked\u001b[2J\n; listing instead", { error: new Error("cause") });
    logger.error("Cannot decide on get /api");
    assert.equal(lines.length, 2);
    assert.match(lines[0], /^Warning +pods: the snapshot is locked.*; listing instead$/);
    assert.ok(!lines[0].includes("\u001b"));
    assert.equal(lines[1], "Cannot decide on get /api");
  });

  it("leaves outages to the steps of serve", () => {
    const { logger, lines } = newLogger();
    logger.warn("pods: lost the server", { reflector: "pods", isOutage: true });
    assert.deepEqual(lines, []);
  });

  it("prints at most 20 warnings a minute, and says how many more there were", () => {
    const { logger, lines, advance } = newLogger();
    for (let i = 0; i < 1_000; i++) logger.warn(`GET / broke off ${i}`);
    assert.equal(lines.length, 20);
    logger.error("an error is no warning");
    assert.equal(lines.length, 21);
    advance(60_000);
    logger.warn("later");
    assert.deepEqual(lines.slice(21), [
      "Warning    980 more warnings, which --verbose prints",
      "Warning    later",
    ]);
    for (let i = 0; i < 20; i++) logger.warn(`GET / broke off ${i}`);
    advance(60_000);
    logger.warn("at last");
    assert.deepEqual(lines.slice(-2), [
      "Warning    1 more warnings, which --verbose prints",
      "Warning    at last",
    ]);
  });
});
