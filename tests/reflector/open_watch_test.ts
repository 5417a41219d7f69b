import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject, NetworkError } from "@listwatch/cache";
import type { ListOptions, ListWatchContext, WatchStream } from "@listwatch/cache/reflector";
import { FakeClock, FakeWatcher } from "@listwatch/cache/testing";
import { RelistDue, SuspendedError } from "../../src/reflector/failures.ts";
import { every, openWatch } from "../../src/reflector/open_watch.ts";
import { momentOf } from "../../src/util/clock.ts";

/** A watch that is followed, its clock, and the context of its request. */
async function followWatch({ expectsBookmarks = true, stream }: {
  readonly expectsBookmarks?: boolean;
  readonly stream?: WatchStream<KubernetesObject>;
} = {}) {
  const clock = new FakeClock();
  await clock.advance(5_000);
  const watcher = new FakeWatcher<KubernetesObject>();
  let context: ListWatchContext | undefined;
  const source = {
    list: () => Promise.reject(new Error("unused")),
    watch: (_options: ListOptions, given: ListWatchContext) => {
      context = given;
      return Promise.resolve(stream ?? watcher);
    },
  };
  const watch = await openWatch<KubernetesObject>(source, { signal: new AbortController().signal }, {
    name: "pods",
    clock,
    random: () => 0,
    openTimeoutMs: 30_000,
    minWatchTimeoutMs: 300_000,
  });
  const followed = watch.follow({ write: () => {} }, {
    bookmarkSilenceMs: 90_000,
    expectsBookmarks,
    relistDueMs: undefined,
  });
  const { onBytes, signal } = context!;
  return { clock, watcher, watch, followed, arrived: onBytes!, signal };
}

/** A watch that has been followed to its end, and its clock. */
async function followedWatch() {
  const { clock, watcher, watch, followed } = await followWatch();
  watcher.stop();
  await followed;
  return { clock, watch };
}

describe("OpenWatch.overdue", () => {
  const ends = async (come: (run: Awaited<ReturnType<typeof followWatch>>) => void) => {
    const run = await followWatch();
    await run.clock.advance(1_000);
    const since = momentOf(run.clock);
    await run.clock.advance(1_000);
    come(run);
    await run.clock.advance(0);
    run.watch.overdue(since);
    const { aborted, reason } = run.signal;
    run.watcher.stop();
    await run.followed;
    return aborted && reason;
  };

  it("takes a watch for dead that has brought nothing since", async () => {
    const reason = await ends(() => {});
    assert.equal((reason as NetworkError).reason, "DeadPeer");
    assert.match(String(reason), /the watch is taken for dead: what the server has does not come/);
  });

  it("leaves one that has brought an event, or bytes of one", async () => {
    assert.equal(await ends(({ watcher }) => watcher.add({ metadata: { name: "a" } })), false);
    assert.equal(await ends(({ arrived }) => arrived(10)), false);
  });

  it("leaves one that was opened since", async () => {
    const { clock, watch, signal, watcher, followed } = await followWatch();
    watch.overdue(momentOf(clock));
    assert.equal(signal.aborted, false);
    watcher.stop();
    await followed;
  });
});

describe("OpenWatch.received", () => {
  it("is when the last bytes came: a read that brought none is no sign of the server", async () => {
    const { clock, watch, watcher, followed, arrived } = await followWatch();
    await clock.advance(1_000);
    const cameMs = clock.monotonicNow();
    arrived(10);
    await clock.advance(5_000);
    arrived(0);
    assert.equal(watch.received?.monotonicMs, cameMs);
    watcher.stop();
    await followed;
  });
});

describe("OpenWatch.relistAt", () => {
  it("ends the watch at the time that was set last, and not at the one before", async () => {
    const { clock, watch, followed } = await followWatch();
    const startMs = clock.monotonicNow();
    const ended = followed.then((reason) => ({ reason, afterMs: clock.monotonicNow() - startMs }));
    watch.relistAt(startMs + 10_000);
    watch.relistAt(startMs + 20_000);
    await clock.advance(30_000);
    const { reason, afterMs } = await ended;
    assert.ok(reason instanceof RelistDue);
    assert.equal(afterMs, 20_000);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("OpenWatch.follow", () => {
  it("aborts the signal of its source, also of one whose stream cannot be left", async () => {
    const { watch, followed, signal } = await followWatch({
      stream: {
        [Symbol.asyncIterator]: () => ({
          next: () => new Promise<never>(() => {}),
          return: () => {
            throw new Error("it cannot be left");
          },
        }),
      },
    });
    assert.equal(signal.aborted, false);
    watch.close();
    assert.equal((await followed as Error).name, "AbortError");
    assert.equal(signal.aborted, true);
  });

  it("ends as suspended where its server had no time to end it, as the program did not run", async () => {
    const { clock, followed } = await followWatch({ expectsBookmarks: false });
    await clock.advance(304_000); // one second before it is taken for dead, eleven before the next look
    await clock.jump(60_000);
    assert.ok(await followed instanceof SuspendedError);
  });

  it("leaves no timer behind when the watch ends", async () => {
    const { clock } = await followedWatch();
    assert.equal(clock.pendingTimers, 0);
  });

  it("starts no timer on a watch that has ended: what it brought is processed in a later turn", async () => {
    const { clock, watch } = await followedWatch();
    watch.relistAt(clock.monotonicNow() + 60_000);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("every", () => {
  it("calls no more once it was stopped, also by the call itself", async () => {
    const clock = new FakeClock();
    let calls = 0;
    const stop = every(1_000, clock, () => {
      if (++calls === 2) stop();
    });
    await clock.advance(5_000);
    assert.deepEqual([calls, clock.pendingTimers], [2, 0]);
  });
});
