import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError, type Status, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { FakeWatcher } from "@listwatch/cache/testing";
import { newDecodingStatus } from "../../src/watch/decode_watch.ts";
import { type Answer, at, newRun, openWatch, page, refusal, statuses } from "./scripted_source.ts";

const refused = new NetworkError("ConnectionRefused", "connection refused");

describe("Reflector: lists", () => {
  it("come from the server's cache at first, in pages; a watch follows from the list's version", async () => {
    await using run = newRun([{ list: page("a@1 b@2", "10") }, { watch: openWatch() }]);
    await run.start();
    assert.deepEqual(run.source.options, [
      { resourceVersion: "0", limit: 500 },
      { resourceVersion: "10", allowWatchBookmarks: true, timeoutSeconds: 300 },
    ]);
    assert.deepEqual(run.store.operations, ["replace 10: a@1 b@2"]);
    assert.equal(run.reflector.lastSyncResourceVersion(), "10");
    assert.deepEqual(run.source.problems, []);
  });

  it("are put together from pages, and given to the store at once", async () => {
    await using run = newRun([
      { list: page("a@1 b@2", "10", "C1") },
      { list: page("c@3 d@4", "10", "C2") },
      { list: page("e@5", "10") },
      { watch: openWatch() },
    ], { watchListPageSize: 2 });
    await run.start();
    assert.deepEqual(run.source.requests, [
      'list "0" limit 2',
      "list C1 limit 2",
      "list C2 limit 2",
      'watch "10"',
    ]);
    assert.deepEqual(run.store.operations, ["replace 10: a@1 b@2 c@3 d@4 e@5"]);
  });

  it("ask again for nothing older than what is known, without a limit so that the cache can answer", async () => {
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: refusal("forbidden") },
      { list: page("a@1", "11") },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests, ['list "0" limit 500', 'watch "10"', 'list "10"', 'watch "11"']);
  });

  it("continue in pages where the server sends pages of its cache", async () => {
    await using run = newRun([
      { list: page("a@1", "10", "C1") },
      { list: page("b@2", "10") },
      { watch: refusal("forbidden") },
      { list: page("a@1", "11") },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(2), ['watch "10"', 'list "10" limit 500', 'watch "11"']);
  });

  it("in pages say that they want a floor, where a list for the same one only brought what was known", async () => {
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: refusal("forbidden") },
      { list: page("a@1", "10") }, // a limit makes the version asked for an exact one
      { watch: refusal("forbidden") },
      { list: page("a@20", "20", "C1") },
      { list: page("b@2", "20") },
      { watch: openWatch() },
    ], { watchListPageSize: 1 });
    await run.start();
    await run.clock.advance(800 + 1_600);
    assert.deepEqual(run.source.options.filter((options) => options.limit !== undefined), [
      { resourceVersion: "0", limit: 1 },
      { resourceVersion: "10", limit: 1 },
      { resourceVersion: "10", resourceVersionMatch: "NotOlderThan", limit: 1 },
      { limit: 1, continue: "C1" },
    ]);
    assert.equal(run.reflector.lastSyncResourceVersion(), "20");
  });

  it("in pages that bring a version from which a watch has expired are followed at once by one for a floor", async () => {
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: refusal("expired") },
      { list: page("a@1", "10") },
      { list: page("a@20", "20", "C1") },
      { list: page("b@2", "20") },
      { watch: refusal("expired") },
      { list: page("a@20", "20") },
      { list: page("a@20", "20") }, // nothing is newer
      { watch: openWatch() },
    ], { watchListPageSize: 1 });
    await run.start();
    await run.clock.advance(800);
    assert.equal(run.reflector.lastSyncResourceVersion(), "20");
    await run.clock.advance(1_600);
    assert.deepEqual(run.source.options.filter((options) => options.limit !== undefined), [
      { resourceVersion: "0", limit: 1 },
      { resourceVersion: "10", limit: 1 },
      { resourceVersion: "10", resourceVersionMatch: "NotOlderThan", limit: 1 },
      { limit: 1, continue: "C1" },
      { resourceVersion: "20", limit: 1 },
      { resourceVersion: "20", resourceVersionMatch: "NotOlderThan", limit: 1 },
    ]);
    assert.equal(run.source.requests.at(-1), 'watch "20"');
  });

  it('at "0" are followed by a watch, although the last one from there expired', async () => {
    const list = { list: page("a@1", "0") };
    await using run = newRun([list, { watch: refusal("expired") }, list, { watch: openWatch() }]);
    await run.start();
    await run.clock.advance(800);
    const requests = ['list "0" limit 500', 'watch "0"'];
    assert.deepEqual(run.source.requests, [...requests, ...requests]);
  });

  it("ask for the most recent data when the server cannot read the version that is known", async () => {
    const bad = new StatusError(newStatus(400, "BadRequest", "invalid resource version"));
    const watcher = openWatch();
    await using run = newRun([
      { list: page("a@1", "of-another-server") },
      { watch: bad },
      { list: bad },
      { list: page("a@1", "20") },
      { watch: watcher },
    ]);
    await run.start();
    await run.clock.advance(10_000);
    assert.deepEqual(run.source.requests.slice(2), ['list "of-another-server"', 'list ""', 'watch "20"']);
  });

  it("ask for the most recent data when the version that is known expired", async () => {
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: refusal("expired") },
      { list: refusal("expired") },
      { list: page("a@20", "20") },
      { watch: openWatch() },
    ]);
    await run.start();
    assert.equal(run.reflector.isLastSyncResourceVersionUnavailable(), false);
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'list ""', 'watch "20"']);
    assert.equal(run.reflector.isLastSyncResourceVersionUnavailable(), false);
    assert.deepEqual(run.errors.map((error) => error.message), [statuses.expired.message]);
  });

  it("start again in one page, from the version first requested, when a continue token ran out", async () => {
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: refusal("expired") },
      { list: page("a@1", "20", "C1") },
      { list: refusal("expired") },
      { list: page("a@1 b@2", "30") },
      { watch: openWatch() },
    ], { watchListPageSize: 4 });
    await run.start();
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(2), [
      'list "10" limit 4',
      "list C1 limit 4",
      'list "10"',
      'watch "30"',
    ]);
  });

  it("ask for the most recent data when the server has not reached the version that is known", async () => {
    const formats: Status[] = [
      newStatus(504, "Timeout", "Timeout: Too large resource version: 20, current: 10", {
        causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      }),
      newStatus(504, "Timeout", "timed out", { causes: [{ message: "Too large resource version" }] }),
      newStatus(504, "Timeout", "Timeout: Too large resource version: 20, current: 10", {}),
    ];
    for (const format of formats) {
      await using run = newRun([
        { list: page("a@1", "20") },
        { watch: refusal("forbidden") },
        { list: new StatusError(format) },
        { list: page("a@1", "10") },
        { watch: openWatch() },
      ]);
      await run.start();
      await run.clock.advance(800);
      assert.deepEqual(run.source.requests.slice(2), ['list "20"', 'list ""', 'watch "10"'], format.message);
    }
  });

  it("that fail twice in a row for their version are reported once, and tried again later", async () => {
    await using run = newRun([
      { list: refusal("expired") },
      { list: refusal("expired") },
      { list: page("", "10") },
      { watch: openWatch() },
    ]);
    await run.start();
    assert.deepEqual(run.source.requests, ['list "0" limit 500', 'list "" limit 500']);
    assert.equal(run.errors.length, 1);
    assert.equal(run.reflector.isLastSyncResourceVersionUnavailable(), true);
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(2), ['list "" limit 500', 'watch "10"']);
  });

  it("whose pages go in a circle are reported, and tried again after delays that grow", async () => {
    const circle = Array.from({ length: 20 }, (_, i) => ({ list: page("a@1", "10", i % 2 ? "B" : "A") }));
    await using run = newRun([]);
    run.source.then(...circle);
    await run.start();
    assert.deepEqual(run.errors.map(({ name }) => name), ["DecodeError"]);
    assert.match(run.errors[0].message, /a page follows itself/);
    assert.deepEqual(run.store.operations, []);
    const requested = run.source.requests.length;
    await run.clock.advance(799);
    assert.equal(run.source.requests.length, requested);
    await run.clock.advance(1);
    assert.equal(run.errors.length, 2);
    assert.equal(run.reflector.status().nextRetryTimeMs, run.clock.now() + 1_600);
  });

  it("that fail are reported, and tried again after delays that grow", async () => {
    const broken = new Error("it broke");
    await using run = newRun(Array.from({ length: 9 }, () => ({ list: broken })));
    await run.start();
    const times = [0];
    for (let count = 1; run.source.left > 0;) {
      await run.clock.advance(100);
      if (run.source.requests.length === count) continue;
      count = run.source.requests.length;
      times.push(run.clock.now());
    }
    const delays = times.slice(1).map((time, i) => time - times[i]);
    assert.deepEqual(delays, [800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000, 15_000]);
    assert.deepEqual(new Set(run.errors), new Set([broken]));
    assert.equal(run.errors.length, 9);
  });

  it("ask for the most recent data without a rule for a version, after one that had to go beyond a version", async () => {
    const watcher = openWatch();
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: watcher },
      { list: refusal("expired") },
      { list: page("a@1", "20") },
      { watch: openWatch() },
    ], { watchListPageSize: 5 });
    await run.start();
    watcher.send({ type: "ERROR", object: newDecodingStatus("no JSON") });
    await run.clock.advance(2_000);
    assert.deepEqual(run.source.options.slice(2, 4), [
      { resourceVersion: "10", limit: 5, resourceVersionMatch: "NotOlderThan" },
      { resourceVersion: "", limit: 5 },
    ]);
  });

  it("are as old as their cache says, and consistent only where that is not older than the request", async () => {
    for (const ageMs of [undefined, 60_000]) {
      const lists = [{ list: refusal("expired") }, {
        list: { ...page("a@1", "10"), ...(ageMs && { ageMs }) },
      }];
      await using run = newRun([...lists, { watch: openWatch() }]);
      await run.clock.advance(100_000);
      await run.start();
      assert.deepEqual(run.source.requests.slice(1), ['list "" limit 500', 'watch "10"']);
      assert.equal(run.reflector.status().lagMs, ageMs ?? 0);
      assert.equal(run.reflector.consistentMs(), ageMs === undefined ? 100_000 : undefined);
    }
  });

  it("are consistent as of their request, unless a version may be older: a cache may answer that", async () => {
    await using run = newRun([{ list: page("a@1", "10") }, { watch: openWatch() }]);
    await run.start();
    assert.equal(run.reflector.consistentMs(), undefined);
    await using slow = newRun([{ list: refusal("expired") }, { list: page("", "10") }, {
      watch: openWatch(),
    }]);
    const list = slow.source.list.bind(slow.source);
    slow.source.list = async (options, context) => {
      await new Promise<void>((resolve) => slow.clock.setTimeout(resolve, 1_000));
      return await list(options, context);
    };
    await slow.start();
    await slow.clock.advance(2_000);
    assert.equal(slow.reflector.status().lagMs, 0);
    assert.equal(slow.reflector.consistentMs(), 1_000);
  });

  it("that are a Table are refused", async () => {
    const table = { ...page("", "10"), kind: "Table", apiVersion: "meta.k8s.io/v1" };
    await using run = newRun([{ list: table }]);
    await run.start();
    assert.match(run.errors[0].message, /Cannot take a Table for a list/);
    assert.deepEqual(run.store.operations, []);
  });

  it("that the store refuses are reported, and tried again", async () => {
    await using run = newRun([
      { list: page("a@1", "10") },
      { list: page("a@1", "11") },
      { watch: openWatch() },
    ]);
    let failures = 1;
    run.store.check = () => {
      if (failures-- > 0) throw new Error("store broke");
    };
    await run.start();
    assert.deepEqual(run.errors.map((error) => error.message), ["unable to sync list result: store broke"]);
    assert.equal(run.reflector.lastSyncResourceVersion(), "");
    await run.clock.advance(800);
    assert.deepEqual(run.store.operations, ["replace 11: a@1"]);
  });

  it("report what the source quarantined, and keep the state of it that is known", async () => {
    const known = at("bad@3");
    await using run = newRun(
      [
        {
          list: {
            ...page("a@1", "10"),
            quarantined: [
              { reason: "labels: expected a string", path: "items[0].metadata.labels", key: "bad" },
              { reason: "it has no name", path: "items[1].metadata.name" },
            ],
          },
        },
        { watch: openWatch() },
      ],
      {},
      { knownObjects: { getByKey: (key) => key === "bad" ? known : undefined } },
    );
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10: a@1 bad@3"]);
    assert.equal(run.quarantined.length, 2);
    assert.equal(run.reflector.status().quarantined, 2);
  });

  it("bring no key twice where a key was quarantined more than once, or is there in a state that was accepted", async () => {
    const refused = (key: string) => ({ reason: "bad", path: "items[0]", key });
    await using run = newRun(
      [
        { list: { ...page("a@1", "10", "2"), quarantined: [refused("bad"), refused("b")] } },
        { list: { ...page("b@2", "10"), quarantined: [refused("bad"), refused("a")] } },
        { watch: openWatch() },
      ],
      {},
      { knownObjects: { getByKey: (key) => at(`${key}@0`) } },
    );
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10: a@1 b@2 bad@0"]);
  });

  it("count a key as quarantined no more that is there in a state that was accepted, too", async () => {
    const quarantined = [{ reason: "bad", path: "items[0]", key: "a" }];
    const watcher = openWatch();
    await using run = newRun([{ list: { ...page("a@1", "10"), quarantined } }, { watch: watcher }]);
    const { operations } = run.store;
    Object.assign(run.store, { deleteKey: (key: string) => operations.push(`delete by key ${key}`) });
    await run.start();
    watcher.delete(at("a@11"));
    await run.clock.advance(0);
    assert.deepEqual(run.store.operations, ["replace 10: a@1", "delete a@11"]);
  });
});

