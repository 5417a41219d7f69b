import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import {
  abortable,
  linkedAbort,
  onAbort,
  sleep,
  sleepUnlessAborted,
  withTimeLimit,
} from "../../src/util/abort.ts";
import { CountingSignal } from "../counting_signal.ts";

const reason = new Error("enough");

describe("sleep", () => {
  it("leaves neither a timer nor a listener, however it ends", async () => {
    const clock = new FakeClock();
    const counting = new CountingSignal();
    const { signal } = counting;
    const slept = sleep(1_000, { clock, signal });
    await clock.advance(1_000);
    await slept;
    assert.deepEqual([clock.pendingTimers, counting.listeners], [0, 0]);
    const aborted = sleep(1_000, { clock, signal });
    counting.abort(reason);
    await assert.rejects(aborted, reason);
    assert.equal(clock.pendingTimers, 0);
    const plain = sleep(1_000, { clock });
    await clock.advance(1_000);
    await plain;
    const refused = sleep(1_000, { clock, signal });
    assert.equal(clock.pendingTimers, 0);
    await assert.rejects(refused, reason);
  });
});

describe("sleepUnlessAborted", () => {
  it("says whether it slept, and throws what its clock throws", async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const slept = sleepUnlessAborted(10, { clock, signal: stop.signal });
    await clock.advance(10);
    assert.equal(await slept, true);
    stop.abort();
    assert.equal(await sleepUnlessAborted(10, { clock, signal: stop.signal }), false);
    const broken = {
      now: () => 0,
      setTimeout: () => {
        throw reason;
      },
      clearTimeout: () => {},
    };
    await assert.rejects(sleepUnlessAborted(10, { clock: broken }), reason);
  });
});

describe("abortable", () => {
  it("settles as its promise does, and leaves no listener", async () => {
    const counting = new CountingSignal();
    const { signal } = counting;
    assert.equal(await abortable(Promise.resolve(1), signal), 1);
    await assert.rejects(abortable(Promise.reject(reason), signal), reason);
    assert.equal(counting.listeners, 0);
    assert.equal(await abortable(Promise.resolve(2), undefined), 2);
  });

  it("rejects with the signal's reason where that comes first, or came before", async () => {
    const counting = new CountingSignal();
    const waiting = abortable(new Promise(() => {}), counting.signal);
    counting.abort(reason);
    await assert.rejects(waiting, reason);
    await assert.rejects(abortable(Promise.resolve(1), counting.signal), reason);
  });
});

describe("onAbort", () => {
  it("calls at once where the signal is aborted already, and not after it was given up", () => {
    const stop = new AbortController();
    let calls = 0;
    onAbort(stop.signal, () => calls++)();
    onAbort(stop.signal, () => calls++);
    onAbort(AbortSignal.abort(), () => calls--)(); // nothing is left to give up
    calls++;
    stop.abort();
    assert.equal(calls, 1);
    onAbort(stop.signal, () => calls++);
    assert.equal(calls, 2);
  });
});

describe("linkedAbort", () => {
  it("is aborted with its parent's reason, until it is unlinked, or alone", () => {
    const parent = new CountingSignal();
    const [follows, alone, unlinked] = [0, 1, 2].map(() => linkedAbort(parent.signal));
    alone.abort("alone");
    assert.equal(parent.signal.aborted, false);
    unlinked.unlink();
    alone.unlink();
    assert.equal(parent.listeners, 1);
    parent.abort(reason);
    assert.deepEqual([follows.signal.reason, alone.signal.reason], [reason, "alone"]);
    assert.equal(unlinked.signal.aborted, false);
    assert.equal(linkedAbort(parent.signal).signal.reason, reason);
    assert.equal(linkedAbort(undefined).signal.aborted, false);
  });
});

describe("withTimeLimit", () => {
  const newError = () => new Error("too slow");

  it("ends work that ignores its signal, by the time or by the caller's signal, and leaves nothing", async () => {
    const clock = new FakeClock();
    const counting = new CountingSignal();
    const options = { ms: 1_000, newError, clock, signal: counting.signal };
    let own: AbortSignal | undefined;
    const hang = (signal: AbortSignal) => {
      own = signal;
      return new Promise<never>(() => {});
    };
    const slow = withTimeLimit(hang, options);
    slow.catch(() => {});
    await clock.advance(1_000);
    await assert.rejects(slow, /too slow/);
    assert.equal((own!.reason as Error).message, "too slow");
    assert.equal(await withTimeLimit(() => Promise.resolve(1), options), 1);
    assert.deepEqual([clock.pendingTimers, counting.listeners], [0, 0]);
    const stopped = withTimeLimit(hang, options);
    counting.abort(reason);
    await assert.rejects(stopped, reason);
    assert.equal(own!.reason, reason);
    assert.equal(clock.pendingTimers, 0);
  });
});
