import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError, type ReflectorStatus, silentLogger } from "@listwatch/cache";
import { Reflector } from "@listwatch/cache/reflector";
import { FakeClock, type FakeWatcher } from "@listwatch/cache/testing";
import { CountingSignal } from "../counting_signal.ts";
import {
  type Answer,
  at,
  newRun,
  openWatch,
  page,
  refusal,
  type Run,
  ScriptedSource,
  statuses,
  StoreRecorder,
} from "./scripted_source.ts";

const refused = new NetworkError("ConnectionRefused", "connection refused");
const END = { "k8s.io/initial-events-end": "true" };

describe("Reflector.status", () => {
  it("goes through its phases, and notifies listeners in the turn of the change", async () => {
    const watcher = openWatch();
    const run = newRun([{ list: page("a@1", "10") }, { watch: watcher }, { watch: refused }, {
      watch: openWatch(),
    }]);
    const phases: string[] = [];
    const notified: unknown[] = [];
    const asked: unknown[] = [];
    const unlisten = run.reflector.onStatus((status) => {
      notified.push(status);
      asked.push(run.reflector.status());
      if (phases.at(-1) !== status.phase) phases.push(status.phase);
    });
    assert.deepEqual(run.reflector.status(), {
      phase: "idle",
      resourceVersion: "",
      attempt: 0,
      quarantined: 0,
    });
    await run.start();
    await run.clock.advance(10_000);
    watcher.stop();
    await run.clock.advance(800);
    await run.stop();
    assert.deepEqual(phases.splice(0), ["listing", "watching", "backingOff", "watching", "stopped"]);
    assert.deepEqual(asked, notified);
    unlisten();
    await run.reflector.run(AbortSignal.abort());
    assert.deepEqual(phases, []);
  });

  it("counts the tries that failed in a row, says when the next comes, and what went wrong last", async () => {
    await using run = newRun([
      { list: refusal("forbidden") },
      { list: refused },
      { list: page("", "10") },
      { watch: openWatch() },
    ]);
    await run.clock.advance(1_000_000);
    await run.start();
    const first = run.reflector.status();
    assert.deepEqual([first.phase, first.attempt, first.nextRetryTimeMs], ["backingOff", 1, 1_000_800]);
    assert.deepEqual(first.lastError, { message: "pods is forbidden", code: "Forbidden", timeMs: 1_000_000 });
    await run.clock.advance(800);
    const second = run.reflector.status();
    assert.deepEqual([second.phase, second.attempt, second.nextRetryTimeMs], ["backingOff", 2, 1_002_400]);
    await run.clock.advance(1_600);
    const third = run.reflector.status();
    assert.deepEqual([third.phase, third.attempt, third.nextRetryTimeMs], ["watching", 0, undefined]);
    assert.deepEqual(third.lastError, {
      message: "connection refused",
      code: "ConnectionRefused",
      timeMs: 1_000_800,
    });
  });

  it("reports when the last event and the last bookmark came", async () => {
    const watcher = openWatch();
    await using run = newRun([{ list: page("", "10") }, { watch: watcher }]);
    await run.start();
    await run.clock.advance(1_000);
    watcher.bookmark("11");
    await run.clock.advance(1_000);
    watcher.add(at("a@12"));
    await run.clock.advance(0);
    const { lastEventTimeMs, lastBookmarkTimeMs } = run.reflector.status();
    assert.deepEqual([lastEventTimeMs, lastBookmarkTimeMs], [2_000, 1_000]);
  });

  it("reports how far a list has come", async () => {
    const first = page("a@1 b@2", "10", "C1");
    await using run = newRun([
      { list: { ...first, metadata: { ...first.metadata, remainingItemCount: 1 } } },
      { list: page("c@3", "10") },
      { watch: openWatch() },
    ]);
    const progress: ReflectorStatus["progress"][] = [];
    run.reflector.onStatus((status) => {
      if (status.phase === "listing") progress.push(status.progress);
    });
    await run.start();
    assert.deepEqual(progress, [{ items: 0 }, { items: 2, remaining: 1 }, { items: 3 }]);
    assert.equal(run.reflector.status().progress, undefined);
  });

  it("that was handed out does not change", async () => {
    await using run = newRun([{ list: page("", "10") }, { watch: openWatch() }]);
    const before = run.reflector.status();
    await run.start();
    assert.equal(before.phase, "idle");
  });
});