describe("Reflector: watches", () => {
  /**
   * A reflector that has listed up to 10 and reads a watch; what
   * the watch brings is in the store's operations.
   */
  async function watching(fill: (watcher: FakeWatcher) => void, options: Parameters<typeof newRun>[1] = {}) {
    const watcher = openWatch(fill);
    const run = newRun([{ list: page("", "10") }, { watch: watcher }], options);
    await run.start();
    run.store.operations.shift(); // the list
    return { ...run, watcher };
  }

  it("write each event to the store and continue to its version, in order", async () => {
    await using run = await watching(() => {});
    const versions: string[] = [];
    run.store.check = () => versions.push(run.reflector.lastSyncResourceVersion());
    const send: (() => void)[] = [
      () => run.watcher.add(at("a@20")),
      () => run.watcher.modify(at("a@30")),
      () => run.watcher.bookmark("40"),
      () => run.watcher.delete(at("a@50")),
    ];
    for (const one of send) {
      one();
      await run.clock.advance(0);
    }
    assert.deepEqual(run.store.operations, ["add a@20", "update a@30", "bookmark 40", "delete a@50"]);
    assert.deepEqual(versions, ["10", "20", "30", "40"], "the store is written before the version moves");
    assert.equal(run.reflector.lastSyncResourceVersion(), "50");
  });

  it("are at the version of the last event, not at the highest", async () => {
    await using run = await watching((watcher) => {
      watcher.modify(at("bar@55"));
      watcher.add(at("baz@32"));
    });
    assert.equal(run.reflector.lastSyncResourceVersion(), "32");
  });

  it("where the position never goes back, are at an older event's version until a list comes", async () => {
    const [watcher, next] = [openWatch(), openWatch()];
    const script = [{ list: page("", "10") }, { watch: watcher }, { list: page("bar@60", "60") }, {
      watch: next,
    }];
    await using run = newRun(script, {}, { neverGoesBack: true });
    await run.start();
    watcher.modify(at("bar@55"));
    watcher.add(at("baz@32"));
    await run.clock.advance(0);
    assert.equal(run.reflector.lastSyncResourceVersion(), "32");
    assert.equal(run.reflector.status().resourceVersion, "55");
    watcher.error(statuses.expired);
    await run.clock.advance(1_000);
    assert.equal(run.reflector.lastSyncResourceVersion(), "60");
  });

  it("quarantine what is of another kind, a Table, or without metadata: it moves nothing", async () => {
    await using run = await watching((watcher) => {
      watcher.add({ ...at("other@20"), kind: "Service" });
      watcher.add({ ...at("other@21"), apiVersion: "v2" });
      watcher.add({ ...at("table@22"), kind: "Table", apiVersion: "meta.k8s.io/v1" });
      watcher.add({ kind: "Pod", apiVersion: "v1" });
    }, { expectedKind: { group: "", version: "v1", kind: "Pod" } });
    assert.deepEqual(run.store.operations, []);
    assert.equal(run.reflector.lastSyncResourceVersion(), "10");
    assert.deepEqual(run.quarantined.map(({ reason }) => reason), [
      "expected v1 Pod, got v1 Service",
      "expected v1 Pod, got v2 Pod",
      "it is a Table: objects were requested",
      "it has no metadata",
    ]);
  });

  it("take any kind where none is expected, but no Table", async () => {
    await using run = await watching((watcher) => {
      watcher.add({ ...at("a@20"), kind: "Service" });
      watcher.add({ ...at("table@22"), kind: "Table", apiVersion: "meta.k8s.io/v1beta1" });
      watcher.add({ ...at("b@23"), kind: "Table", apiVersion: "furniture.example/v1" });
      watcher.add({ ...at("c@24"), apiVersion: "meta.k8s.io/v1" });
    });
    assert.deepEqual(run.store.operations, ["add a@20", "add b@23", "add c@24"]);
    assert.equal(run.quarantined.length, 1);
  });

  it("report what the source quarantined, and continue", async () => {
    const quarantined = { reason: "labels: expected a string", path: "metadata.labels", key: "a" };
    await using run = await watching((watcher) => {
      watcher.send({ type: "QUARANTINED", quarantined });
      watcher.add(at("b@20"));
    });
    assert.deepEqual(run.quarantined, [quarantined]);
    assert.deepEqual(run.store.operations, ["add b@20"]);
  });

  it("where the position never goes back, delete what is quarantined by its key, although an older state was sent again", async () => {
    const watcher = openWatch();
    await using run = newRun([{ list: page("a@5", "10") }, { watch: watcher }], {}, { neverGoesBack: true });
    const { operations } = run.store;
    Object.assign(run.store, { deleteKey: (key: string) => operations.push(`delete by key ${key}`) });
    await run.start();
    run.store.take();
    const quarantined = {
      reason: "no labels",
      path: "",
      eventType: "MODIFIED",
      key: "a",
      resourceVersion: "20",
    };
    watcher.send({ type: "QUARANTINED", quarantined });
    watcher.add(at("b@21"));
    watcher.modify(at("a@15"));
    watcher.delete(at("a@25"));
    await run.clock.advance(0);
    const calls = ["add b@21", "update a@15", "delete by key a", "bookmark 25"];
    assert.deepEqual(run.store.take(), calls);
  });

  it("log an event of an unknown type, and move on to its version", async () => {
    await using run = await watching((watcher) => {
      watcher.send({ type: "RENAMED", object: at("a@20") } as never);
    });
    assert.match(run.log.of("warn")[0], /unknown event type "RENAMED"/);
    assert.equal(run.reflector.lastSyncResourceVersion(), "20");
  });

  it("do not follow the versions of the objects that a watch from nowhere begins with", async () => {
    const watcher = openWatch();
    await using run = newRun([{ list: page("", "") }, { watch: watcher }]);
    await run.start();
    assert.deepEqual(run.source.requests, ['list "0" limit 500', 'watch ""']);
    watcher.add(at("a@50"));
    watcher.add(at("b@20"));
    await run.clock.advance(0);
    assert.equal(run.reflector.lastSyncResourceVersion(), "");
    watcher.modify(at("a@60"));
    watcher.add(at("c@61"));
    await run.clock.advance(0);
    assert.equal(run.reflector.lastSyncResourceVersion(), "61");
  });

  it("quarantine what the store refuses, continue, and list again after a minute", async () => {
    await using run = await watching(() => {});
    run.store.check = (operation) => {
      if (operation === "add bad@20") throw new Error("store broke");
    };
    run.watcher.add(at("bad@20"));
    run.watcher.add(at("good@21"));
    await run.clock.advance(0);
    assert.deepEqual(run.store.take(), ["add good@21"]);
    assert.equal(run.reflector.lastSyncResourceVersion(), "21");
    assert.deepEqual(run.quarantined, [{
      reason: "store broke",
      path: "",
      eventType: "ADDED",
      key: "bad",
      resourceVersion: "20",
    }]);
    run.source.then({ list: page("bad@20 good@21", "22") }, { watch: openWatch() });
    await run.clock.advance(59_999);
    assert.equal(run.source.left, 2);
    await run.clock.advance(1);
    assert.deepEqual(run.store.operations, ["replace 22: bad@20 good@21"]);
    assert.deepEqual(run.source.problems, []);
  });

  it("list again in time after a loss, though another watch was opened meanwhile", async () => {
    await using run = await watching(() => {});
    run.store.check = (operation) => {
      if (operation === "add bad@20") throw new Error("store broke");
    };
    run.watcher.add(at("bad@20"));
    run.watcher.add(at("good@21"));
    await run.clock.advance(20_000);
    run.source.then({ watch: openWatch() });
    run.watcher.stop();
    await run.clock.advance(20_000);
    assert.equal(run.source.left, 0);
    run.store.take();
    run.source.then({ list: page("bad@20 good@21", "22") }, { watch: openWatch() });
    await run.clock.advance(19_999);
    assert.equal(run.source.left, 2);
    await run.clock.advance(1);
    assert.deepEqual(run.store.operations, ["replace 22: bad@20 good@21"]);
  });

  it("that wait to list again after a loss leave no timer when they are stopped", async () => {
    const run = await watching(() => {});
    run.watcher.add({ kind: "Pod" });
    await run.clock.advance(0);
    assert.equal(run.quarantined.length, 1);
    await run.stop();
    assert.equal(run.clock.pendingTimers, 0);
  });

  it("ask the server to end them after five to ten minutes, in whole seconds", async () => {
    for (
      const [random, options, seconds] of [
        [0, {}, 300],
        [0.5, {}, 450],
        [0.9999, {}, 599],
        [0.5, { minWatchTimeoutMs: 1_000 }, 450],
        [0, { minWatchTimeoutMs: 1_800_000 }, 1_800],
        [0.9999, { minWatchTimeoutMs: 1_800_000 }, 3_599],
      ] as const
    ) {
      await using run = newRun([{ list: page("", "10") }, { watch: openWatch() }], {
        random: () => random,
        ...options,
      });
      await run.start();
      assert.equal(run.source.options[1].timeoutSeconds, seconds);
    }
  });

  it("that end are followed at once by the next from the last version, without a list", async () => {
    await using run = await watching((watcher) => watcher.add(at("a@20")));
    run.source.then({ watch: openWatch() });
    await run.clock.advance(1_000);
    run.watcher.stop();
    await run.clock.advance(0);
    assert.deepEqual(run.source.requests.slice(2), ['watch "20"']);
    assert.deepEqual(run.errors, []);
  });

  it("that break off are followed by the next as well: what they brought is valid", async () => {
    await using run = await watching((watcher) => watcher.add(at("a@20")));
    run.source.then({ watch: openWatch() });
    await run.clock.advance(10_000);
    run.watcher.add(at("b@21"));
    run.watcher.fail(new NetworkError("ConnectionReset", "connection reset"));
    await run.clock.advance(0);
    assert.deepEqual(run.store.operations, ["add a@20", "add b@21"]);
    assert.deepEqual(run.source.requests.slice(2), ['watch "21"']);
    assert.equal(run.reflector.status().lastError?.code, "ConnectionReset");
  });

  it("that end within a second are followed by the next after a delay", async () => {
    await using run = await watching((watcher) => watcher.add(at("a@20")));
    run.source.then({ watch: openWatch() });
    await run.clock.advance(999);
    run.watcher.stop();
    await run.clock.advance(799);
    assert.equal(run.source.left, 1);
    await run.clock.advance(1);
    assert.deepEqual(run.source.requests.slice(2), ['watch "20"']);
  });

  it("that end within a second without any event are an error: list again after a delay, report nothing", async () => {
    await using run = await watching(() => {});
    run.source.then({ list: page("", "10") }, { watch: openWatch() });
    await run.clock.advance(999);
    run.watcher.stop();
    await run.clock.advance(0);
    assert.equal(run.reflector.status().lastError?.code, "VeryShortWatch");
    assert.equal(run.source.left, 2);
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'watch "10"']);
    assert.deepEqual(run.errors, []);
  });

  it("that end after a second without any event are none", async () => {
    await using run = await watching(() => {});
    run.source.then({ watch: openWatch() });
    await run.clock.advance(1_000);
    run.watcher.stop();
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(2), ['watch "10"']);
  });

  it("are requested again after a delay, without a list, when the server is away or asks for patience", async () => {
    for (const refusal429 of [new StatusError(statuses.tooMany), refused]) {
      await using run = newRun([
        { list: page("", "10") },
        { watch: refusal429 },
        { watch: refusal429 },
        { watch: openWatch() },
      ]);
      await run.start();
      await run.clock.advance(800 + 1_600);
      assert.deepEqual(run.source.requests, ['list "0" limit 500', 'watch "10"', 'watch "10"', 'watch "10"']);
      // As upstream, a 429 is between the reflector and the server; an unreachable server is not.
      assert.deepEqual(run.errors, refusal429 === refused ? [refused, refused] : []);
      assert.equal(run.source.left, 0);
    }
  });

  it("wait for as long as the server asks", async () => {
    const patience = new StatusError(statuses.tooMany, { retryAfterMs: 20_000 });
    await using run = newRun([{ list: page("", "10") }, { watch: patience }, { watch: openWatch() }]);
    await run.start();
    await run.clock.advance(19_999);
    assert.equal(run.source.left, 1);
    await run.clock.advance(1);
    assert.equal(run.source.left, 0);
  });

  it("do not wait for what the server asked before something went well", async () => {
    const tooLarge = newStatus(504, "Timeout", "Too large resource version: 10, current: 9", {});
    const patience = new StatusError(tooLarge, { retryAfterMs: 20_000 });
    await using run = newRun([
      { list: page("", "10") },
      { watch: refusal("forbidden") },
      { list: patience },
      { list: page("", "11") },
      {
        watch: openWatch((watcher) => {
          watcher.add(at("a@12"));
          watcher.stop();
        }),
      },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(800);
    assert.equal(run.source.left, 1);
    await run.clock.advance(1_600);
    assert.equal(run.source.left, 0);
  });

  it("ask again at the same version after a 504 whose text alone says that it is too large, as upstream", async () => {
    const tooLarge = new StatusError(
      newStatus(504, "Timeout", "Too large resource version: 10, current: 9"),
    );
    await using run = newRun([
      { list: page("", "10") },
      { watch: refusal("forbidden") },
      { list: tooLarge },
      { list: page("", "11") },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(800 + 1_600);
    assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'list "10"', 'watch "11"']);
  });

  it("that end with what was said already are warned of once, and again when one was well in between", async () => {
    const torn = (): Answer[] => [
      { list: page("a@1", "10") },
      { watch: openWatch((watcher) => watcher.error(newDecodingStatus("no JSON"))) },
    ];
    const well = openWatch();
    const script = [...torn(), ...torn(), { list: page("a@1", "10") }, { watch: well }, torn()[1]];
    await using run = newRun([...script, { list: "hang" }], { onQuarantined: undefined });
    await run.start();
    await run.clock.advance(5_000);
    const said = () => run.log.of("warn").map((line) => /quarantined|watch ended/.exec(line)?.[0]);
    assert.deepEqual(said(), ["quarantined", "watch ended"]);
    await run.clock.advance(10_000);
    well.stop();
    await run.clock.advance(60_000);
    assert.deepEqual(said().slice(2), ["quarantined", "watch ended"]);
    assert.equal(run.source.left, 0);
  });

  it("that are refused for any other reason are reported, and everything is listed again after a delay", async () => {
    for (
      const error of [refusal("forbidden"), refusal("expired"), refusal("internal"), new Error("it broke")]
    ) {
      await using run = newRun([
        { list: page("", "10") },
        { watch: error },
        { list: page("", "11") },
        { watch: openWatch() },
      ]);
      await run.start();
      assert.deepEqual(run.errors, [error]);
      await run.clock.advance(800);
      assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'watch "11"']);
    }
  });

  describe("that carry an ERROR event", () => {
    it("410: list again from the last version after a delay, and report nothing", async () => {
      await using run = await watching((watcher) => {
        watcher.add(at("a@20"));
        watcher.error(statuses.expired);
        watcher.add(at("never@21"));
      });
      run.source.then({ list: page("a@20", "30") }, { watch: openWatch() });
      await run.clock.advance(800);
      assert.deepEqual(run.store.operations, ["add a@20", "replace 30: a@20"]);
      assert.deepEqual(run.source.requests.slice(2), ['list "20"', 'watch "30"']);
      assert.deepEqual([run.errors, run.log.of("warn")], [[], []]);
    });

    it("429: watch again after a delay, without a list", async () => {
      await using run = await watching((watcher) => watcher.error(statuses.tooMany));
      run.source.then({ watch: openWatch() });
      await run.clock.advance(799);
      assert.equal(run.source.left, 1);
      await run.clock.advance(1);
      assert.deepEqual(run.source.requests.slice(2), ['watch "10"']);
    });

    it("500: list again after a delay", async () => {
      await using run = await watching((watcher) => watcher.error(statuses.internal));
      run.source.then({ list: page("", "11") }, { watch: openWatch() });
      await run.clock.advance(800);
      assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'watch "11"']);
      assert.match(run.log.of("warn")[0], /pods: watch ended: etcdserver: leader changed/);
    });

    it("anything else: list again after a delay", async () => {
      await using run = await watching((watcher) => watcher.error(newStatus(403, "Forbidden", "no more")));
      run.source.then({ list: page("", "11") }, { watch: openWatch() });
      await run.clock.advance(800);
      assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'watch "11"']);
      assert.deepEqual(run.errors, []);
    });
  });

  describe("that end with 500 while such errors are retried", () => {
    /** How many watches came before the next list, when each fails after that time. */
    async function watchesBeforeList(delayMs: number, retryMs: number, most: number): Promise<number> {
      const watchers = Array.from({ length: most }, () => openWatch());
      await using run = newRun([{ list: page("", "10") }, ...watchers.map((watch) => ({ watch }))], {
        maxInternalErrorRetryMs: retryMs,
      });
      await run.start();
      for (const watcher of watchers) {
        await run.clock.advance(delayMs);
        watcher.error(statuses.internal);
        await run.clock.advance(0);
        if (run.reflector.status().phase !== "watching") break;
      }
      return run.source.requests.length - 1;
    }

    it("watch again at once until the time for it is over", async () => {
      assert.equal(await watchesBeforeList(1_000, 30_000, 40), 32); // the first, and 31 retries
    });

    it("watch once where there is no time for it", async () => {
      assert.equal(await watchesBeforeList(1_000, 0, 40), 1);
    });

    it("start to count again after a minute without such an error", async () => {
      assert.equal(await watchesBeforeList(60_000, 30_000, 40), 41);
    });
  });
});

