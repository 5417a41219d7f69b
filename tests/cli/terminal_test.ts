import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { Terminal, terminalLogger, verboseLogger } from "../../src/cli/terminal.ts";

class Stream {
  text = "";
  readonly isTTY: boolean;
  readonly columns: number;
  constructor(isTTY: boolean, columns = 40) {
    this.isTTY = isTTY;
    this.columns = columns;
  }
  write(text: string): void {
    this.text += text;
  }
}

function newTerminal(isTTY: boolean, env: Record<string, string> = {}) {
  const clock = new FakeClock();
  const stdout = new Stream(isTTY);
  const stderr = new Stream(isTTY);
  return { clock, stdout, stderr, terminal: new Terminal({ stdout, stderr, env, clock }) };
}

describe("Terminal", () => {
  it("uses colours only on a terminal", () => {
    assert.equal(newTerminal(true).terminal.style("red", "x"), "\x1b[31mx\x1b[39m");
    assert.equal(newTerminal(false).terminal.style("red", "x"), "x");
    assert.equal(newTerminal(true, { NO_COLOR: "1" }).terminal.style("red", "x"), "x");
    assert.equal(newTerminal(true, { TERM: "dumb" }).terminal.styleError("red", "x"), "x");
    assert.notEqual(newTerminal(true, { NO_COLOR: "" }).terminal.style("red", "x"), "x");
    const [stdout, stderr] = [new Stream(true), new Stream(false)];
    assert.equal(new Terminal({ stdout, stderr, clock: new FakeClock() }).styleError("red", "x"), "x");
  });

  it("redraws progress in one line on a terminal, and erases it before another line", async () => {
    const { terminal, stderr, stdout, clock } = newTerminal(true, { NO_COLOR: "1" });
    terminal.progress("one");
    terminal.progress("too soon");
    terminal.progress("two");
    const shown = () => stderr.text;
    await clock.advance(99);
    assert.equal(shown(), "\r\x1b[2Kone");
    await clock.advance(1);
    assert.equal(shown(), "\r\x1b[2Kone\r\x1b[2Ktwo");
    terminal.print("done");
    assert.equal(shown(), "\r\x1b[2Kone\r\x1b[2Ktwo\r\x1b[2K");
    assert.equal(stdout.text, "done\n");
    const { text } = stderr;
    await clock.advance(1_000);
    terminal.print("more");
    assert.equal(stderr.text, text, "it is erased once");
    terminal.progress("three");
    terminal.progress("never shown");
    terminal.warn("trouble");
    await clock.advance(1_000);
    assert.equal(stderr.text, `${text}\r\x1b[2Kthree\r\x1b[2Ktrouble\n`);
  });

  it("cuts progress to the width of the terminal, as a wrapped line cannot be erased", () => {
    const { terminal, stderr } = newTerminal(true, { NO_COLOR: "1" });
    terminal.progress("x".repeat(100));
    assert.equal(stderr.text, `\r\x1b[2K${"x".repeat(38)}…`);
  });

  it("keeps progress as long as the line is whole, in 80 columns if the number is not known, in 20 at least", async () => {
    const widths: readonly (readonly [columns: number, width: number])[] = [[40, 39], [0, 79], [10, 20]];
    for (const [columns, width] of widths) {
      const stderr = new Stream(true, columns);
      const clock = new FakeClock();
      const terminal = new Terminal({ stdout: stderr, stderr, env: { NO_COLOR: "1" }, clock });
      terminal.progress("x".repeat(width));
      await clock.advance(200);
      terminal.progress("x".repeat(width + 1));
      assert.equal(stderr.text, `\r\x1b[2K${"x".repeat(width)}\r\x1b[2K${"x".repeat(width - 1)}…`);
    }
  });

  it("appends a progress line every few seconds without a terminal", async () => {
    const { terminal, stderr, clock } = newTerminal(false);
    for (let second = 0; second <= 7; second++) {
      terminal.progress(`at ${second}`);
      await clock.advance(1_000);
    }
    assert.equal(stderr.text, "at 2\nat 5\n");
    await clock.advance(60_000);
    assert.equal(stderr.text, "at 2\nat 5\nat 7\n");
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
  const terminal = new Terminal({ stdout: stderr, stderr, clock: new FakeClock() });
  const logger = terminalLogger(terminal, () => nowMs);
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

describe("verboseLogger", () => {
  it("prints all but what is for debugging, each in one line with its fields", () => {
    const stderr = new Stream(false);
    const logger = verboseLogger(new Terminal({ stdout: stderr, stderr, clock: new FakeClock() }));
    logger.debug("a detail");
    logger.info("an event");
    logger.warn("pods: lost the server", { isOutage: true, error: new Error("its\ncause") });
    logger.error("Cannot decide");
    assert.equal(
      stderr.text,
      "an event\npods: lost the server isOutage=true error=its cause\nCannot decide\n",
    );
  });
});