describe("Reflector, among callbacks that throw,", () => {
  const broken = () => {
    throw new Error("callback broke");
  };

  it("continues when the watch error handler throws", async () => {
    await using run = newRun([{ list: refusal("forbidden") }, { list: page("", "10") }, {
      watch: openWatch(),
    }], {
      watchErrorHandler: broken,
    });
    await run.start();
    await run.clock.advance(800);
    assert.equal(run.reflector.status().phase, "watching");
    assert.deepEqual(run.log.of("error"), ["error: pods: watchErrorHandler threw: callback broke"]);
  });

  it("continues when a status listener throws", async () => {
    await using run = newRun([{ list: page("", "10") }, { watch: openWatch() }]);
    run.reflector.onStatus(broken);
    await run.start();
    assert.equal(run.reflector.status().phase, "watching");
    assert.match(run.log.of("error")[0], /a status listener threw: callback broke/);
  });

  it("continues when onQuarantined throws", async () => {
    const watcher = openWatch((one) => {
      one.add({ kind: "Pod" });
      one.add(at("a@20"));
    });
    await using run = newRun([{ list: page("", "10") }, { watch: watcher }], { onQuarantined: broken });
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10:", "add a@20"]);
    assert.match(run.log.of("error")[0], /onQuarantined threw: callback broke/);
  });

  it("continues when they are asynchronous and reject", async () => {
    const rejecting = () => Promise.reject(new Error("it broke later"));
    const watcher = openWatch((one) => one.add({ kind: "Pod" }));
    await using run = newRun([{ list: refusal("forbidden") }, { list: page("", "10") }, { watch: watcher }], {
      watchErrorHandler: rejecting,
      onQuarantined: rejecting,
    });
    run.reflector.onStatus(rejecting);
    await run.start();
    await run.clock.advance(800);
    assert.equal(run.reflector.status().phase, "watching");
    const logged = run.log.of("error").join("\n");
    for (const what of ["watchErrorHandler", "onQuarantined", "a status listener"]) {
      assert.match(logged, new RegExp(`${what} threw: it broke later`));
    }
  });

  it("continues when the source throws something that is no error", async () => {
    await using run = newRun([{ list: "text" as never }, { list: page("", "10") }, { watch: openWatch() }]);
    const list = run.source.list.bind(run.source);
    let failures = 1;
    run.source.list = (options, context) => {
      // deno-lint-ignore no-throw-literal -- sources do such things
      if (failures-- > 0) throw "a string";
      return list(options, context);
    };
    run.source.then();
    await run.start();
    assert.deepEqual(run.errors.map((error) => error.message), ["a string"]);
    assert.equal(run.reflector.status().phase, "backingOff");
  });
});