describe("Reflector: resyncs", () => {
  it("asks the store to resync again and again, while it watches", async () => {
    const watcher = openWatch();
    await using run = newRun([{ list: "hang" }], { resyncPeriodMs: 10_000 });
    await run.start();
    await run.clock.advance(30_000);
    assert.deepEqual(run.store.take(), []);
    await run.stop();

    await using other = newRun([{ list: page("", "10") }, { watch: watcher }], { resyncPeriodMs: 10_000 });
    await other.start();
    other.store.take();
    await other.clock.advance(29_999);
    assert.deepEqual(other.store.take(), ["resync", "resync"]);
    await other.clock.advance(1);
    assert.deepEqual(other.store.take(), ["resync"]);
  });

  it("starts again with every list, and does not run while it backs off to list again", async () => {
    const watcher = openWatch();
    await using run = newRun([
      { list: page("", "10") },
      { watch: watcher },
      { list: page("", "11") },
      { watch: openWatch() },
    ], { resyncPeriodMs: 10_000 });
    await run.start();
    await run.clock.advance(9_900);
    watcher.error(statuses.expired);
    await run.clock.advance(800);
    assert.deepEqual(run.store.take(), ["replace 10:", "replace 11:"]);
    await run.clock.advance(9_999);
    assert.deepEqual(run.store.take(), []);
    await run.clock.advance(1);
    assert.deepEqual(run.store.take(), ["resync"]);
  });

  it("continues while one watch follows the other", async () => {
    const watcher = openWatch((one) => one.add(at("a@20")));
    await using run = newRun([{ list: page("", "10") }, { watch: watcher }, { watch: refused }, {
      watch: openWatch(),
    }], {
      resyncPeriodMs: 10_000,
    });
    await run.start();
    await run.clock.advance(9_900);
    watcher.stop();
    run.store.take();
    await run.clock.advance(100);
    assert.deepEqual(run.store.take(), ["resync"]);
  });

  it("skips what is not wanted", async () => {
    const answers = [true, false, true];
    await using run = newRun([{ list: page("", "10") }, { watch: openWatch() }], {
      resyncPeriodMs: 10_000,
      shouldResync: () => answers.shift() ?? false,
    });
    await run.start();
    run.store.take();
    const after: string[][] = [];
    for (let i = 0; i < 4; i++) {
      await run.clock.advance(10_000);
      after.push(run.store.take());
    }
    assert.deepEqual(after, [["resync"], [], ["resync"], []]);
  });

  it("takes a `shouldResync` that throws, or returns a promise, for a yes, and logs it", async () => {
    const broke = new Error("no answer today");
    const answers: (() => unknown)[] = [
      () => Promise.reject(broke),
      () => {
        throw broke;
      },
    ];
    await using run = newRun([{ list: page("", "10") }, { watch: openWatch() }], {
      resyncPeriodMs: 10_000,
      shouldResync: () => answers.shift()!() as boolean,
    });
    await run.start();
    run.store.take();
    for (const why of ["it must return no promise", "no answer today"]) {
      await run.clock.advance(10_000);
      assert.deepEqual(run.store.take(), ["resync"]);
      assert.match(run.log.of("error").at(-1)!, new RegExp(`: shouldResync threw: ${why}$`));
    }
    assert.deepEqual(run.source.requests, ['list "0" limit 500', 'watch "10"']);
  });

  it("ends the watch when the resync throws, and everything is listed again", async () => {
    await using run = newRun([
      { list: page("", "10") },
      { watch: openWatch() },
      { list: page("", "11") },
      { watch: openWatch() },
    ], { resyncPeriodMs: 10_000 });
    let failures = 1;
    run.store.check = (operation) => {
      if (operation === "resync" && failures-- > 0) throw new Error("resync broke");
    };
    await run.start();
    await run.clock.advance(10_800);
    assert.deepEqual(run.source.requests.slice(2), ['list "10"', 'watch "11"']);
    assert.match(run.log.of("warn")[0], /resync broke/);
    await run.clock.advance(10_000);
    assert.deepEqual(run.store.operations, ["replace 10:", "replace 11:", "resync"]);
  });
});

describe("Reflector without options", () => {
  it("names itself after its source, and logs what no callback receives", async () => {
    await using run = newRun(
      [{ list: refusal("forbidden") }, { list: refusal("expired") }, { list: "hang" }],
      {
        watchErrorHandler: undefined,
        onQuarantined: undefined,
      },
    );
    await run.start();
    assert.equal(run.reflector.name, "pods");
    assert.deepEqual(run.log.of("warn"), [
      "warn: pods: the server refuses: the server answered 403 Forbidden (pods is forbidden); " +
      "next try in 0.8 s, and so on until it is back",
    ]);
    assert.deepEqual(run.log.of("error"), []);
  });
});
