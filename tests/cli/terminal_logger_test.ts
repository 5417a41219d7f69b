import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Terminal } from "../../src/cli/terminal.ts";
import { terminalLogger } from "../../src/cli/terminal_logger.ts";

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
  });
});
