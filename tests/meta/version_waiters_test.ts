import { FakeClock } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeMergedVersion } from "../../src/meta/merged_version.ts";
import { newPartwiseWaiters, VersionWaiters } from "../../src/meta/version_waiters.ts";
import { CountingSignal } from "../counting_signal.ts";

function newWaiters(): { waiters: VersionWaiters; clock: FakeClock; move: (version: string) => void } {
  const clock = new FakeClock();
  let version = "";
  const waiters = new VersionWaiters(() => version, { clock });
  const move = (to: string) => {
    version = to;
    waiters.moved();
  };
  return { waiters, clock, move };
}

describe("newPartwiseWaiters", () => {
  it("wait for each part of a merged version, and for nothing before the first version", async () => {
    const merged = (...parts: string[]) => encodeMergedVersion({ layout: "0123456789", parts });
    let version = "";
    const waiters = newPartwiseWaiters(() => version, { clock: new FakeClock() });
    const empty = waiters.wait("");
    const wait = waiters.wait(merged("5", "6"));
    for (const next of ["", merged("100", "1")]) {
      version = next;
      waiters.moved();
      assert.equal(waiters.waiting.size, 2);
    }
    version = merged("100", "6");
    waiters.moved();
    assert.equal(await wait, "reached");
    waiters.stop();
    assert.equal(await empty, "stopped");
  });
});

describe("VersionWaiters.wait", () => {
  it("ends when it is reached, before the call or after, also if it is passed", async () => {
    const { waiters, move } = newWaiters();
    const waits = ["5", "9", "10"].map((version) => waiters.wait(version));
    move("10");
    assert.deepEqual(await Promise.all(waits), ["reached", "reached", "reached"]);
    assert.equal(await waiters.wait("10"), "reached");
    assert.equal(waiters.waiting.size, 0);
  });

  it("does not end before the first version, nor at an older one", async () => {
    const { waiters, move } = newWaiters();
    let end: string | undefined;
    const wait = waiters.wait("100").then((how) => (end = how));
    waiters.moved();
    assert.equal(waiters.waiting.size, 1);
    void waiters.wait("");
    waiters.moved();
    assert.equal(waiters.waiting.size, 2, "no version is reached before the first");
    move("99");
    assert.equal(waiters.waiting.size, 1);
    await Promise.resolve();
    assert.equal(end, undefined);
    move("100");
    assert.equal(await wait, "reached");
  });

  it("ends when its signal is aborted, before the call or after", async () => {
    const { waiters } = newWaiters();
    const abort = new AbortController();
    const wait = waiters.wait("5", { signal: abort.signal });
    abort.abort();
    assert.equal(await wait, "aborted");
    assert.equal(await waiters.wait("5", { signal: abort.signal }), "aborted");
    assert.equal(waiters.waiting.size, 0);
  });

  it("ends at the stop, before the call or after", async () => {
    const { waiters, move } = newWaiters();
    move("4");
    const wait = waiters.wait("5");
    waiters.stop();
    assert.equal(await wait, "stopped");
    assert.equal(await waiters.wait("5"), "stopped");
    assert.equal(await waiters.wait("4"), "reached", "what was reached stays so");
  });

  it("ends after its timeout", async () => {
    const { waiters, clock } = newWaiters();
    void waiters.wait("5");
    assert.equal(clock.pendingTimers, 0, "a wait without a timeout needs no timer");
    const wait = waiters.wait("5", { timeoutMs: 3_000 });
    await clock.advance(3_000);
    assert.equal(await wait, "timedOut");
  });

  it("leaves neither a timer nor an abort listener, however it ends", async () => {
    const ends: Record<string, (rig: ReturnType<typeof newWaiters>, signal: CountingSignal) => unknown> = {
      reached: ({ move }) => move("5"),
      stopped: ({ waiters }) => waiters.stop(),
      aborted: (_, signal) => signal.abort(),
      timedOut: ({ clock }) => clock.advance(1_000),
    };
    for (const [how, end] of Object.entries(ends)) {
      const rig = newWaiters();
      const signal = new CountingSignal();
      const wait = rig.waiters.wait("5", { signal: signal.signal, timeoutMs: 1_000 });
      assert.deepEqual([signal.listeners, rig.clock.pendingTimers], [1, 1]);
      await end(rig, signal);
      assert.equal(await wait, how);
      assert.deepEqual([signal.listeners, rig.clock.pendingTimers, rig.waiters.waiting.size], [0, 0, 0], how);
    }
  });
});
