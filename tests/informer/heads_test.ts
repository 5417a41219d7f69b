import assert from "node:assert/strict";
import {
  FilteringResourceEventHandler,
  type HandlerOptions,
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  shortTexts,
  silentLogger,
  texts,
} from "@listwatch/cache";
import type { HeadHandlerOptions, KeyedHead } from "@listwatch/cache/informer";
import type { NewHolding } from "../../src/store/holding.ts";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { describe as describeOnce, it as itOnce } from "node:test";
import { named, newRig, Recorder, type RigOptions } from "./rig.ts";
import { describe, it } from "./storages.ts";

/** Objects of which each is added, changed and deleted: seen by the watch, and found by a list. */
async function live(rig: ReturnType<typeof newRig>): Promise<void> {
  rig.source.add(named("a", { app: "web" }));
  rig.source.add(named("b"));
  await rig.start();
  rig.source.modify(named("a", { app: "db" }));
  rig.source.add({ metadata: { name: "c", namespace: "shop", uid: "u-c", labels: { app: "web" } } });
  rig.source.delete(named("b"));
  await rig.settle();
  rig.source.modifyDropWatch(named("a", { app: "api" }));
  rig.source.deleteDropWatch({ metadata: { name: "c", namespace: "shop" } });
  rig.source.resetWatch();
  await rig.retry();
  await rig.clock.advance(10_000); // a resync
}

describe("SharedIndexInformer.addEventHandler with receives: heads", () => {
  it("notifies of the same changes as a handler of objects, also one that joins late", async () => {
    await using rig = newRig({ resyncPeriodMs: 10_000 });
    const objects = rig.record();
    const heads = new Recorder();
    rig.informer.addEventHandler(heads, { receives: "heads" });
    await live(rig);
    const calls = heads.take();
    assert.deepEqual(calls, objects.recorder.take());
    for (const type of ["add", "update", "delete", "tombstone"]) {
      assert.ok(calls.some((call) => call.startsWith(type)), `${type}: ${calls}`);
    }
    const late = new Recorder();
    const registration = rig.informer.addEventHandler(late, { receives: "heads" });
    await rig.settle();
    assert.deepEqual(late.take(), ["add a@6 initial"]);
    assert.equal(registration.hasSynced(), true);
  });

  it("hands out plain records with the same properties, whatever the storage", async () => {
    const heads = await headsOf([
      {
        metadata: {
          name: "a",
          namespace: "shop",
          uid: "u-1",
          labels: { app: "web" },
          annotations: { b: "c" },
        },
      },
      { metadata: { name: "node-1" } },
    ]);
    assert.deepEqual(heads, [
      {
        key: "shop/a",
        metadata: {
          name: "a",
          namespace: "shop",
          uid: "u-1",
          resourceVersion: "1",
          labels: { app: "web" },
        },
      },
      {
        key: "node-1",
        metadata: {
          name: "node-1",
          namespace: undefined,
          uid: undefined,
          resourceVersion: "2",
          labels: undefined,
        },
      },
    ]);
    for (const { metadata, ...rest } of heads) {
      assert.deepEqual(Object.keys(rest), ["key"]);
      const { ...copy } = metadata;
      assert.deepEqual(Object.keys(copy), ["name", "namespace", "uid", "resourceVersion", "labels"]);
    }
  });

  it("has names and keys also with another key function", async () => {
    const heads = await headsOf([{ metadata: { name: "a", namespace: "shop", uid: "u-1" } }], {
      keyFunc: (value) => (value as KubernetesObject).metadata?.uid ?? "",
    });
    assert.deepEqual(heads.map(({ key, metadata: { name } }) => [key, name]), [["u-1", "a"]]);
  });

  it("freezes heads and their labels, with freezeObjects", async () => {
    const [head] = await headsOf([named("a", { app: "web" })], { freezeObjects: true });
    for (const part of [head, head.metadata, head.metadata.labels]) assert.equal(Object.isFrozen(part), true);
  });

  it("hands out the same head twice in the update of a resync", async () => {
    await using rig = newRig({ resyncPeriodMs: 10_000 });
    rig.source.add(named("a"));
    const updates: boolean[] = [];
    rig.informer.addEventHandler({ onUpdate: (old, head) => updates.push(old === head) }, {
      receives: "heads",
    });
    await rig.start();
    await rig.clock.advance(10_000);
    rig.source.modify(named("a"));
    await rig.settle();
    assert.deepEqual(updates, [true, false]);
  });

  it("is filtered by a FilteringResourceEventHandler of heads", async () => {
    await using rig = newRig();
    const recorder = new Recorder();
    rig.informer.addEventHandler(
      new FilteringResourceEventHandler<KeyedHead>(
        (head) => "metadata" in head && head.metadata.labels?.app === "web",
        recorder,
      ),
      { receives: "heads" },
    );
    rig.source.add(named("a", { app: "web" }));
    rig.source.add(named("b", { app: "db" }));
    await rig.start();
    rig.source.modify(named("a", { app: "db" }));
    rig.source.modify(named("b", { app: "web" }));
    rig.source.delete(named("b", { app: "web" }));
    await rig.settle();
    assert.deepEqual(recorder.take(), ["add a@1 initial", "delete a@1", "add b@4", "delete b@5"]);
  });

  it("refuses anything but heads and objects", () => {
    const { informer } = newRig();
    assert.throws(
      () => informer.addEventHandler({}, { receives: "keys" as "heads" }),
      { name: "TypeError", message: /it can receive "objects" or "heads", not "keys"/ },
    );
    informer.addEventHandler({}, { receives: "objects" });
  });
});