describe("Reflector.run", () => {
  it("cannot be run a second time meanwhile, but again afterwards, from where it was", async () => {
    const run = newRun([
      { list: page("", "10") },
      { watch: openWatch() },
      { list: page("", "11") },
      { watch: openWatch() },
    ]);
    await run.start();
    await assert.rejects(run.reflector.run(new AbortController().signal), TypeError);
    await run.stop();
    const abort = new AbortController();
    const again = run.reflector.run(abort.signal);
    await run.clock.advance(0);
    assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'watch "11"']);
    abort.abort();
    await again;
  });

  it("asks nothing when its signal is aborted already", async () => {
    const run = newRun([]);
    await run.reflector.run(AbortSignal.abort());
    await run.reflector.listAndWatch(AbortSignal.abort());
    assert.deepEqual(run.source.requests, []);
  });

  it("for one cycle throws what ended it, if that is to be reported", async () => {
    const signal = new AbortController().signal;
    const error = refusal("forbidden");
    await assert.rejects(newRun([{ list: error }]).reflector.listAndWatch(signal), error);
    await assert.rejects(
      newRun([{ list: page("", "1") }, { watch: error }]).reflector.listAndWatch(signal),
      error,
    );
    const expired = openWatch((watcher) => watcher.error(statuses.expired));
    const quiet = newRun([{ list: page("", "1") }, { watch: expired }]);
    await quiet.reflector.listAndWatch(signal);
    assert.equal(quiet.clock.pendingTimers, 0);
    assert.equal(quiet.reflector.status().phase, "stopped");
  });

  it("for one cycle names no next try, and cannot be run a second time meanwhile", async () => {
    const signal = new AbortController().signal;
    const failing = newRun([{ list: refusal("forbidden") }]);
    await assert.rejects(failing.reflector.listAndWatch(signal));
    assert.match(failing.log.of("warn").join(), /403 Forbidden \(pods is forbidden\)$/);
    const run = newRun([{ list: "hang" }]);
    const stop = new AbortController();
    const running = run.reflector.listAndWatch(stop.signal);
    await assert.rejects(run.reflector.listAndWatch(signal), TypeError);
    stop.abort();
    await running;
  });
});

describe("Reflector.run, when its signal is aborted,", () => {
  it("says nothing of the requests that this ends, and has no failure", async () => {
    const listed = { list: page("", "1") };
    const scripts: readonly (readonly Answer[])[] = [
      [{ list: "hang" }],
      [{ watch: "hang" }],
      [{ watch: openWatch() }],
      [listed, { watch: "hang" }],
      [listed, { watch: openWatch() }],
    ];
    for (const script of scripts) {
      const run = newRun(script, { useWatchList: "watch" in script[0] });
      await run.start();
      await run.stop();
      assert.deepEqual([run.log.lines, run.errors, run.reflector.failure()], [[], [], undefined]);
      assert.equal(run.reflector.status().lastError, undefined);
    }
  });

  it("by the watch error handler, plans no next try", async () => {
    const stop = new AbortController();
    const run = newRun([{ list: refusal("forbidden") }], { watchErrorHandler: () => stop.abort() });
    await run.reflector.run(stop.signal);
    assert.deepEqual(run.log.of("warn"), []);
    assert.equal(run.reflector.failure(), undefined, "it does not run");
  });

  it("by the store of a streamed list, closes the stream that has brought it", async () => {
    const stream = openWatch((watcher) => watcher.bookmark("10", { "k8s.io/initial-events-end": "true" }));
    const run = newRun([{ watch: stream }], { useWatchList: true });
    const stop = new AbortController();
    run.store.check = () => stop.abort();
    await run.reflector.run(stop.signal);
    assert.deepEqual([run.source.closed, run.clock.pendingTimers], [[1], 0]);
  });

  it("closes its watch once and leaves no timer, whatever it is at", async () => {
    const scripts: Record<string, () => Answer[]> = {
      listing: () => [{ list: "hang" }],
      "opening a watch": () => [{ list: page("", "10") }, { watch: "hang" }],
      watching: () => [{ list: page("", "10") }, { watch: openWatch((one) => one.bookmark("11")) }],
      "backing off to list": () => [{ list: refused }],
      "backing off to watch": () => [{ list: page("", "10") }, { watch: refused }],
    };
    for (const [what, script] of Object.entries(scripts)) {
      const run = newRun(script(), { resyncPeriodMs: 60_000 });
      await run.start();
      await run.stop();
      assert.equal(run.clock.pendingTimers, 0, what);
      assert.deepEqual(run.source.closed.filter((count) => count !== 1), [], what);
      assert.equal(run.source.open, 0, what);
      assert.equal(run.reflector.status().phase, "stopped", what);
    }
  });

  it("at any moment ends, closes every stream once, and leaves no timer", async () => {
    const scripts: Record<string, () => Answer[]> = {
      "pages, a watch and its events": () => [
        { watch: refusal("invalid") },
        { list: page("a@1", "10", "C1") },
        { list: page("b@2", "10") },
        { watch: openWatch((one) => one.add(at("c@11"))) },
      ],
      "a stream that continues as a watch": () => [
        {
          watch: openWatch((one) => {
            one.add(at("a@1"));
            one.bookmark("10", END);
            one.add(at("b@11"));
          }),
        },
      ],
      "a stream that is refused, and a list": () => [
        { watch: refusal("invalid") },
        { list: page("a@1", "10") },
        { watch: openWatch() },
      ],
      "a stream that ends early": () => [{
        watch: openWatch((one) => {
          one.add(at("a@1"));
          one.stop();
        }),
      }],
      "a stream that breaks off": () => [{
        watch: openWatch((one) => {
          one.add(at("a@1"));
          one.fail(new NetworkError("ConnectionReset", "connection reset"));
        }),
      }],
      "expired versions": () => [
        { watch: refusal("expired") },
        { watch: refusal("invalid") },
        { list: refusal("expired") },
        { list: page("a@1", "10") },
        { watch: openWatch((one) => one.error(statuses.expired)) },
      ],
      "a watch that is refused": () => [
        { watch: refusal("invalid") },
        { list: page("", "10") },
        { watch: refusal("forbidden") },
      ],
      "a watch that fails and is opened again": () => [
        { watch: refusal("invalid") },
        { list: page("", "10") },
        { watch: openWatch((one) => one.error(statuses.internal)) },
        { watch: openWatch((one) => one.error(statuses.internal)) },
        { watch: openWatch() },
      ],
    };
    for (const [what, script] of Object.entries(scripts)) {
      let wasWatching = false;
      for (let turns = 0; turns < 90; turns++) {
        const run = newRun(script(), {
          useWatchList: true,
          resyncPeriodMs: 60_000,
          maxInternalErrorRetryMs: 60_000,
        });
        await stopAfter(turns, run);
        const where = `${what}, stopped after ${turns} microtasks, at ${run.source.requests.at(-1)}`;
        assert.equal(run.clock.pendingTimers, 0, where);
        assert.equal(run.reflector.status().phase, "stopped", where);
        assert.deepEqual(run.source.problems, [], where);
        assert.ok(run.source.closed.every((count) => count <= 1), where);
        assert.equal(run.source.open, 0, where);
        assert.deepEqual(run.errors.filter(isAbort), [], where);
        wasWatching ||= run.source.left === 0;
      }
      assert.ok(wasWatching, `${what}: 90 microtasks are too few to get to the end`);
    }
  });
});

