import assert from "node:assert/strict";
import { nextTurn } from "../../src/util/clock.ts";
import { type KubernetesObject, SharedIndexInformer, StatusError } from "@listwatch/cache";
import { DecodeError, newStatus } from "@listwatch/cache/client";
import { newInformerSnapshot } from "@listwatch/cache/informer";
import { answerStatus, pod } from "@listwatch/cache/testing";
import { Disk, Machine } from "./snapshot_rig.ts";
import { describe, it } from "./storages.ts";

/** The identity of a cluster, of which the first two reads fail. */
function lateUid(uid: string) {
  const late = {
    tries: 0,
    clusterUid: () =>
      ++late.tries <= 2 ? Promise.reject(new TypeError("fetch failed")) : Promise.resolve(uid),
  };
  return late;
}

describe("SharedIndexInformer with a snapshot", () => {
  it("lists first, and saves everything as one step", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    const first = await machine.start();
    assert.deepEqual(machine.requests(), ["list 0", "watch 3"]);
    assert.equal(first.informer.hasSynced(), true);
    assert.equal(first.informer.isRestored(), false);
    assert.deepEqual(first.informer.status().snapshot, { load: "none", failedSaves: 0 });
    assert.deepEqual(machine.disk.saves, []);
    await machine.clock.advance(1_000);
    assert.deepEqual(machine.disk.content(), ["a@2", "b@3"]);
    const { resourceVersion, needsList, replaces } = machine.disk.saves[0];
    assert.deepEqual({ resourceVersion, needsList, replaces }, {
      resourceVersion: "3",
      needsList: false,
      replaces: true,
    });
  });

  it("gathers changes, and saves each key once", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    await machine.start();
    await machine.clock.advance(1_000);
    machine.touch("a");
    machine.touch("a");
    machine.delete("b");
    machine.create("c");
    await machine.settle();
    assert.equal(machine.disk.saves.length, 1);
    await machine.clock.advance(1_000);
    assert.equal(machine.disk.saves.length, 2);
    const { puts, deletes, replaces, resourceVersion } = machine.disk.saves[1];
    assert.deepEqual([puts, deletes, replaces], [["default/a", "default/c"], ["default/b"], false]);
    assert.equal(resourceVersion, machine.server.resourceVersion);
    assert.deepEqual(machine.disk.content(), machine.content());
  });

  it("continues by a watch after a restart, and receives the deletes of the meantime as events", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    const first = await machine.start();
    await first.stop();
    machine.delete("a");
    machine.create("c");
    machine.requests();
    const second = await machine.start();
    assert.deepEqual(second.content(), machine.content());
    assert.deepEqual(machine.requests(), ["version", "watch 3"]);
    assert.deepEqual(second.recorder.take(), ["add a@2 initial", "add b@3 initial", "delete a@4", "add c@5"]);
    assert.deepEqual(second.observed, [
      "replaced at 3: added a@2, added b@3",
      "deleted a@4",
      "added c@5",
    ]);
    assert.equal(second.informer.hasSynced(), true);
  });

  it("has the content before the server answers, says so, and is neither synced nor fresh", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    const first = await machine.start();
    const contactMs = machine.clock.now();
    await machine.clock.advance(1_000);
    await first.stop();
    await machine.clock.advance(600_000);
    const remove = machine.server.intercept(() => Promise.reject(new TypeError("refused")));
    const second = await machine.start();
    const { informer } = second;
    await informer.restored();
    assert.deepEqual(second.content(), ["a@2", "b@3"]);
    assert.equal(informer.isRestored(), true);
    assert.equal(informer.hasSynced(), false);
    assert.equal(informer.isFresh(Infinity), false);
    const { restored, lagMs, snapshot, resourceVersion } = informer.status();
    assert.deepEqual(restored, { resourceVersion: "3", savedAtMs: contactMs });
    assert.equal(lagMs, 601_000);
    assert.deepEqual(snapshot, { load: "restored", failedSaves: 0, savedResourceVersion: "3" });
    assert.equal(resourceVersion, "3");
    await informer.waitForVersion("3");
    assert.equal(informer.indexer.has("default/a"), true);
    await machine.clock.advance(3_600_000);
    assert.equal(informer.isRestored(), true);
    machine.requests();
    remove();
    await machine.clock.advance(60_000);
    assert.deepEqual(machine.requests(), ["version", "watch 3"]);
    assert.equal(informer.hasSynced(), true);
    assert.equal(informer.isRestored(), false);
    assert.equal(informer.status().restored, undefined);
    assert.ok(informer.status().lagMs! <= 60_000);
  });

  it("says an age of zero at least, when the clock was set back since the save", async () => {
    await using machine = new Machine();
    machine.create("a");
    const first = await machine.start();
    await first.stop();
    machine.clock.setWallClock(10);
    machine.server.intercept(() => Promise.reject(new TypeError("refused")));
    const { informer } = await machine.start();
    assert.equal(informer.status().lagMs, 0);
    await machine.clock.advance(500);
    assert.equal(informer.status().lagMs, 500);
  });

  it("is confirmed at once where the server is at the snapshot's version", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start()).stop();
    machine.requests();
    const { informer } = await machine.start();
    assert.equal(informer.hasSynced(), true);
    assert.deepEqual(machine.requests(), ["version", "watch 2"]);
  });

  it("needs no bookmark, nor a list for want of one, once it is confirmed", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    await (await machine.start()).stop();
    machine.requests();
    const { informer } = await machine.start();
    assert.equal(informer.hasSynced(), true);
    await machine.clock.advance(100_000);
    assert.deepEqual(machine.requests(), ["version", "watch 2", "watch 2"]);
  });

  it("is confirmed by a proof where only other resources have changed", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start()).stop();
    machine.server.create("v1/configmaps", { metadata: { name: "other" } });
    machine.requests();
    const { informer } = await machine.start();
    assert.equal(informer.hasSynced(), false);
    await machine.clock.advance(3_000);
    assert.equal(informer.hasSynced(), true);
    assert.deepEqual(machine.requests(), ["version", "watch 2", "proof 2"]);
    assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "3");
  });

  it("is confirmed by no event before that which brings it to the server's version of its start", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start()).stop();
    machine.touch("a");
    machine.touch("a");
    await machine.clock.advance(600_000);
    const second = await machine.start({ settles: false });
    const lags: unknown[] = [];
    second.informer.observe(({ type }) => type === "updated" && lags.push(second.informer.status().lagMs));
    await machine.settle();
    assert.deepEqual(second.observed, ["replaced at 2: added a@2", "updated a@3", "updated a@4"]);
    assert.equal(second.firstSynced(), "updated a@4");
    assert.deepEqual(lags, [600_000, 0], "it is as old as the snapshot up to that");
  });

  it("continues where the watch was while a proof by state was further, and is not confirmed by that", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start({ isBareSource: true })).stop();
    machine.server.create("v1/configmaps", { metadata: { name: "other" } });
    const { disk } = machine;
    const meta = { ...disk.meta!, resourceVersion: "3" };
    for (const [watchedVersion, from] of [["2", "2"], ["4", "3"], ["3", "3"], ["0", "3"]]) {
      disk.meta = { ...meta, watchedVersion };
      machine.requests();
      const { informer, observed, stop } = await machine.start({ isBareSource: true });
      assert.deepEqual(machine.requests(), [`watch ${from}`]);
      assert.equal(informer.isRestored(), true);
      assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "3");
      const isBefore = from === "2";
      assert.deepEqual(
        observed,
        isBefore ? ["replaced at 2: added a@2", "bookmark 3"] : ["replaced at 3: added a@2"],
      );
      await stop();
      assert.deepEqual(disk.meta, { ...meta, watchedVersion }, "nothing was saved");
    }
    disk.meta = { ...meta, watchedVersion: "2" };
    const { informer } = await machine.start({ isBareSource: true });
    machine.create("b");
    await machine.clock.advance(2_000);
    assert.equal(informer.hasSynced(), true);
    assert.equal(disk.meta.resourceVersion, "4");
    assert.equal(disk.meta.watchedVersion, undefined, "everything up to there has come");
  });

  it("is not confirmed by events that a proof by state had passed", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start({ isBareSource: true })).stop();
    machine.create("brief");
    machine.delete("brief");
    // The server was restored, and has not reached the snapshot's version again.
    machine.disk.meta = { ...machine.disk.meta!, resourceVersion: "5", watchedVersion: "2" };
    const { informer, observed } = await machine.start({ isBareSource: true });
    assert.deepEqual(observed, ["replaced at 2: added a@2", "bookmark 5", "replaced at 5: "]);
    assert.equal(informer.isRestored(), true);
    assert.equal(informer.hasSynced(), false);
    const { length: saves } = machine.disk.saves;
    await machine.clock.advance(2_000);
    assert.equal(machine.disk.saves.length, saves + 1);
    assert.equal(machine.disk.meta.watchedVersion, "2", "more such events may come");
  });

  it("is confirmed by an event where its source has no `metadata`", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start({ isBareSource: true })).stop();
    machine.requests();
    await machine.clock.advance(10_000);
    const { informer } = await machine.start({ isBareSource: true });
    assert.deepEqual(machine.requests(), ["watch 2"]);
    assert.equal(informer.status().phase, "watching");
    assert.equal(informer.status().lagMs, 10_000, "an open watch is no news");
    assert.equal(informer.hasSynced(), false);
    assert.equal(informer.isRestored(), true);
    machine.create("b");
    await machine.settle();
    assert.equal(informer.hasSynced(), true);
    assert.equal(informer.status().lagMs, 0);
  });

  it("lists where its source has no `metadata`, and an event comes and no bookmark: it may not be the last", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    await (await machine.start({ isBareSource: true })).stop();
    machine.requests();
    const { informer } = await machine.start({ isBareSource: true });
    machine.create("b");
    await machine.settle();
    assert.equal(informer.hasSynced(), true);
    await machine.clock.advance(91_000);
    assert.deepEqual(machine.requests(), ["watch 2", "list 3", "watch 3"]);
  });

  it("lists where its source has no `metadata`, and neither an event nor a bookmark comes", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    await (await machine.start({ isBareSource: true })).stop();
    machine.requests();
    const { informer } = await machine.start({ isBareSource: true });
    await machine.clock.advance(89_000);
    assert.equal(informer.hasSynced(), false);
    await machine.clock.advance(2_000);
    assert.equal(informer.hasSynced(), true);
    assert.deepEqual(machine.requests(), ["watch 2", "list 2", "watch 2"]);
  });

  it("lists where the server does not have the version any more, and makes the deletes", async () => {
    await using machine = new Machine();
    machine.create("a", "b", "c");
    await (await machine.start()).stop();
    machine.delete("a");
    machine.touch("b");
    machine.create("d");
    machine.server.compact();
    machine.requests();
    const second = await machine.start();
    assert.deepEqual(machine.requests(), ["version", "watch 4", "list 4", "watch 7"]);
    assert.deepEqual(second.content(), machine.content());
    assert.deepEqual(second.recorder.take().sort(), [
      "add a@2 initial",
      "add b@3 initial",
      "add c@4 initial",
      "add d@7",
      "tombstone a@2",
      "update b@3>6",
      "update c@4>4",
    ]);
    assert.equal(second.informer.hasSynced(), true);
  });

  it("lists after 410 as the first event of the watch", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    await (await machine.start()).stop();
    machine.delete("a");
    machine.server.intercept(
      () => {
        const status = {
          kind: "Status",
          apiVersion: "v1",
          status: "Failure",
          reason: "Expired",
          code: 410,
          message: "too old",
        };
        return Promise.resolve(new Response(JSON.stringify({ type: "ERROR", object: status }) + "\n"));
      },
      { match: ({ isWatch }) => isWatch, times: 1 },
    );
    machine.requests();
    const second = await machine.start();
    assert.deepEqual(machine.requests().slice(0, 3), ["version", "watch 3", "list 3"]);
    assert.deepEqual(second.content(), machine.content());
    assert.ok(second.recorder.take().includes("tombstone a@2"));
    assert.equal(second.informer.hasSynced(), true);
  });

  it("lists where the server has not reached the version: it was restored from a backup", async () => {
    await using machine = new Machine();
    machine.create("a", "b", "c");
    await (await machine.start()).stop();
    await using restored = new Machine();
    restored.create("x");
    const second = await restored.start({ disk: machine.disk });
    assert.deepEqual(restored.requests(), ["version", "list", "watch 2"]);
    assert.deepEqual(second.content(), ["x@2"]);
    assert.equal(second.informer.hasSynced(), true);
    assert.deepEqual(second.informer.indexer.lastStoreSyncResourceVersion(), "2");
    await restored.clock.advance(1_000);
    assert.deepEqual(machine.disk.content(), ["x@2"]);
    assert.equal(machine.disk.meta?.resourceVersion, "2");
  });

  for (const metadata of ["slow", "missing"] as const) {
    it(`is not confirmed by an event of an earlier version, where its \`metadata\` is ${metadata}`, async () => {
      await using machine = new Machine();
      machine.create("a", "b", "c");
      const isBareSource = metadata === "missing";
      await (await machine.start({ isBareSource })).stop();
      // A restored server: it has not reached the snapshot's version,
      // and sends what it has from the restore on.
      const lines = [{ type: "DELETED", object: pod("a", { resourceVersion: "3" }) }];
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const writer = writable.getWriter();
      const write = (line: unknown) => writer.write(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
      for (const line of lines) write(line);
      const intercepted = [
        machine.server.intercept(() => Promise.resolve(new Response(readable)), {
          match: ({ isWatch }) => isWatch,
        }),
        machine.server.intercept(() => new Promise<Response>(() => {}), {
          match: ({ query }) => query.limit === "1",
        }),
      ];
      const { informer, content } = await machine.start({ isBareSource });
      await machine.clock.advance(30_000); // no answer to the question for the server's version
      assert.deepEqual(content(), ["b@3", "c@4"]);
      assert.equal(informer.isRestored(), true);
      assert.equal(informer.hasSynced(), false);
      write({ type: "ADDED", object: pod("d", { resourceVersion: "5" }) });
      await machine.settle();
      assert.equal(informer.hasSynced(), true);
      for (const remove of intercepted) remove();
    });
  }

  it("has not synced before the content of a list that is stored in turns has taken its place", async () => {
    await using machine = new Machine();
    for (let i = 0; i < 200; i++) machine.create(`old-${i}`);
    await (await machine.start()).stop();
    await using restored = new Machine();
    for (let i = 0; i < 100; i++) restored.create(`new-${i}`);
    const second = await restored.start({ disk: machine.disk, turnObjects: 1, settles: false });
    const { informer } = second;
    let hasSettled = false;
    const settled = restored.settle().finally(() => hasSettled = true);
    while (!informer.hasSynced() && !hasSettled) await nextTurn();
    assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "101");
    assert.deepEqual(second.content(), restored.content());
    await settled;
  });

  it("lists after three watches that the server refused for another reason", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start()).stop();
    machine.delete("a");
    const remove = machine.server.intercept(
      () =>
        Promise.resolve(Response.json({ kind: "Status", code: 403, reason: "Forbidden" }, { status: 403 })),
      { match: ({ isWatch }) => isWatch },
    );
    machine.requests();
    const second = await machine.start();
    await machine.clock.advance(60_000);
    const requests = machine.requests();
    assert.equal(requests.findIndex((line) => line.startsWith("list")), 8, requests.join());
    assert.deepEqual(second.content(), []);
    remove();
  });

  it("does not wait for a load that hangs: it is refused after a time, and everything is listed", async () => {
    await using machine = new Machine();
    machine.create("a");
    const process = await machine.start({
      storageOptions: { load: () => new Promise(() => {}) },
      snapshotOptions: { loadTimeoutMs: 5_000 },
    });
    assert.equal(process.informer.status().phase, "resuming");
    assert.deepEqual(machine.requests(), []);
    await machine.clock.advance(5_000);
    assert.deepEqual(process.content(), ["a@2"]);
    assert.equal(process.informer.hasSynced(), true);
    assert.match(
      process.informer.status().snapshot?.refusal ?? "",
      /not loaded within 5000 ms; nothing is saved before .* \(timeout\)/,
    );
    assert.match(process.log.of("warn").join(), /pods: Cannot use the snapshot: .*; listing instead/);
    const stopped = process.stop();
    await machine.settle();
    await machine.clock.advance(10_000);
    await stopped;
    assert.match(process.log.of("error").join(), /could not finish the snapshot/);
  });

  it("saves nothing before a load that took too long has ended, as that would be mixed with what it loads", async () => {
    await using machine = new Machine();
    machine.create("a");
    const load = Promise.withResolvers<undefined>();
    let signal: AbortSignal | undefined;
    await machine.start({
      storageOptions: { load: (_, aborted) => (signal = aborted, load.promise) },
      snapshotOptions: { loadTimeoutMs: 5_000 },
    });
    await machine.clock.advance(5_000);
    assert.equal(signal?.aborted, true);
    await machine.clock.advance(60_000);
    assert.deepEqual(machine.disk.saves, []);
    load.resolve(undefined);
    await machine.settle();
    assert.deepEqual(machine.disk.content(), ["a@2"]);
  });

  it("saves nothing in the turn, either, before a load that took too long has ended", async () => {
    await using machine = new Machine();
    machine.create("a");
    const load = Promise.withResolvers<undefined>();
    await machine.start({
      storageOptions: { load: () => load.promise, savesInTurn: true },
      snapshotOptions: { loadTimeoutMs: 5_000 },
    });
    await machine.clock.advance(5_000);
    machine.touch("a");
    await machine.clock.advance(60_000);
    assert.deepEqual(machine.disk.saves, []);
    load.resolve(undefined);
    await machine.settle();
    assert.deepEqual(machine.disk.content(), ["a@3"]);
  });

  it("saves nothing before the iteration of a load that took too long has ended", async () => {
    await using machine = new Machine();
    machine.create("a");
    const batch = Promise.withResolvers<void>();
    let hasEnded = false;
    const entries = async function* () {
      try {
        await batch.promise;
        yield [];
      } finally {
        hasEnded = true;
      }
    };
    await machine.start({
      storageOptions: { load: () => loaded({ entries }), save: () => assert.equal(hasEnded, true) },
      snapshotOptions: { loadTimeoutMs: 5_000 },
    });
    await machine.clock.advance(60_000);
    assert.equal(hasEnded, false);
    batch.resolve();
    await machine.settle();
    assert.equal(hasEnded, true);
  });

  it("closes the storage when a load has ended that was under way at the stop", async () => {
    await using machine = new Machine();
    const load = Promise.withResolvers<undefined>();
    const calls: string[] = [];
    const process = await machine.start({
      storageOptions: {
        load: async (_, signal) => {
          signal?.addEventListener("abort", () => calls.push("aborted"));
          await load.promise;
          calls.push("loaded");
          return undefined;
        },
        close: () => void calls.push("closed"),
      },
    });
    const stopped = process.stop();
    await machine.settle();
    assert.deepEqual(calls, ["aborted"]);
    load.resolve(undefined);
    await stopped;
    assert.deepEqual(calls, ["aborted", "loaded", "closed"]);
  });

  it("closes the storage late where the load takes longer than a stop waits", async () => {
    await using machine = new Machine();
    const load = Promise.withResolvers<undefined>();
    let closed = 0;
    const process = await machine.start({
      storageOptions: { load: () => load.promise, close: () => void closed++ },
      snapshotOptions: { stopTimeoutMs: 2_000 },
    });
    const stopped = process.stop();
    await machine.settle();
    await machine.clock.advance(2_000);
    await stopped;
    assert.equal(closed, 0);
    load.resolve(undefined);
    await machine.settle();
    assert.equal(closed, 1);
  });

  it("saves what identifies the cluster, and continues by a watch where that is the same", async () => {
    await using machine = new Machine();
    machine.create("a");
    const clusterUid = () => Promise.resolve("uid-of-kube-system");
    const first = await machine.start({ clusterUid });
    await machine.clock.advance(2_000);
    assert.equal(machine.disk.meta?.clusterUid, "uid-of-kube-system");
    assert.equal(first.informer.status().snapshot?.clusterUid, "uid-of-kube-system");
    await first.stop();
    machine.requests();
    const second = await machine.start({ clusterUid });
    assert.equal(second.informer.hasSynced(), true);
    assert.deepEqual(machine.requests(), ["version", "watch 2"]);
  });

  it("lists where another cluster responds at the address, however far its versions are, and has not synced before", async () => {
    await using machine = new Machine();
    machine.create("a");
    const first = await machine.start({ clusterUid: () => Promise.resolve("one") });
    await machine.clock.advance(2_000);
    await first.stop();
    machine.create("b");
    machine.requests();
    const second = await machine.start({ clusterUid: () => Promise.resolve("another") });
    assert.deepEqual(machine.requests(), ["list", "watch 3"]);
    assert.equal(second.firstSynced(), "replaced at 3: added b@3");
    assert.match(second.informer.status().snapshot?.refusal ?? "", /another cluster responds at the address/);
    assert.match(second.log.of("warn").join(), /another cluster responds .*; listing instead/);
    await machine.clock.advance(2_000);
    assert.equal(machine.disk.meta?.clusterUid, "another");
  });

  it("is compared by versions where what identifies the cluster may not be read, and says why", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start({ clusterUid: () => Promise.resolve("one") })).stop();
    machine.requests();
    const error = new StatusError(newStatus(403, "Forbidden", "namespaces is forbidden"));
    const { informer } = await machine.start({ clusterUid: () => Promise.reject(error) });
    assert.deepEqual(machine.requests(), ["version", "watch 2"]);
    assert.equal(informer.hasSynced(), true);
    assert.equal(informer.status().snapshot?.clusterUnknown, "namespaces is forbidden");
  });

  it("is not confirmed while the server does not say which cluster it is, and listed after a few tries", async () => {
    await using machine = new Machine();
    machine.create("a");
    const first = await machine.start({ clusterUid: () => Promise.resolve("one") });
    await machine.clock.advance(2_000);
    await first.stop();
    machine.create("b");
    machine.requests();
    const error = new StatusError(newStatus(503, "ServiceUnavailable", "it is starting"));
    const { informer } = await machine.start({ clusterUid: () => Promise.reject(error) });
    assert.deepEqual([machine.requests(), informer.hasSynced()], [[], false]);
    await machine.clock.advance(10_000);
    assert.deepEqual([machine.requests(), informer.hasSynced()], [["list 2", "watch 3"], true]);
  });

  it("is not confirmed by a watch that opens before its cluster is known, and listed where that is another one", async () => {
    await using machine = new Machine();
    machine.create("a");
    const first = await machine.start({ clusterUid: () => Promise.resolve("one") });
    await machine.clock.advance(2_000);
    await first.stop();
    machine.create("b");
    machine.requests();
    const late = lateUid("another");
    const { informer, firstSynced } = await machine.start({ clusterUid: late.clusterUid });
    await machine.clock.advance(10_000);
    assert.deepEqual(machine.requests(), ["watch 2", "list 3", "watch 3"]);
    assert.equal(firstSynced(), "replaced at 3: ");
    assert.match(informer.status().snapshot?.refusal ?? "", /another cluster responds at the address/);
    await machine.clock.advance(2_000);
    assert.equal(machine.disk.meta?.clusterUid, "another");
  });

  it("is confirmed by a watch that opens before its cluster is known once that is its own", async () => {
    await using machine = new Machine();
    machine.create("a");
    const first = await machine.start({ clusterUid: () => Promise.resolve("one") });
    await machine.clock.advance(2_000);
    await first.stop();
    machine.create("b");
    machine.requests();
    const late = lateUid("one");
    const { informer, observed } = await machine.start({ clusterUid: late.clusterUid });
    await machine.clock.advance(500);
    assert.deepEqual([observed.at(-1), informer.hasSynced()], ["added b@3", false]);
    await machine.clock.advance(10_000);
    assert.deepEqual(machine.requests(), ["watch 2", "version"]);
    assert.deepEqual([late.tries, informer.hasSynced()], [3, true]);
  });

  it("is confirmed by a bookmark that came before its cluster was known, once that is its own", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 300 });
    machine.create("a");
    const first = await machine.start({ clusterUid: () => Promise.resolve("one"), isBareSource: true });
    await machine.clock.advance(2_000);
    await first.stop();
    const late = lateUid("one");
    const { informer } = await machine.start({ clusterUid: late.clusterUid, isBareSource: true });
    await machine.clock.advance(950);
    assert.deepEqual([late.tries, informer.hasSynced()], [2, false]);
    await machine.clock.advance(100);
    assert.deepEqual([late.tries, informer.hasSynced()], [3, true]);
  });

  it("is confirmed by no event that came before its cluster was known, and by a bookmark also with one after it", async () => {
    for (const bookmarkIntervalMs of [300, 2_000]) {
      await using machine = new Machine({ bookmarkIntervalMs });
      machine.create("a");
      const first = await machine.start({ clusterUid: () => Promise.resolve("one"), isBareSource: true });
      await machine.clock.advance(2_000);
      await first.stop();
      const late = lateUid("one");
      const { informer } = await machine.start({ clusterUid: late.clusterUid, isBareSource: true });
      await machine.clock.advance(950);
      machine.create("b");
      await machine.settle();
      assert.deepEqual([late.tries, informer.hasSynced()], [2, false]);
      await machine.clock.advance(100);
      assert.deepEqual([late.tries, informer.hasSynced()], [3, bookmarkIntervalMs === 300]);
      await machine.clock.advance(1_000);
      assert.equal(informer.hasSynced(), true);
    }
  });

  it("asks for no proof any more once a bookmark has confirmed it", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 1_500 });
    machine.create("a");
    await (await machine.start()).stop();
    machine.server.create("v1/configmaps", { metadata: { name: "other" } });
    machine.server.intercept(answerStatus(500), { match: ({ query }) => query.timeoutSeconds === "3" });
    const { informer } = await machine.start();
    await machine.clock.advance(1_499);
    assert.equal(informer.hasSynced(), false);
    await machine.clock.advance(1);
    assert.equal(informer.hasSynced(), true);
    machine.requests();
    await machine.clock.advance(60_000);
    assert.deepEqual(machine.requests(), []);
  });

  it("is listed where the server turns out to be before its version, once its cluster is known", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    const first = await machine.start({ clusterUid: () => Promise.resolve("one") });
    await machine.clock.advance(2_000);
    await first.stop();
    machine.disk.meta = { ...machine.disk.meta!, resourceVersion: "9" };
    const late = lateUid("one");
    machine.requests();
    const { informer, firstSynced } = await machine.start({ clusterUid: late.clusterUid });
    await machine.clock.advance(10_000);
    assert.deepEqual(machine.requests().slice(0, 3), ["watch 9", "version", "list 9"]);
    assert.deepEqual([informer.hasSynced(), firstSynced()], [true, "replaced at 2: "]);
  });

  it("asks for one proof at a time, however often the watch is opened, and for none after a stop", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    await (await machine.start()).stop();
    machine.server.create("v1/configmaps", { metadata: { name: "other" } });
    machine.server.intercept(answerStatus(500), { match: ({ query }) => query.timeoutSeconds === "3" });
    const { informer, stop } = await machine.start();
    machine.requests();
    await machine.clock.advance(1_100);
    assert.deepEqual(machine.requests(), ["proof 2", "proof 2"]);
    machine.server.closeWatches();
    await machine.clock.advance(2_500);
    assert.deepEqual(machine.requests(), ["watch 2"]);
    assert.equal(informer.hasSynced(), false);
    await stop();
    assert.equal(machine.clock.pendingTimers, 0);
  });

  it("is listed where a watch is open and the question which cluster it is breaks again and again", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start({ clusterUid: () => Promise.resolve("one") })).stop();
    machine.requests();
    const { informer } = await machine.start({
      clusterUid: () => Promise.reject(new TypeError("fetch failed")),
    });
    await machine.clock.advance(60_000);
    assert.deepEqual(machine.requests(), ["watch 2", "list 2", "watch 2"]);
    assert.equal(informer.hasSynced(), true);
  });

  it("is listed where the question which cluster it is has no answer at first, and then another cluster's", async () => {
    const silence = () => new Promise<string>(() => {});
    const loginPage = () => Promise.reject(new DecodeError("the answer is not JSON: it is HTML"));
    for (const first of [silence, loginPage]) {
      await using machine = new Machine();
      machine.create("a");
      await (await machine.start({ clusterUid: () => Promise.resolve("one") })).stop();
      machine.create("b");
      machine.requests();
      let tries = 0;
      const clusterUid = () => ++tries === 1 ? first() : Promise.resolve("another");
      const { informer, firstSynced } = await machine.start({ clusterUid });
      await machine.clock.advance(30_500);
      assert.equal(firstSynced(), "replaced at 3: ");
      assert.match(informer.status().snapshot?.refusal ?? "", /another cluster responds at the address/);
      assert.equal(informer.status().snapshot?.clusterUnknown, undefined);
    }
  });

  it("is listed where the question which cluster it is has no answer, however often it is sent", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start({ clusterUid: () => Promise.resolve("one") })).stop();
    machine.requests();
    const { informer } = await machine.start({ clusterUid: () => new Promise(() => {}) });
    await machine.clock.advance(35_000);
    assert.deepEqual([machine.requests()[0], informer.isRestored()], ["version", true]);
    assert.equal(informer.status().snapshot?.clusterUnknown, "no answer within 30000 ms");
    await machine.clock.advance(200_000);
    assert.equal(machine.requests().filter((line) => line.startsWith("list")).length, 1);
    assert.equal(informer.hasSynced(), true);
  });

  it("is of the cluster that was listed last, though another one was before", async () => {
    await using machine = new Machine();
    machine.create("a");
    let uid = "one";
    const { informer } = await machine.start({ clusterUid: () => Promise.resolve(uid) });
    await machine.clock.advance(2_000);
    assert.equal(machine.disk.meta?.clusterUid, "one");
    uid = "another";
    machine.server.closeWatches({ reset: true });
    machine.create("b");
    machine.server.compact();
    await machine.clock.advance(10_000);
    assert.equal(machine.disk.meta?.clusterUid, "another");
    assert.equal(informer.status().snapshot?.clusterUid, "another");
  });

  it("asks after each list which cluster that was of, and ends the question after an earlier one", async () => {
    await using machine = new Machine();
    machine.create("a");
    const questions: AbortSignal[] = [];
    let answer!: (uid: string) => void;
    const clusterUid = (signal?: AbortSignal) => {
      questions.push(signal!);
      return new Promise<string>((resolve) => (answer = resolve));
    };
    const { informer } = await machine.start({ clusterUid });
    for (const name of ["b", "c"]) {
      machine.server.closeWatches({ reset: true });
      machine.create(name);
      machine.server.compact();
      await machine.clock.advance(5_000);
    }
    assert.equal(machine.requests().filter((line) => line.startsWith("list")).length, 3);
    assert.deepEqual(questions.map(({ aborted }) => aborted), [true, true, false]);
    answer("one");
    await machine.settle();
    assert.equal(informer.status().snapshot?.clusterUid, "one");
  });

  it("is confirmed at once where the watch was opened while the content was being stored", async () => {
    await using machine = new Machine();
    for (let i = 0; i < 2_000; i++) machine.create(`pod-${i}`);
    machine.server.create("v1/services", { metadata: { name: "s", namespace: "default" } });
    const first = await machine.start();
    for (let i = 0; i < 500 && !first.informer.hasSynced(); i++) await machine.settle();
    await first.stop();
    // The server is past the version of the snapshot, and no event shows it.
    machine.server.create("v1/services", { metadata: { name: "t", namespace: "default" } });
    machine.requests();
    const second = await machine.start({ turnObjects: 1 });
    for (let i = 0; i < 2_000 && !second.informer.isRestored(); i++) await machine.settle();
    assert.equal(second.informer.isRestored(), true);
    assert.equal(second.informer.status().phase, "watching");
    await machine.clock.advance(5_000);
    assert.equal(second.informer.hasSynced(), true);
    assert.equal(machine.requests().some((line) => line.startsWith("list")), false);
  });

  it("lists at once what an index function did not accept of the content, and has not synced before", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    const first = await machine.start();
    await first.stop();
    let calls = 0;
    machine.server.create("v1/configmaps", { metadata: { name: "other" } });
    machine.requests();
    const second = await machine.start({
      indexers: {
        byName: ({ metadata }: KubernetesObject) => {
          if (metadata?.name === "a" && calls++ === 0) throw new Error("not yet");
          return [metadata?.name ?? ""];
        },
      } as never,
    });
    assert.deepEqual(machine.requests(), ["version", "watch 3", "list 3", "watch 4"]);
    assert.deepEqual(second.observed, ["replaced at 3: added b@3", "replaced at 4: added a@2"]);
    assert.equal(second.firstSynced(), second.observed[1]);
  });

  it("asks again for a proof where the server did not answer the first time", async () => {
    await using machine = new Machine();
    machine.create("a");
    const first = await machine.start();
    await first.stop();
    machine.server.create("v1/services", { metadata: { name: "t", namespace: "default" } });
    const second = await machine.start({ refusesProofs: 1 });
    await machine.clock.advance(500);
    assert.equal(second.informer.hasSynced(), false);
    await machine.clock.advance(6_000);
    assert.equal(second.informer.hasSynced(), true);
  });

  it("gives others a turn while batches come that have no objects", async () => {
    await using machine = new Machine();
    let turns = 0;
    const timer = setInterval(() => turns++);
    const entries = function* () {
      for (let i = 0; i < 1_000_000 && turns < 2; i++) yield [];
      throw new Error(`there were ${turns} turns`);
    };
    const process = await machine.start({ storageOptions: { load: () => loaded({ entries }) } });
    while (process.informer.status().snapshot?.load === "loading") {
      await new Promise((resolve) => setTimeout(resolve));
    }
    clearInterval(timer);
    assert.match(process.informer.status().snapshot?.refusal ?? "", /there were 2 turns/);
  });

  for (
    const [what, load, reason] of [
      ["throws", () => Promise.reject(new Error("disk on fire")), /disk on fire \(unreadable\)/],
      [
        "has fewer objects than it says",
        () => loaded({ count: 2 }),
        /has 1 objects, and should have 2 \(truncated\)/,
      ],
      ["has more objects than it says", () => loaded({ count: 0 }), /more than the 0 objects .* \(corrupt\)/],
      [
        "has an object twice",
        () => loaded({ count: 2, entries: () => [...loaded({}).entries(), ...loaded({}).entries()] }),
        /it has "default\/a" twice \(corrupt\)/,
      ],
      [
        "has no version of a server",
        () => loaded({ resourceVersion: "-3" }),
        /its version "-3" is no decimal number \(corrupt\)/,
      ],
      [
        "has a long version of no server",
        () => loaded({ resourceVersion: "x".repeat(1_000) }),
        /its version "x{100}" is no decimal number \(corrupt\)/,
      ],
      [
        "has a version that is no text",
        () => loaded({ resourceVersion: 5 }),
        /its version, .* is missing \(corrupt\)/,
      ],
      ["has no time", () => loaded({ savedAtMs: NaN }), /\(corrupt\)/],
      ["has no number of objects", () => loaded({ count: undefined }), /is missing \(corrupt\)/],
      ["has text that is no JSON", () => loaded({}, "{"), /"default\/a": .* \(corrupt\)/],
      [
        "has an object under another key",
        () => loaded({}, JSON.stringify(pod("b"))),
        /has the key ".*b" \(other-identity\)/,
      ],
      [
        "has an object in another form than the store's",
        () => loaded({ entries: () => [[{ key: "default/a", held: pod("a"), json: "{}" }]] }),
        /"default\/a" is in another form than the store's \(foreign\)/,
      ],
      ["throws in its middle", () => ({
        ...loaded({}),
        entries: function* () {
          yield* loaded({}).entries();
          throw new Error("bad sector");
        },
      }), /bad sector \(unreadable\)/],
    ] as const
  ) {
    it(`refuses a snapshot whole that ${what}, lists, and replaces it`, async () => {
      await using machine = new Machine();
      machine.create("a");
      const process = await machine.start({ storageOptions: { load } });
      const { load: outcome, refusal = "" } = process.informer.status().snapshot!;
      assert.match(refusal, reason);
      assert.equal(refusal.match(/ \([a-z-]+\)/g)?.length, 1, refusal);
      assert.equal(outcome, "refused");
      assert.deepEqual(machine.requests(), ["list 0", "watch 2"]);
      assert.deepEqual(process.observed, ["replaced at 2: added a@2"]);
      await machine.clock.advance(1_000);
      assert.equal(machine.disk.saves[0].replaces, true);
    });
  }

  function loaded(change: object, json = JSON.stringify(pod("a", { namespace: "default" }))) {
    return {
      resourceVersion: "1",
      savedAtMs: 1,
      needsList: false,
      count: 1,
      entries: () => [[{ key: "default/a", json }]],
      ...change,
    };
  }

  it("lists where it is of no version at which a watch begins", async () => {
    for (const resourceVersion of ["", "0"]) {
      await using machine = new Machine();
      machine.create("a");
      const process = await machine.start({ storageOptions: { load: () => loaded({ resourceVersion }) } });
      assert.equal(process.informer.status().snapshot?.load, "restored");
      assert.equal(machine.requests().find((request) => request !== "version"), "list 0");
      assert.deepEqual(process.content(), machine.content());
    }
  });

  it("gives others turns while one batch has many objects", async () => {
    await using machine = new Machine();
    const batch = Array.from({ length: 400 }, (_, i) => {
      const key = `default/pod-${i}`;
      return { key, json: JSON.stringify(pod(`pod-${i}`, { namespace: "default" })) };
    });
    const load = () => loaded({ entries: () => [batch], count: batch.length });
    const { informer } = await machine.start({
      storageOptions: { load },
      turnObjects: 20,
      settles: false,
    });
    let turns = 0;
    while (informer.status().snapshot?.load === "loading") {
      turns++;
      await nextTurn();
    }
    assert.equal(informer.status().snapshot?.load, "restored");
    assert.ok(turns >= 10, `${turns} turns`);
  });

  it("saves what identifies the cluster as soon as it is known, though nothing else changes", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    const uid = Promise.withResolvers<string>();
    await machine.start({ clusterUid: () => uid.promise });
    await machine.clock.advance(1_500);
    assert.deepEqual(machine.disk.saves.map(({ clusterUid }) => clusterUid), [undefined]);
    uid.resolve("uid-of-kube-system");
    await machine.settle();
    await machine.clock.advance(1_000);
    assert.deepEqual(machine.disk.saves.map(({ clusterUid }) => clusterUid), [
      undefined,
      "uid-of-kube-system",
    ]);
    assert.deepEqual(machine.disk.saves[1].puts, []);
  });

  it("refuses content of another selection, or with other fields", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start()).stop();
    const other = await machine.start({ resource: { labelSelector: "app=web" } });
    assert.match(other.informer.status().snapshot?.refusal ?? "", /other-identity/);
    await other.stop();
    const dropped = await machine.start({ resource: { drop: ["metadata.annotations"] } });
    assert.match(dropped.informer.status().snapshot?.refusal ?? "", /other-identity/);
  });

  it("restores nothing that was dropped or transformed anew: objects are as they were held", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    let calls = 0;
    const options = {
      transform: (object: { metadata?: object }) => {
        calls++;
        return { ...object, metadata: { ...object.metadata, annotations: { transformed: String(calls) } } };
      },
      snapshotOptions: { identity: "1" },
    };
    const first = await machine.start(options);
    assert.equal(calls, 2);
    const before = first.informer.indexer.list();
    await first.stop();
    const second = await machine.start(options);
    assert.equal(calls, 2);
    assert.deepEqual(second.informer.indexer.list(), before);
    await second.stop();
    const third = await machine.start({ ...options, snapshotOptions: { identity: "2" } });
    assert.match(third.informer.status().snapshot?.refusal ?? "", /other-identity/);
  });

  it("freezes what it restores, if it freezes", async () => {
    await using machine = new Machine();
    machine.create("a");
    await (await machine.start({ freezeObjects: true })).stop();
    const { informer } = await machine.start({ freezeObjects: true });
    const metadata = informer.indexer.getByKey("default/a")?.metadata as { name: string };
    assert.throws(() => void (metadata.name = "b"), TypeError);
  });

  it("restores the same objects with and without their heads", async () => {
    await using machine = new Machine();
    machine.create("a", "b", "c");
    const first = await machine.start();
    const before = first.informer.indexer.list();
    await first.stop();
    for (const hasHeads of [true, false]) {
      machine.disk.hasHeads = hasHeads;
      const next = await machine.start();
      assert.deepEqual(next.informer.indexer.list(), before);
      assert.equal(next.informer.status().snapshot?.load, "restored");
      await next.stop();
    }
  });

  it("restores many objects in turns, and has them as one step", async () => {
    await using machine = new Machine();
    for (let i = 0; i < 50; i++) machine.create(`pod-${i}`);
    await (await machine.start()).stop();
    const second = await machine.start({ turnObjects: 7 });
    await second.informer.restored();
    assert.deepEqual(second.content(), machine.content());
    assert.equal(second.observed.filter((line) => line.startsWith("replaced")).length, 1);
  });

  it("resumes an empty content", async () => {
    await using machine = new Machine();
    await (await machine.start()).stop();
    machine.requests();
    const second = await machine.start();
    assert.deepEqual(machine.requests(), ["version", "watch 1"]);
    assert.equal(second.informer.hasSynced(), true);
  });

  it("lists where a change was lost before the save", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    const options = {
      snapshotOptions: { identity: "1" },
      transform: <T extends object>(object: T): T => {
        if (JSON.stringify(object).includes("touched")) throw new Error("not this one");
        return object;
      },
    };
    const first = await machine.start(options);
    machine.touch("a");
    machine.create("c");
    await machine.settle();
    assert.deepEqual(first.content(), ["a@2", "b@3", "c@5"]);
    await first.stop();
    assert.equal(machine.disk.meta?.needsList, true);
    machine.create("d");
    machine.requests();
    const second = await machine.start({ snapshotOptions: { identity: "1" }, transform: (object) => object });
    assert.deepEqual(machine.requests(), ["list 5", "watch 6"]);
    assert.deepEqual(second.content(), machine.content());
  });

  it("lists where a change was lost of which not even the key was known", async () => {
    await using machine = new Machine();
    machine.create("a");
    const event = {
      type: "MODIFIED",
      object: { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: "3" } },
    };
    machine.server.intercept(
      () =>
        Promise.resolve(
          new Response(
            new ReadableStream({
              start: (controller) =>
                controller.enqueue(new TextEncoder().encode(`${JSON.stringify(event)}\n`)),
            }),
          ),
        ),
      { match: ({ isWatch }) => isWatch, times: 1 },
    );
    const first = await machine.start();
    assert.equal(first.informer.status().quarantined, 1);
    await first.stop();
    assert.equal(machine.disk.meta?.needsList, true);
    machine.requests();
    const second = await machine.start();
    assert.equal(machine.requests()[0], "list 2");
    await second.stop();
    assert.equal(machine.disk.meta?.needsList, false, "everything was listed since");
  });

  it("needs no list any more once a list has everything since a change was lost", async () => {
    await using machine = new Machine();
    machine.create("a");
    const options = {
      snapshotOptions: { identity: "1" },
      transform: <T extends object>(object: T): T => {
        if (JSON.stringify(object).includes("touched")) throw new Error("not this one");
        return object;
      },
    };
    const { stop } = await machine.start(options);
    machine.touch("a");
    await machine.clock.advance(1_000);
    assert.equal(machine.disk.meta?.needsList, true);
    machine.delete("a");
    machine.create("b");
    await machine.clock.advance(600_000);
    await stop();
    assert.equal(machine.disk.meta?.needsList, false);
    assert.deepEqual(machine.disk.content(), ["b@5"]);
  });

  it("refuses what does not go with it when it is made", () => {
    const source = { list: () => assert.fail(), watch: () => assert.fail(), description: "pods" };
    const snapshot = () => newInformerSnapshot(new Disk().open());
    const identified = { ...source, identity: "here" };
    assert.throws(
      () => new SharedIndexInformer(identified, { snapshot: snapshot(), queue: () => assert.fail() }),
      /^TypeError: Cannot keep a snapshot of pods: the store is at no single version behind a queue of your own/,
    );
    assert.throws(
      () => new SharedIndexInformer(source, { snapshot: snapshot() }),
      /nothing says what its source/,
    );
    const transform = <T>(object: T): T => object;
    assert.throws(
      () => new SharedIndexInformer(identified, { snapshot: snapshot(), transform }),
      /nothing says which transform its objects have passed. Give the snapshot an `identity`/,
    );
    const informer = new SharedIndexInformer(identified, { snapshot: snapshot() });
    assert.throws(
      () => informer.setTransform(transform),
      /^TypeError: Cannot set the transform of pods: its snapshot has no `identity`/,
    );
    const one = snapshot();
    new SharedIndexInformer(identified, { snapshot: one, name: "one" });
    assert.throws(
      () => new SharedIndexInformer(identified, { snapshot: one, name: "two" }),
      /Cannot keep the snapshot of two where that of one is: make a snapshot for each informer/,
    );
    assert.throws(() => newInformerSnapshot(new Disk().open(), { intervalMs: NaN }), RangeError);
  });
});
