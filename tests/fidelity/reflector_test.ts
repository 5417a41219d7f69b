import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, type Metrics, silentLogger, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { ReflectorStore } from "@listwatch/cache/queue";
import { type ListerWatcher, Reflector } from "@listwatch/cache/reflector";
import { FakeClock, FakeCustomStore, FakeWatcher, pod } from "@listwatch/cache/testing";

/** A source whose every watch is held by the test, and whose lists hold one pod. */
function heldSource() {
  const watches: FakeWatcher[] = [];
  const source: ListerWatcher<KubernetesObject> = {
    description: "pods",
    list: () => Promise.resolve({ metadata: { resourceVersion: "10" }, items: [pod("web-1")] }),
    watch: () => {
      const watch = new FakeWatcher();
      watches.push(watch);
      return Promise.resolve(watch);
    },
  };
  return { source, watches };
}

describe("Reflector's backoff", () => {
  it("is reset by two minutes of an open watch, not by the passage of time or by a watch that opens", async () => {
    const clock = new FakeClock();
    const { source, watches } = heldSource();
    let resets = 0;
    const backoff = { nextDelayMs: () => 60_000, reset: () => void resets++ };
    const options = { clock, backoff, useWatchList: false, logger: silentLogger };
    const reflector = new Reflector<KubernetesObject>(source, new FakeCustomStore(), options);
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    await clock.advance(0);

    for (let failures = 1; failures <= 5; failures++) {
      await clock.advance(60_000); // healthy, but not for long enough
      watches.at(-1)!.error(newStatus(500, "InternalError", "etcdserver: leader changed"));
      await clock.advance(60_000); // the delay
      assert.equal(reflector.status().phase, "watching", `after failure ${failures}`);
    }
    assert.equal(resets, 0);

    await clock.advance(120_000);
    watches.at(-1)!.error(newStatus(500, "InternalError", "etcdserver: leader changed"));
    await clock.advance(0);
    assert.equal(resets, 1);
    stop.abort();
    await running;
  });
});

describe("Metrics of a Reflector", () => {
  it("are written; upstream's provider is never called", async () => {
    const clock = new FakeClock();
    const { source, watches } = heldSource();
    const counted = new Map<string, number>();
    const metrics: Metrics = {
      count: (name, value) => void counted.set(name, (counted.get(name) ?? 0) + value),
      gauge: () => {},
      observe: (name) => void counted.set(name, (counted.get(name) ?? 0) + 1),
    };
    const options = { clock, metrics, useWatchList: false, logger: silentLogger };
    const reflector = new Reflector<KubernetesObject>(source, new FakeCustomStore(), options);
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    await clock.advance(0);
    watches[0].add(pod("web-2"));
    await clock.advance(5_000);
    watches[0].stop();
    await clock.advance(0);
    stop.abort();
    await running;
    const of = (name: string) => counted.get(`reflector_${name}`);
    assert.deepEqual([of("lists_total"), of("list_duration_seconds"), of("items_per_list")], [1, 1, 1]);
    assert.deepEqual([of("watches_total"), of("events_total"), of("reconnects_total")], [2, 1, 1]);
  });
});

describe("ReflectorStore", () => {
  it("may lack bookmark, and needs no other optional method", async () => {
    const clock = new FakeClock();
    const { source, watches } = heldSource();
    const calls: string[] = [];
    const store: ReflectorStore<KubernetesObject> = {
      add: () => calls.push("add"),
      update: () => calls.push("update"),
      delete: () => calls.push("delete"),
      replace: (objects) => calls.push(`replace ${objects.length}`),
      resync: () => calls.push("resync"),
    };
    const options = { clock, useWatchList: false, logger: silentLogger };
    const reflector = new Reflector<KubernetesObject>(source, store, options);
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    await clock.advance(0);
    watches[0].bookmark("12");
    watches[0].delete(pod("web-1", { resourceVersion: "13" }));
    await clock.advance(0);
    assert.deepEqual(calls, ["replace 1", "delete"]);
    assert.equal(reflector.lastSyncResourceVersion(), "13");
    stop.abort();
    await running;
  });
});

describe("Reflector with a list that the server always refuses", () => {
  it("repeats the list for ever: only the signal ends a reflector", async () => {
    const clock = new FakeClock();
    const errors: Error[] = [];
    const source: ListerWatcher<KubernetesObject> = {
      list: () => Promise.reject(new StatusError(newStatus(403, "Forbidden", "no"))),
      watch: () => Promise.reject(new StatusError(newStatus(403, "Forbidden", "no"))),
    };
    const reflector = new Reflector<KubernetesObject>(source, new FakeCustomStore(), {
      clock,
      backoff: { nextDelayMs: () => 1_000 },
      watchErrorHandler: (error) => void errors.push(error),
    });
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    await clock.advance(3_600_000);
    assert.ok(errors.length >= 3_000, `${errors.length}`);
    stop.abort();
    await running;
  });
});