describe("Reflector, over a source that ignores the signal,", () => {
  it("ends nevertheless, and closes the stream that comes too late", async () => {
    const run = newRun([{ list: page("", "10") }]);
    const answer = Promise.withResolvers<FakeWatcher>();
    run.source.watch = () => answer.promise;
    await run.start();
    await run.stop();
    assert.equal(run.clock.pendingTimers, 0);
    const late = openWatch();
    answer.resolve(late);
    await run.clock.advance(0);
    assert.equal(late.isClosedByReader, true);
  });

  it("does not wait for what comes too late when it gives up waiting", async () => {
    await using run = newRun([{ list: page("", "10") }]);
    const answers = [Promise.withResolvers<FakeWatcher>(), Promise.withResolvers<FakeWatcher>()];
    let watches = 0;
    run.source.watch = () => answers[watches++].promise;
    await run.start();
    await run.clock.advance(30_000 + 800);
    assert.equal(watches, 2);
    const [late, current] = answers.map((answer) => {
      const watcher = openWatch();
      answer.resolve(watcher);
      return watcher;
    });
    await run.clock.advance(0);
    current.add(at("a@11"));
    await run.clock.advance(0);
    assert.deepEqual([late.isClosedByReader, current.isClosedByReader], [true, false]);
    assert.deepEqual(run.store.operations, ["replace 10:", "add a@11"]);
  });
});

/** What an aborted request fails with, which is no failure. */
function isAbort(error: Error): boolean {
  return error.name === "AbortError";
}