for (const [name, newStorage] of Object.entries({ texts, shortTexts })) {
  for (const useWatchList of [false, true]) {
    describeOnce(`a handler, with ${name} of what a server ${useWatchList ? "streams" : "lists"}`, () => {
      const keyFunc = (value: unknown) => `pod ${(value as KubernetesObject).metadata?.name}`;

      itOnce("has no object opened for it if it receives heads", async () => {
        for (const options of [{}, { keyFunc }]) {
          const run = await countOpened(newStorage, { receives: "heads" }, { ...options, useWatchList });
          assert.equal(run.opened, 0);
          assert.deepEqual(run.calls, NOTIFIED);
        }
      });

      itOnce("has every object opened for it otherwise", async () => {
        const run = await countOpened(newStorage, { receives: "objects" }, { useWatchList });
        assert.equal(run.opened, 8);
        assert.deepEqual(run.calls, NOTIFIED);
      });
    });
  }
}

const NOTIFIED = [
  "add web-1@2 initial",
  "add web-2@3 initial",
  "update web-1@2>4",
  "delete web-2@5",
  "update web-1@4>6",
  "tombstone web-1@6",
];

/** What a handler receives of an API server, and how many objects are opened meanwhile. */
async function countOpened(
  newStorage: typeof texts,
  handlerOptions: HandlerOptions | HeadHandlerOptions,
  { useWatchList, ...options }: {
    readonly useWatchList: boolean;
    readonly keyFunc?: (value: unknown) => string;
  },
): Promise<{ readonly opened: number; readonly calls: readonly string[] }> {
  let opened = 0;
  const storage: NewHolding = (keyFunc) =>
    newStorage({ hotObjects: 0 })(keyFunc, { onOpened: () => opened++ });
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const informer = new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/pods"), {
    ...options,
    storage,
    clock,
    logger: silentLogger,
    reflector: { useWatchList, random: () => 0 },
  });
  const recorder = new Recorder();
  informer.addEventHandler(recorder, handlerOptions as HeadHandlerOptions);
  for (const name of ["web-1", "web-2"]) server.create("v1/pods", pod(name));
  await using _ = informer.start();
  await clock.advance(10);
  server.update("v1/pods", pod("web-1", { labels: { app: "web" } }));
  server.delete("v1/pods", "default/web-2");
  server.update("v1/pods", pod("web-1", { labels: { app: "db" } }));
  await clock.advance(10);
  server.closeWatches();
  server.delete("v1/pods", "default/web-1");
  server.compact();
  await clock.advance(60_000);
  return { opened, calls: recorder.take() };
}

/** The heads of which a handler is notified first. */
async function headsOf(
  objects: readonly KubernetesObject[],
  options: RigOptions<never> = {},
): Promise<KeyedHead[]> {
  await using rig = newRig(options);
  for (const object of objects) rig.source.add(object);
  const heads: KeyedHead[] = [];
  rig.informer.addEventHandler({ onAdd: (head) => heads.push(head) }, { receives: "heads" });
  await rig.start();
  return heads.sort((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion));
}
