import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  CacheSyncError,
  isConnectionRefused,
  isForbidden,
  isNotFound,
  NetworkError,
  StatusError,
  waitForCacheSync,
} from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import { type HasSynced, waitFor } from "@listwatch/cache/informer";
import { FakeClock } from "@listwatch/cache/testing";
import { sleep } from "../../src/util/abort.ts";
import { Latch } from "../../src/util/deferred.ts";
import { CountingSignal } from "../counting_signal.ts";
import { LogRecorder } from "../log_recorder.ts";
import { newRig } from "./rig.ts";

/** Something that has synced when the test says so. */
class Thing implements HasSynced {
  readonly name: string;
  readonly #latch = new Latch();

  constructor(name: string) {
    this.name = name;
  }

  hasSynced(): boolean {
    return this.#latch.isOpen;
  }

  synced(): Promise<void> {
    return this.#latch.opened;
  }

  sync(): void {
    this.#latch.open();
  }
}

function synced(name: string): Thing {
  const thing = new Thing(name);
  thing.sync();
  return thing;
}

describe("waitForCacheSync and waitFor", () => {
  it("for nothing is over at once", async () => {
    assert.equal(await waitForCacheSync([]), true);
    assert.equal(await waitForCacheSync([], AbortSignal.abort()), true);
  });

  it("that have synced is over at once, even if the signal is aborted", async () => {
    assert.equal(await waitForCacheSync([synced("a"), synced("b")], AbortSignal.abort()), true);
    const logger = new LogRecorder();
    const options = { what: "the caches", signal: AbortSignal.abort(), logger };
    assert.equal(await waitFor([synced("a")], options), true);
    assert.deepEqual(logger.lines.slice(1), ["info: done waiting for the caches: a"]);
  });

  it("ends when the last has synced", async () => {
    const things = [new Thing("a"), new Thing("b")];
    let result: boolean | undefined;
    const waiting = waitForCacheSync(things).then((it) => (result = it));
    things[1].sync();
    await Promise.resolve();
    assert.equal(result, undefined);
    things[0].sync();
    await waiting;
    assert.equal(result, true);
  });

  it("ends with false when the signal is aborted first", async () => {
    const abort = new AbortController();
    const waiting = waitForCacheSync([synced("a"), new Thing("b")], abort.signal);
    abort.abort();
    assert.equal(await waiting, false);
  });

  it("logs each one that has synced, in that order", async () => {
    const clock = new FakeClock();
    const log = new LogRecorder();
    const delays = [["slow", 10_000], ["quick", 5_000], ["ready", 0]] as const;
    const things = delays.map(([name, ms]) => {
      const thing = new Thing(name);
      sleep(ms, { clock }).then(() => thing.sync());
      return thing;
    });
    const waiting = waitFor(things, { what: "the caches", logger: log });
    await clock.advance(10_000);
    assert.equal(await waiting, true);
    assert.deepEqual(log.lines, [
      "info: waiting for the caches",
      "info: done waiting for the caches: ready",
      "info: done waiting for the caches: quick",
      "info: done waiting for the caches: slow",
    ]);
  });

  it("logs the ones that have not synced, by name, and why the wait ended", async () => {
    const log = new LogRecorder();
    const things = [new Thing("pods"), synced("services"), new Thing("nodes")];
    const signal = AbortSignal.abort(new Error("the program ends"));
    assert.equal(await waitFor(things, { what: "the caches", signal, logger: log }), false);
    assert.deepEqual(log.of("warn"), [
      "warn: stopped waiting for the caches: nodes, pods have not synced: the program ends",
    ]);
  });

  it("ends the other waits when one of them ends, and says why, whatever they fail with", async () => {
    const signals: AbortSignal[] = [];
    const one = (error?: Error): HasSynced => ({
      hasSynced: () => false,
      synced: (signal) => {
        signals.push(signal!);
        return error === undefined ? new Promise(() => {}) : Promise.reject(error);
      },
    });
    assert.equal(await waitFor([one(), one(new Error("it has stopped")), one()]), false);
    assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true, true]);
    const log = new LogRecorder();
    const stop = new AbortController();
    const late: HasSynced = {
      hasSynced: () => false,
      synced: () => (stop.abort(new Error("shutting down")), Promise.reject(new Error("of its own"))),
    };
    assert.equal(await waitFor([late], { what: "caches", signal: stop.signal, logger: log }), false);
    assert.match(log.lines.at(-1)!, /stopped waiting for caches: \(unnamed\) has not synced: shutting down/);
  });

  it("says why the signal was aborted, also where a cache says something else at that moment", async () => {
    const log = new LogRecorder();
    const stop = new AbortController();
    const own: HasSynced = {
      hasSynced: () => false,
      synced: (signal) =>
        new Promise((_, reject) => signal!.addEventListener("abort", () => reject(new Error("of its own")))),
    };
    const waits = waitFor([own], { what: "caches", signal: stop.signal, logger: log });
    stop.abort(new Error("shutting down"));
    assert.equal(await waits, false);
    assert.match(log.lines.at(-1)!, /shutting down/);
  });

  it("leaves no listener at the signal", async () => {
    const counting = new CountingSignal();
    assert.equal(await waitForCacheSync([synced("a")], counting.signal), true);
    assert.equal(counting.listeners, 0);
  });

  it("logs nothing without the option what", async () => {
    const log = new LogRecorder();
    await waitFor([synced("a"), new Thing("b")], { signal: AbortSignal.abort(), logger: log });
    assert.deepEqual(log.lines, []);
  });

  it("takes informers, controllers and registrations alike", async () => {
    await using rig = newRig();
    const { registration } = rig.record();
    const waiting = waitForCacheSync([rig.informer, registration]);
    await rig.start();
    assert.equal(await waiting, true);
  });

  it("ends with false when an informer stops that had not synced", async () => {
    const rig = newRig();
    rig.source.listError = new Error("it broke");
    const waiting = waitForCacheSync([rig.informer, new Thing("another")]);
    await rig.start();
    await rig.stop();
    assert.equal(await waiting, false);
  });
});

