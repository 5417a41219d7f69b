import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { runProgram } from "../../src/node/run_program.ts";

/** Runs a script of the shell. */
function run(script: string, maxOutputBytes = 1_000) {
  const clock = new FakeClock();
  const ended = runProgram("sh", ["-c", script], { env: {}, clock, timeoutMs: 5_000, maxOutputBytes });
  return { clock, ended };
}

describe("runProgram", () => {
  it("returns what a program prints, and leaves no timer and no listener", async () => {
    const before = process.listenerCount("exit");
    const { clock, ended } = run("printf hello");
    assert.equal(clock.pendingTimers, 1);
    assert.equal(process.listenerCount("exit"), before + 1);
    assert.equal(await ended, "hello");
    assert.equal(clock.pendingTimers, 0);
    assert.equal(process.listenerCount("exit"), before);
  });

  it("takes as many bytes as it may, and not one more", async () => {
    assert.equal(await run("printf 12345", 5).ended, "12345");
    await assert.rejects(run("printf 123456", 5).ended, { message: "printed more than 5 bytes" });
  });

  it("says how a program has ended", async () => {
    await assert.rejects(run("exit 3").ended, /^Error: exited with 3; run it by hand to see why$/);
    await assert.rejects(run("kill -TERM $$").ended, /^Error: was ended by SIGTERM; run it by hand/);
    const { clock, ended } = run("sleep 60");
    const late = assert.rejects(ended, { message: "did not end within 5 s" });
    await clock.advance(5_000);
    await late;
    const options = { env: {}, clock, timeoutMs: 5_000, maxOutputBytes: 1 };
    await assert.rejects(runProgram("/no/such/program", [], options), { message: "is not installed" });
  });
});
