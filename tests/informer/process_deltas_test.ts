import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { deletionHandlingMetaNamespaceKey, type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { type Delta, RealFIFO } from "@listwatch/cache/queue";
import { newIndexer, newStore, type Store } from "@listwatch/cache/store";
import { FakeClock } from "@listwatch/cache/testing";
import type { Notification } from "../../src/informer/event_handler.ts";
import { processDeltas } from "../../src/informer/process_deltas.ts";
import { Quarantine } from "../../src/reflector/quarantine.ts";
import { text } from "./rig.ts";

function at(name: string, resourceVersion: string, uid = name): KubernetesObject {
  return { metadata: { name, resourceVersion, uid } };
}

/** A notification, and what the store held when it was made. */
function line(notification: Notification<KubernetesObject>, store: Store<KubernetesObject>): string {
  const stored = (name: string) => {
    const object = store.getByKey(name);
    return object === undefined ? "gone" : text(object);
  };
  switch (notification.type) {
    case "add": {
      const { object, isInInitialList } = notification;
      return `add ${text(object)}${isInInitialList ? " initial" : ""} (${stored(object.metadata!.name!)})`;
    }
    case "update": {
      const { oldObject, object } = notification;
      return `update ${text(oldObject)}>${text(object)} (${stored(object.metadata!.name!)})`;
    }
    case "delete": {
      const { key, object, finalStateUnknown } = notification.deleted;
      return `${finalStateUnknown ? "tombstone" : "delete"} ${object ? text(object) : key} (${stored(key)})`;
    }
  }
}

function newSink(store = newStore<KubernetesObject>(deletionHandlingMetaNamespaceKey)) {
  const lines: string[] = [];
  const process = (deltas: readonly Delta<KubernetesObject>[], isInInitialList = false) =>
    processDeltas(
      store,
      { notify: (notification) => lines.push(line(notification, store)) },
      deltas,
      isInInitialList,
      deletionHandlingMetaNamespaceKey,
    );
  return { store, lines, process };
}

describe("processing deltas", () => {
  it("tells the same of a relist that comes as one delta and of one that comes as many", () => {
    for (const atomicEvents of [true, false]) {
      const { store, lines, process } = newSink();
      const queue = new RealFIFO<KubernetesObject>(
        atomicEvents ? { atomicEvents } : { atomicEvents, knownObjects: store },
      );
      const drain = () => {
        while (queue.tryPop(process));
      };
      queue.replace([at("1", "1"), at("2", "2"), at("3", "3")], "3");
      drain();
      queue.replace([at("1", "5"), at("2", "6"), at("4", "7")], "7");
      drain();
      assert.deepEqual(lines, [
        "add 1@1 initial (1@1)",
        "add 2@2 initial (2@2)",
        "add 3@3 initial (3@3)",
        "tombstone 3@3 (gone)",
        "update 1@1>1@5 (1@5)",
        "update 2@2>2@6 (2@6)",
        "add 4@7 (4@7)",
      ], `atomic: ${atomicEvents}`);
      assert.deepEqual(store.listKeys().sort(), ["1", "2", "4"]);
    }
  });

  it("goes by what is stored, not by what the delta is called", () => {
    const { lines, process } = newSink();
    process([{ type: "Updated", object: at("a", "1") }]);
    process([{ type: "Added", object: at("a", "2") }]);
    process([{ type: "Replaced", object: at("b", "3") }]);
    process([{ type: "Sync", object: at("b", "3") }]);
    assert.deepEqual(lines, [
      "add a@1 (a@1)",
      "update a@1>a@2 (a@2)",
      "add b@3 (b@3)",
      "update b@3>b@3 (b@3)",
    ]);
  });

  it("tells of the deletion of what is not stored as well", () => {
    const { lines, process } = newSink();
    process([{ type: "Deleted", object: at("a", "9") }]);
    assert.deepEqual(lines, ["delete a@9 (gone)"]);
  });

  it("takes several deltas of one object oldest first", () => {
    const { lines, process } = newSink();
    process([
      { type: "Added", object: at("a", "1") },
      { type: "Updated", object: at("a", "2") },
      { type: "Deleted", object: at("a", "3") },
    ]);
    assert.deepEqual(lines, ["add a@1 (a@1)", "update a@1>a@2 (a@2)", "delete a@3 (gone)"]);
  });

  it("keeps the stored object when a list brings the same state again", () => {
    const { store, lines, process } = newSink();
    const first = at("a", "1");
    process([{ type: "Added", object: first }]);
    const relist = (object: KubernetesObject, resourceVersion: string) =>
      process([{ type: "ReplacedAll", object: { resourceVersion, objects: [object] } }]);
    relist(at("a", "1"), "5");
    assert.equal(store.getByKey("a"), first);
    const reborn = at("a", "1", "another uid");
    relist(reborn, "6");
    assert.equal(store.getByKey("a"), reborn);
    assert.deepEqual(lines, ["add a@1 (a@1)", "update a@1>a@1 (a@1)", "update a@1>a@1 (a@1)"]);
    assert.equal(store.lastStoreSyncResourceVersion(), "6");
  });

  it("hands everything out again for a SyncAll, and moves the store on for a Bookmark", () => {
    const { store, lines, process } = newSink();
    process([{ type: "Added", object: at("a", "1") }]);
    process([{ type: "SyncAll", object: {} }]);
    process([{ type: "Bookmark", object: { resourceVersion: "8" } }]);
    assert.deepEqual(lines, ["add a@1 (a@1)", "update a@1>a@1 (a@1)"]);
    assert.equal(store.lastStoreSyncResourceVersion(), "8");
  });
});

describe("a delta that cannot be applied", () => {
  const indexers = {
    byUid: (object: KubernetesObject) => {
      if (object.metadata?.uid === "bad") throw new Error("index func broke");
      return [object.metadata?.uid ?? ""];
    },
  };

  function newRejecting() {
    const store = newIndexer<KubernetesObject, "byUid">(metaNamespaceKey, indexers);
    const lines: string[] = [];
    const rejected: string[] = [];
    const quarantine = new Quarantine({
      name: "pods",
      clock: new FakeClock(),
      onQuarantined: ({ reason }) => rejected.push(reason),
    });
    const process = (deltas: readonly Delta<KubernetesObject>[]) =>
      processDeltas(
        store,
        {
          notify: (notification) => lines.push(line(notification, store)),
          quarantine,
        },
        deltas,
        false,
        metaNamespaceKey,
      );
    return { store, lines, rejected, process };
  }

  it("is reported, leaves the state before it, and the others are applied", () => {
    const { store, lines, rejected, process } = newRejecting();
    process([
      { type: "Added", object: at("a", "1") },
      { type: "Updated", object: at("a", "2", "bad") },
      { type: "Added", object: "no object" as never },
      { type: "Added", object: at("b", "3") },
    ]);
    assert.deepEqual(lines, ["add a@1 (a@1)", "add b@3 (b@3)"]);
    assert.equal(rejected.length, 2);
    assert.match(rejected[0], /index func broke/);
    assert.match(rejected[1], /key/);
    assert.deepEqual(store.list().map(text).sort(), ["a@1", "b@3"]);
  });

  it("in a list is reported, leaves the state before it, and the others are applied", () => {
    const { store, lines, rejected, process } = newRejecting();
    process([{ type: "Added", object: at("a", "1") }, { type: "Added", object: at("gone", "2") }]);
    lines.length = 0;
    const objects = [at("a", "5", "bad"), "no object" as never, at("new", "6", "bad"), at("b", "7")];
    process([{ type: "ReplacedAll", object: { resourceVersion: "7", objects } }]);
    assert.equal(rejected.length, 3);
    assert.equal(rejected.filter((reason) => /index func broke/.test(reason)).length, 2);
    assert.deepEqual(store.list().map(text).sort(), ["a@1", "b@7"]);
    assert.deepEqual(lines, ["tombstone gone@2 (gone)", "update a@1>a@1 (a@1)", "add b@7 (b@7)"]);
    assert.deepEqual(store.indexKeys("byUid", "a"), ["a"]);
  });

  it("is thrown where nobody wants to know", () => {
    const { process } = newSink();
    assert.throws(() => process([{ type: "Added", object: "no object" as never }]), { code: "KeyError" });
  });
});