describe("waitForCacheSync for a cache whose server cannot be read", () => {
  const failures: [Error, RegExp, (error: unknown) => boolean][] = [
    [
      new NetworkError("ConnectionRefused", "connect ECONNREFUSED 10.0.0.1:6443"),
      /^Cannot sync things: the server refused the connection \(connect ECONNREFUSED 10\.0\.0\.1:6443\), attempt 1$/,
      isConnectionRefused,
    ],
    [
      new StatusError(newStatus(403, "Forbidden", "pods is forbidden")),
      /^Cannot sync things: the server answered 403 Forbidden \(pods is forbidden\), attempt 1$/,
      isForbidden,
    ],
    [
      new StatusError(newStatus(404, "NotFound", "the server could not find the requested resource")),
      /the server answered 404 NotFound/,
      isNotFound,
    ],
  ];
  for (const [failure, message, predicate] of failures) {
    const isTheReason = (error: unknown): true => {
      assert.ok(error instanceof CacheSyncError);
      assert.deepEqual([error.code, error.unsynced], ["CacheSync", ["things"]]);
      assert.match(error.message, message);
      assert.equal(error.cause, failure);
      assert.ok(predicate(error));
      assert.equal((error.endedBy as Error).name, "TimeoutError");
      return true;
    };

    it(`throws the reason: ${failure.message}`, async () => {
      await using rig = newRig({ name: "things" });
      rig.source.listError = failure;
      const abort = new AbortController();
      const synced = assert.rejects(rig.informer.synced(abort.signal), isTheReason);
      const all = assert.rejects(waitForCacheSync([rig.informer], abort.signal), isTheReason);
      const log = new LogRecorder();
      const logged = waitFor([rig.informer], { what: "the caches", signal: abort.signal, logger: log });
      await rig.start();
      abort.abort(new DOMException("30 s are over", "TimeoutError"));
      await Promise.all([synced, all]);
      assert.equal(await logged, false);
      assert.match(log.of("warn")[0], /things has not synced: Cannot sync things: /);
    });
  }

  it("throws the reason for a handler's registration as well", async () => {
    await using rig = newRig({ name: "things" });
    rig.source.listError = new Error("it broke");
    const { registration } = rig.record();
    const abort = new AbortController();
    const waits = assert.rejects(
      waitForCacheSync([registration], abort.signal),
      /Cannot sync things: .*: it broke/,
    );
    await rig.start();
    abort.abort();
    await waits;
  });

  it("names those that have not synced in their order, whatever the order of the wait", async () => {
    const error = new NetworkError("ConnectionRefused", "connection refused");
    const failing = ["pods", "nodes"].map((name) =>
      Object.assign(new Thing(name), { failure: () => ({ error, failedTries: 1 }) })
    );
    await assert.rejects(waitForCacheSync(failing, AbortSignal.abort()), { unsynced: ["nodes", "pods"] });
  });

  it("says how the wait ended where nothing has failed", async () => {
    const rig = newRig({ name: "things" });
    const tooLate = new Error("too late");
    await assert.rejects(rig.informer.synced(AbortSignal.abort(tooLate)), (error: unknown) => {
      assert.ok(error instanceof CacheSyncError);
      assert.deepEqual([error.message, error.cause], [
        "Cannot sync things: too late; call start() first",
        tooLate,
      ]);
      return true;
    });
  });

  it("does not suspect that a running informer was never started", async () => {
    const rig = newRig({ name: "things" });
    rig.source.listError = new Error("it broke");
    await rig.start();
    await assert.rejects(
      rig.informer.synced(AbortSignal.abort()),
      /: it broke, attempt 1$/,
    );
    await rig.stop();
  });

  it("says what the tries failed with when it was stopped", async () => {
    const rig = newRig({ name: "things" });
    rig.source.listError = new Error("it broke");
    await rig.start();
    const synced = assert.rejects(rig.informer.synced(), /it stopped before it had synced: it broke/);
    await rig.stop();
    await synced;
    assert.equal(rig.informer.failure(), undefined);
  });

  it("ends with false where one stops, though another one has failed, while the signal is not aborted", async () => {
    const [failing, stopped] = [newRig({ name: "things" }), newRig({ name: "others" })];
    for (const { source } of [failing, stopped]) source.listError = new Error("it broke");
    for (const rig of [failing, stopped]) await rig.start();
    const waits = waitForCacheSync([failing.informer, stopped.informer], new AbortController().signal);
    await stopped.stop();
    assert.equal(await waits, false);
    await failing.stop();
  });
});
