import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  DeletedFinalStateUnknown,
  deletionHandlingMetaNamespaceKey,
  type Indexer,
  type KubernetesObject,
  metaNamespaceKey,
} from "@listwatch/cache";
import { type Delta, RealFIFO } from "@listwatch/cache/queue";
import type { Store } from "@listwatch/cache/store";
import { DeltaApplier } from "../../src/informer/delta_applier.ts";
import { Listeners } from "../../src/util/errors.ts";
import { encodeMergedVersion, newLayout } from "../../src/meta/merged_version.ts";
import { VersionWaiters } from "../../src/meta/version_waiters.ts";
import { type Cache, newCache } from "../../src/store/cache.ts";
import type { Notification, StoreEvent } from "../../src/informer/events.ts";
import type { ListNotifications, NotificationReceiver } from "../../src/informer/list_application.ts";
import { Quarantine } from "../../src/reflector/quarantine.ts";
import { text } from "./rig.ts";

function at(name: string, resourceVersion: string, uid = name): KubernetesObject {
  return { metadata: { name, resourceVersion, uid } };
}

/** A notification, and what the store held when it was made. */
function line(notification: Notification<KubernetesObject>, store: Store<KubernetesObject>): string {
  const stored = (name: string) => {
    const object = store.getByKey(name);
    return object === undefined ? "absent" : text(object);
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

/** Writes down each notification that it receives. */
class Lines implements NotificationReceiver<KubernetesObject> {
  readonly lines: string[] = [];
  /** How often what was prepared was dropped. */
  dropped = 0;
  readonly #store: Store<KubernetesObject>;

  constructor(store: Store<KubernetesObject>) {
    this.#store = store;
  }

  distribute(notification: Notification<KubernetesObject>): void {
    this.lines.push(line(notification, this.#store));
  }

  distributeList(list: ListNotifications<KubernetesObject>): void {
    const cursor = list.cursor(true);
    for (let next = cursor.shift(); next !== undefined; next = cursor.shift()) this.distribute(next);
  }

  *prepareList(): Generator<undefined, void, undefined> {}

  dropPrepared(): void {
    this.dropped++;
  }
}

function newApplier(
  store: Cache<KubernetesObject, string> = newCache(deletionHandlingMetaNamespaceKey, {}, {}),
  onUnordered: (() => void) | undefined = undefined,
) {
  const receiver = new Lines(store);
  const quarantined: string[] = [];
  const quarantine = new Quarantine({
    name: "pods",
    onQuarantined: ({ reason }) => quarantined.push(reason),
  });
  const observers = new Listeners<StoreEvent<KubernetesObject>>((error) => assert.fail(String(error)));
  const applier = new DeltaApplier<KubernetesObject>({
    store,
    receiver,
    observers,
    waiters: new VersionWaiters(() => store.lastStoreSyncResourceVersion()),
    skipsUnchanged: false,
    stepObjects: 128,
    quarantine,
    onUnordered,
  });
  const process = (deltas: readonly Delta<KubernetesObject>[], isInInitialList = false) =>
    applier.apply(deltas, isInInitialList);
  const relistIsDue = () => !quarantine.isRepaired;
  const { lines } = receiver;
  return { store, receiver, lines, observers, quarantine, quarantined, relistIsDue, process, applier };
}

describe("DeltaApplier.apply", () => {
  it("notifies alike of a relist that comes as one delta and of one that comes as many", () => {
    for (const atomicEvents of [true, false]) {
      const { store, lines, process } = newApplier();
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
        "tombstone 3@3 (absent)",
        "update 1@1>1@5 (1@5)",
        "update 2@2>2@6 (2@6)",
        "add 4@7 (4@7)",
      ], `atomic: ${atomicEvents}`);
      assert.deepEqual(store.listKeys().sort(), ["1", "2", "4"]);
    }
  });

  it("goes by what is stored, not by what the delta is called", () => {
    const { lines, process } = newApplier();
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

  it("notifies of the delete of an object that is not stored as well", () => {
    const { lines, process } = newApplier();
    process([{ type: "Deleted", object: at("a", "9") }]);
    assert.deepEqual(lines, ["delete a@9 (absent)"]);
  });

  it("takes several deltas of one object oldest first", () => {
    const { lines, process } = newApplier();
    process([
      { type: "Added", object: at("a", "1") },
      { type: "Updated", object: at("a", "2") },
      { type: "Deleted", object: at("a", "3") },
    ]);
    assert.deepEqual(lines, ["add a@1 (a@1)", "update a@1>a@2 (a@2)", "delete a@3 (absent)"]);
  });

  it("says of no gap where an event comes again that a list has brought", () => {
    const { process, observers } = newApplier(undefined, () => assert.fail("it is in order"));
    const events: StoreEvent<KubernetesObject>[] = [];
    observers.add((event) => events.push(event));
    const list = (resourceVersion: string): Delta<KubernetesObject> => ({
      type: "ReplacedAll",
      object: { resourceVersion, objects: [at("a", resourceVersion)] },
    });
    process([list("10"), { type: "Updated", object: at("a", "12") }, list("20")]);
    process([{ type: "Updated", object: at("a", "20") }, { type: "Updated", object: at("a", "15") }]);
    assert.deepEqual(events.map(({ type }) => type), ["replaced", "updated", "replaced", "updated"]);
  });

  it("keeps the stored object when a list brings the same state again", () => {
    const { store, lines, process } = newApplier();
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

  it("keeps the stored objects of the keys that a list keeps, unless it brings them", () => {
    const { store, receiver, process } = newApplier();
    for (const name of ["kept", "brought", "lacked"]) store.add(at(name, "1"));
    const keptKeys = ["kept", "brought", "unknown"];
    process([{
      type: "ReplacedAll",
      object: { resourceVersion: "9", objects: [at("brought", "5")], keptKeys },
    }]);
    assert.deepEqual(receiver.lines, [
      "tombstone lacked@1 (absent)",
      "update brought@1>brought@5 (brought@5)",
      "update kept@1>kept@1 (kept@1)",
    ]);
    assert.deepEqual(store.listKeys().sort(), ["brought", "kept"]);
  });

  it("hands each change of a list to observers once, though an index is added while it is prepared", () => {
    const objects = Array.from({ length: 300 }, (_, i) => at(`pod-${i}`, "1"));
    /** Applies them in steps; at one of these an index comes. Returns how many steps there are. */
    const applied = (addsAt?: number) => {
      const { store, observers, applier } = newApplier();
      const changes: number[] = [];
      observers.add((event) => changes.push(event.type === "replaced" ? event.changes.length : 0));
      const list = { type: "ReplacedAll", object: { resourceVersion: "9", objects } } as const;
      let steps = 0;
      for (const _ of applier.applyList(list, false)) {
        if (++steps === addsAt) store.addIndexers({ byName: (object) => [object.metadata!.name!] });
      }
      assert.deepEqual([changes, store.size], [[300], 300]);
      return steps;
    };
    const steps = applied();
    for (let step = 1; step <= steps; step++) assert.ok(applied(step) >= steps);
  });

  it("hands every change of a list to an observer that comes while its notifications are prepared", () => {
    const { receiver, observers, process } = newApplier();
    process([{ type: "Added", object: at("a", "1") }, { type: "Added", object: at("b", "2") }]);
    const changes: string[] = [];
    receiver.prepareList = function* () {
      observers.add((event) => {
        if (event.type !== "replaced") return;
        changes.push(...event.changes.map(({ type, key }) => `${type} ${key}`));
      });
      yield;
    };
    process([{
      type: "ReplacedAll",
      object: { resourceVersion: "4", objects: [at("b", "3"), at("c", "4")] },
    }]);
    assert.deepEqual(changes, ["deleted a", "updated b", "added c"]);
  });

  it("drops the notifications that were prepared of a list that cannot be stored", () => {
    const { receiver, store, lines, quarantined, process } = newApplier();
    receiver.prepareList = function* () {
      yield;
      throw new Error("no memory");
    };
    process([{ type: "ReplacedAll", object: { resourceVersion: "4", objects: [at("a", "3")] } }]);
    assert.equal(receiver.dropped, 1);
    assert.deepEqual([store.listKeys(), lines, quarantined], [[], [], ["no memory"]]);
  });

  it("takes a key out of the ledger of what was quarantined once its delete is applied", () => {
    const { quarantine, process } = newApplier();
    for (const key of ["a", "b"]) quarantine.add({ reason: "bad", path: "", key, resourceVersion: "11" });
    process([{
      type: "Deleted",
      object: new DeletedFinalStateUnknown<KubernetesObject>("a", undefined),
      resourceVersion: "12",
    }]);
    assert.deepEqual([...quarantine.keys.keys()], ["b"]);
  });

  it("deletes by a key the object that is stored, and moves the store on to the version of that, never back", () => {
    const { store, lines, observers, process } = newApplier();
    const events: StoreEvent<KubernetesObject>[] = [];
    observers.add((event) => events.push(event));
    const objects = [at("a", "1"), at("b", "2")];
    process([{ type: "ReplacedAll", object: { resourceVersion: "5", objects } }]);
    const deleted = (key: string, resourceVersion: string): Delta<KubernetesObject> => {
      const object = new DeletedFinalStateUnknown<KubernetesObject>(key, undefined);
      return { type: "Deleted", object, resourceVersion };
    };
    process([deleted("a", "9")]);
    assert.equal(store.lastStoreSyncResourceVersion(), "9");
    process([deleted("b", "7"), deleted("absent", "8")]);
    assert.equal(store.lastStoreSyncResourceVersion(), "9");
    assert.deepEqual(lines.slice(2), ["tombstone a@1 (absent)", "tombstone b@2 (absent)"]);
    assert.deepEqual(events.slice(1), [
      { type: "deleted", key: "a", object: objects[0], oldObject: objects[0], resourceVersion: "9" },
      { type: "deleted", key: "b", object: objects[1], oldObject: objects[1], resourceVersion: "7" },
    ]);
  });

  it("hands observers the state that a tombstone has, and of one without a state what was stored", () => {
    const { store, observers, process } = newApplier();
    const states: string[] = [];
    observers.add((event) => states.push(event.type === "deleted" ? text(event.object) : event.type));
    for (const state of [at("a", "7"), undefined]) {
      store.add(at("a", "5"));
      process([{ type: "Deleted", object: new DeletedFinalStateUnknown("a", state) }]);
    }
    assert.deepEqual(states, ["a@7", "a@5"]);
  });

  it("notifies of a state that was sent again with the stored object, which readers have", () => {
    const { store, receiver, process } = newApplier(undefined, () => {});
    process([{ type: "ReplacedAll", object: { objects: [at("a", "5")], resourceVersion: "8" } }], true);
    const received: Notification<KubernetesObject>[] = [];
    receiver.distribute = (notification) => void received.push(notification);
    process([{ type: "Added", object: at("a", "5") }]);
    const [object] = store.list();
    assert.equal(received.length, 1);
    const { type, ...objects } = received[0];
    assert.ok(type === "update" && Object.values(objects).every((each) => each === object));
  });

  it("skips a delete that comes again, also where nothing came in between", () => {
    const { lines, process } = newApplier(undefined, () => {});
    process([{ type: "ReplacedAll", object: { objects: [at("a", "5")], resourceVersion: "8" } }]);
    for (let i = 0; i < 2; i++) process([{ type: "Deleted", object: at("a", "9") }]);
    assert.deepEqual(lines, ["add a@5 (a@5)", "delete a@9 (absent)"]);
  });

  it("reports a gap to observers, once, where a proof has passed an event", () => {
    const { observers, process } = newApplier(undefined, () => {});
    const events: string[] = [];
    observers.add((event) => events.push(event.type === "replaced" && event.isGap ? "gap" : event.type));
    process([{ type: "ReplacedAll", object: { objects: [at("a", "5")], resourceVersion: "8" } }]);
    process([{ type: "Bookmark", object: { resourceVersion: "20", byState: true } }]);
    for (const version of ["15", "16"]) process([{ type: "Deleted", object: at("b", version) }]);
    assert.deepEqual(events, ["replaced", "bookmark", "gap"]);
  });

  it("is within a step from the first change of a merged resource up to the bookmark behind it", () => {
    const { applier, process } = newApplier(undefined, () => {});
    const merged = (part: string) => encodeMergedVersion({ layout: newLayout(["west"]), parts: [part] });
    const bookmark = (part: string) =>
      process([{ type: "Bookmark", object: { resourceVersion: merged(part) } }]);
    process([{ type: "ReplacedAll", object: { objects: [], resourceVersion: merged("8") } }]);
    const steps = [applier.isWithinStep];
    process([{ type: "Added", object: at("a", "9") }]);
    steps.push(applier.isWithinStep);
    bookmark("9");
    steps.push(applier.isWithinStep);
    assert.deepEqual(steps, [false, true, false]);
  });

  it("says nothing of a resync to observers, as it changes nothing", () => {
    const { observers, process } = newApplier();
    const types: string[] = [];
    observers.add(({ type }) => types.push(type));
    process([{ type: "Added", object: at("a", "1") }]);
    process([{ type: "Sync", object: at("a", "1") }, { type: "SyncAll", object: {} }]);
    assert.deepEqual(types, ["added"]);
  });

  it("hands everything out again for a SyncAll, and moves the store on for a Bookmark", () => {
    const { store, lines, process } = newApplier();
    process([{ type: "Added", object: at("a", "1") }]);
    process([{ type: "SyncAll", object: {} }]);
    process([{ type: "Bookmark", object: { resourceVersion: "8" } }]);
    assert.deepEqual(lines, ["add a@1 (a@1)", "update a@1>a@1 (a@1)"]);
    assert.equal(store.lastStoreSyncResourceVersion(), "8");
  });
});

describe("DeltaApplier.apply of a delta that cannot be applied", () => {
  const indexers = {
    byUid: (object: KubernetesObject) => {
      if (object.metadata?.uid === "bad") throw new Error("index func broke");
      return [object.metadata?.uid ?? ""];
    },
  };

  const newIndexed = () => newApplier(newCache<KubernetesObject, "byUid">(metaNamespaceKey, indexers, {}));
  const notIndexed = /index func broke/;

  it("is quarantined and lost, leaves the state before it, and the others are applied", () => {
    const { store, lines, quarantined, relistIsDue, process } = newIndexed();
    process([
      { type: "Added", object: at("a", "1") },
      { type: "Updated", object: at("a", "2", "bad") },
      { type: "Added", object: "no object" as never },
      { type: "Added", object: at("b", "3") },
    ]);
    assert.deepEqual(lines, ["add a@1 (a@1)", "add b@3 (b@3)"]);
    assert.equal(quarantined.length, 2);
    assert.match(quarantined[0], notIndexed);
    assert.ok(relistIsDue());
    assert.deepEqual(store.list().map(text).sort(), ["a@1", "b@3"]);
  });

  it("is quarantined, and not lost, where a list has brought it, or it was stored before: nothing has changed", () => {
    for (const type of ["Replaced", "Sync"] as const) {
      const { quarantined, relistIsDue, process } = newIndexed();
      process([{ type, object: at("a", "2", "bad") }]);
      assert.deepEqual([quarantined.length, relistIsDue()], [1, false]);
    }
  });

  it("in a list is quarantined, leaves the state before it, and the others are applied", () => {
    const { store, lines, quarantined, relistIsDue, process } = newIndexed();
    process([{ type: "Added", object: at("a", "1") }, { type: "Added", object: at("absent", "2") }]);
    lines.length = 0;
    const objects = [at("a", "5", "bad"), "no object" as never, at("new", "6", "bad"), at("b", "7")];
    process([{ type: "ReplacedAll", object: { resourceVersion: "7", objects } }]);
    assert.equal(quarantined.length, 3);
    assert.equal(quarantined.filter((text) => notIndexed.test(text)).length, 2);
    assert.ok(!relistIsDue());
    assert.deepEqual(store.list().map(text).sort(), ["a@1", "b@7"]);
    assert.deepEqual(lines, ["tombstone absent@2 (absent)", "update a@1>a@1 (a@1)", "add b@7 (b@7)"]);
    assert.deepEqual((store as unknown as Indexer<KubernetesObject, "byUid">).indexKeys("byUid", "a"), ["a"]);
  });
});
