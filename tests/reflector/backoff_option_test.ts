import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { RetryBackoff } from "@listwatch/cache/reflector";
import { type Answer, newRun, openWatch, page, refusal } from "./scripted_source.ts";

const refusals: readonly Answer[] = Array.from({ length: 100 }, () => ({ list: refusal("forbidden") }));

const throws = () => {
  throw new Error("no delay today");
};
const rejects = () => Promise.reject(new Error("no delay today")) as unknown as number;

const delays: Readonly<Record<string, RetryBackoff["nextDelayMs"]>> = {
  "NaN": () => NaN,
  "a negative number": () => -1,
  "Infinity": () => Infinity,
  "-Infinity": () => -Infinity,
  "nothing": () => undefined as unknown as number,
  "a text": () => "1000" as unknown as number,
  "a promise that rejects": rejects,
  "an error": throws,
};

describe("ReflectorOptions.backoff", () => {
  for (const [name, nextDelayMs] of Object.entries(delays)) {
    it(`that gives ${name} is an error in the log, and the next try comes after 15 s`, async () => {
      await using run = newRun(refusals, { backoff: { nextDelayMs } });
      await run.start();
      assert.equal(run.source.requests.length, 1);
      assert.equal(run.reflector.status().nextRetryTimeMs, run.clock.now() + 15_000);
      await run.clock.advance(60_000);
      assert.equal(run.source.requests.length, 5);
      const errors = new Set(run.log.of("error"));
      const why = name.startsWith("a promise")
        ? "it must return no promise"
        : name === "an error"
        ? "no delay today"
        : `Cannot wait with a nextDelayMs of ${name === "nothing" ? NaN : nextDelayMs()}: ` +
          "it must be a finite number of 0 or more";
      assert.deepEqual([...errors], [`error: pods: backoff threw: ${why}`]);
    });
  }

  it("that gives a delay again is followed again", async () => {
    const given = [NaN, 5_000, NaN, 7_000];
    await using run = newRun(refusals, { backoff: { nextDelayMs: () => given.shift() ?? 1_000 } });
    await run.start();
    for (const delayMs of [15_000, 5_000, 15_000]) {
      assert.equal(run.reflector.status().nextRetryTimeMs, run.clock.now() + delayMs);
      await run.clock.advance(delayMs);
    }
    assert.equal(run.reflector.status().nextRetryTimeMs, run.clock.now() + 7_000);
  });

  it("whose reset throws does not end the reflector", async () => {
    const watcher = openWatch();
    const backoff = { nextDelayMs: () => 1_000, reset: throws };
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: watcher },
      { watch: refusal("tooMany") },
      {
        watch: openWatch(),
      },
    ], { backoff, bookmarkSilenceMs: Infinity });
    await run.start();
    await run.clock.advance(130_000);
    watcher.stop();
    await run.clock.advance(20_000);
    assert.equal(run.reflector.status().phase, "watching");
    assert.deepEqual(run.log.of("error"), ["error: pods: backoff threw: no delay today"]);
  });
});