/** Runs a reflector, lets so many microtasks pass, and stops it. */
async function stopAfter(turns: number, { reflector }: Run): Promise<void> {
  const abort = new AbortController();
  const running = reflector.run(abort.signal);
  for (let i = 0; i < turns; i++) await null;
  abort.abort();
  await running;
}

describe("Reflector, with a dead peer,", () => {
  async function watching(watcher: FakeWatcher) {
    const run = newRun([{ list: page("", "10") }, { watch: watcher }, { watch: openWatch() }]);
    await run.start();
    return run;
  }

  it("gives a watch up that the server should have ended", async () => {
    const watcher = openWatch();
    await using run = await watching(watcher);
    for (let version = 11; version <= 15; version++) {
      await run.clock.advance(60_000);
      watcher.bookmark(String(version));
    }
    await run.clock.advance(4_999);
    assert.equal(run.source.left, 1);
    await run.clock.advance(1);
    assert.deepEqual(run.source.requests.slice(2), ['watch "15"']);
    assert.deepEqual(run.source.closed, [1, 0]);
    assert.equal(run.reflector.status().lastError?.code, "DeadPeer");
    assert.deepEqual(run.errors, []);
  });

  it("gives a watch up whose bookmarks stopped", async () => {
    await using run = await watching(openWatch((watcher) => watcher.bookmark("11")));
    await run.clock.advance(89_999);
    assert.equal(run.source.left, 1);
    await run.clock.advance(1);
    assert.deepEqual(run.source.requests.slice(2), ['watch "11"']);
  });

  it("gives the very first watch up as well when nothing at all comes, once: some servers send no bookmarks", async () => {
    await using run = newRun([
      { list: page("", "10") },
      { watch: openWatch() },
      { watch: openWatch() },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(89_999);
    assert.equal(run.source.requests.length, 2);
    await run.clock.advance(1);
    assert.deepEqual(run.source.requests.slice(2), ['watch "10"']);
    assert.match(run.reflector.status().lastError!.message, /nothing came for 90000 ms, no bookmark either/);
    await run.clock.advance(304_999);
    assert.equal(run.source.requests.length, 3);
    await run.clock.advance(1);
    assert.equal(run.source.requests.length, 4, "its timeout counts too");
  });

  it("gives a silent watch up once more after its server was away, which may be so again unnoticed", async () => {
    await using run = newRun([
      { list: page("", "10") },
      { watch: openWatch() },
      { watch: refused },
      { watch: refused },
      { watch: openWatch() },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(90_000);
    assert.equal(run.source.requests.length, 3);
    while (run.source.requests.length < 5) await run.clock.advance(100);
    await run.clock.advance(89_000);
    assert.equal(run.source.requests.length, 5);
    await run.clock.advance(2_000);
    assert.equal(run.source.requests.length, 6);
    await run.clock.advance(300_000);
    assert.equal(run.source.requests.length, 6, "the silence of its server means nothing more");
  });

  it("lets a first watch live that is slow, or whose server sends no bookmarks while something happens", async () => {
    const watcher = openWatch();
    await using run = newRun([{ list: page("", "10") }, { watch: watcher }, { watch: openWatch() }]);
    await run.start();
    for (let version = 11; version <= 13; version++) {
      await run.clock.advance(89_000);
      watcher.add(at(`a@${version}`));
    }
    await run.clock.advance(0);
    assert.equal(run.source.requests.length, 2);
  });

  it("expects bookmarks from the start where the watch before had some, and no more once a long one had none", async () => {
    const bookmarked = openWatch((watcher) => watcher.bookmark("11"));
    await using run = newRun([
      { list: page("", "10") },
      { watch: bookmarked },
      { watch: openWatch() },
      { watch: openWatch() },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(60_000);
    bookmarked.stop();
    await run.clock.advance(0);
    assert.equal(run.source.requests.length, 3);
    await run.clock.advance(89_999);
    assert.equal(run.source.requests.length, 3);
    await run.clock.advance(1);
    assert.equal(run.source.requests.length, 4, "it was taken for dead");
    await run.clock.advance(300_000);
    assert.equal(run.source.requests.length, 4);
  });

  it("waits half a minute for a watch to open, and a minute and a half for a page of a list", async () => {
    await using run = newRun([
      { list: page("", "10") },
      { watch: "hang" },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(30_000 + 800);
    assert.deepEqual(run.source.requests.slice(2), ['watch "10"']);
    assert.match(run.reflector.status().lastError!.message, /no answer within 30000 ms/);

    await using other = newRun([{ list: "hang" }, { list: page("", "10") }, { watch: openWatch() }]);
    await other.start();
    await other.clock.advance(90_000 + 800);
    assert.deepEqual(other.source.requests, ['list "0" limit 500', 'list "0" limit 500', 'watch "10"']);
    assert.match(other.errors[0].message, /no whole page within 90000 ms/);
  });
});

describe("ReflectorOptions: numbers", () => {
  it("are refused where they make no sense, when it is made", () => {
    const names = [
      "resyncPeriodMs",
      "minWatchTimeoutMs",
      "watchListPageSize",
      "watchListSilenceMs",
      "watchListEndMs",
      "openTimeoutMs",
      "listTimeoutMs",
      "bookmarkSilenceMs",
    ];
    for (const name of names) {
      for (const wrong of [NaN, -1]) {
        assert.throws(() => newRun([], { [name]: wrong }), {
          name: "RangeError",
          message: new RegExp(`^Cannot reflect pods with a ${name} of ${wrong}: it must be `),
        });
      }
    }
    assert.throws(() => newRun([], { watchListPageSize: Infinity }), RangeError);
    assert.throws(() => newRun([], { maxInternalErrorRetryMs: NaN }), RangeError);
    newRun([], { maxInternalErrorRetryMs: -1 });
    newRun([], { listTimeoutMs: Infinity });
  });
});

describe("Reflector.run: its signal", () => {
  it("collects no listeners, however many lists, streams, watches and delays there are", async () => {
    const script: Answer[] = [];
    const watchers: FakeWatcher[] = [];
    for (let i = 0; i < 6; i++) {
      const watcher = openWatch();
      watchers.push(watcher);
      script.push({ list: page("a@1", String(10 + 2 * i), "C") }, { list: page("b@2", String(10 + 2 * i)) });
      script.push({ watch: refusal("tooMany") }, { watch: watcher });
    }
    const source = new ScriptedSource(...script);
    const clock = new FakeClock();
    const counting = new CountingSignal();
    const reflector = new Reflector(source, new StoreRecorder(), {
      clock,
      logger: silentLogger,
      random: () => 0,
      useWatchList: false,
      backoff: { nextDelayMs: () => 1_000 },
    });
    const done = reflector.run(counting.signal);
    const listeners: number[] = [];
    for (const watcher of watchers) {
      await clock.advance(5_000);
      listeners.push(counting.listeners);
      watcher.error(statuses.expired);
    }
    assert.deepEqual(new Set(listeners), new Set([1]), listeners.join()); // the open watch
    assert.deepEqual(source.problems, []);
    counting.abort();
    await done;
  });

  it("collects none of streamed lists that fail either", async () => {
    const script: Answer[] = [];
    for (let i = 0; i < 8; i++) {
      script.push({
        watch: openWatch((watcher) => (watcher.add(at("a@1")), watcher.error(statuses.tooMany))),
      });
    }
    const source = new ScriptedSource(...script);
    const clock = new FakeClock();
    const counting = new CountingSignal();
    const reflector = new Reflector(source, new StoreRecorder(), {
      clock,
      logger: silentLogger,
      random: () => 0,
      backoff: { nextDelayMs: () => 1_000 },
    });
    const done = reflector.run(counting.signal);
    for (let i = 0; i < 6; i++) {
      await clock.advance(1_000);
      assert.equal(counting.listeners, 1, `after ${i} streams`);
    }
    counting.abort();
    await done;
  });
});
