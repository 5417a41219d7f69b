import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DeletedFinalStateUnknown, type Logger, metaNamespaceKey, silentLogger } from "@listwatch/cache";
import {
  type Delta,
  type Deltas,
  FIFOClosedError,
  type KeyListerGetter,
  RealFIFO,
  type RealFIFOOptions,
} from "@listwatch/cache/queue";
import { KeyError, TransformError } from "@listwatch/cache/store";
import { FakeClock } from "@listwatch/cache/testing";

interface Thing {
  metadata: { name: string };
  value: string;
}

function thing(name: string, value: string | number = ""): Thing {
  return { metadata: { name }, value: String(value) };
}

const bad = "not an object" as unknown as Thing;

function known(...objects: Thing[]): KeyListerGetter<Thing> {
  return {
    listKeys: () => objects.map((object) => object.metadata.name),
    getByKey: (key) => objects.find((object) => object.metadata.name === key),
  };
}

function atomic(options: Partial<RealFIFOOptions<Thing>> = {}): RealFIFO<Thing> {
  return new RealFIFO<Thing>({ atomicEvents: true, ...options } as RealFIFOOptions<Thing>);
}

function text(delta: Delta<Thing>): string {
  switch (delta.type) {
    case "ReplacedAll": {
      const { resourceVersion, objects } = delta.object;
      return `ReplacedAll@${resourceVersion} ${objects.map((object) => object.metadata?.name).join("+")}`;
    }
    case "SyncAll":
      return "SyncAll";
    case "Bookmark":
      return `Bookmark@${delta.object.resourceVersion}`;
    default: {
      const { type, object } = delta;
      if (!(object instanceof DeletedFinalStateUnknown)) {
        return `${type} ${object.metadata?.name}=${object.value}`;
      }
      return `${type} ${object.key}=?(${object.object?.value ?? ""})`;
    }
  }
}

function drain(queue: RealFIFO<Thing>): string[] {
  const popped: string[] = [];
  while (
    queue.tryPop((deltas) => {
      assert.equal(deltas.length, 1);
      popped.push(text(deltas[0]));
    })
  );
  return popped;
}

/** Pops in batches: each as `batch:` or `single:` and how many deltas it had. */
function drainBatches(queue: RealFIFO<Thing>): string[] {
  const popped: string[] = [];
  while (
    queue.tryPopBatch(
      (deltas) => void popped.push(`batch: ${deltas.map(text).join(", ")}`),
      (deltas) => void popped.push(`single: ${deltas.map(text).join(", ")}`),
    )
  );
  return popped;
}

describe("RealFIFO", () => {
  it("keeps every event, in order, across all objects", () => {
    const queue = atomic();
    queue.add(thing("foo", 10));
    queue.update(thing("foo", 12));
    queue.add(thing("bar", 1));
    queue.delete(thing("foo", 15));
    queue.delete(thing("foo", 15));
    queue.delete(thing("unknown", 1));
    assert.equal(queue.length, 6);
    assert.deepEqual(drain(queue), [
      "Added foo=10",
      "Updated foo=12",
      "Added bar=1",
      "Deleted foo=15",
      "Deleted foo=15",
      "Deleted unknown=1",
    ]);
  });

  it("can be made in the two ways that make sense only", () => {
    const knownObjects = known();
    // @ts-expect-error -- an atomic queue has no use for known objects
    const both = () => new RealFIFO<Thing>({ atomicEvents: true, knownObjects });
    assert.throws(
      both,
      /^TypeError: Cannot make an atomic RealFIFO with knownObjects: the consumer compares/,
    );
    // @ts-expect-error -- the other kind needs them
    const none = () => new RealFIFO<Thing>({});
    assert.throws(
      none,
      /^TypeError: Cannot make a RealFIFO without knownObjects: pass them, or atomicEvents/,
    );
    // @ts-expect-error -- bookmarks are for the atomic kind
    const noted = () => new RealFIFO<Thing>({ knownObjects, emitDeltaTypeBookmark: true });
    assert.throws(
      noted,
      /^TypeError: Cannot queue bookmarks in a RealFIFO that is not atomic: pass atomicEv/,
    );
    for (const batchSize of [0, -1, 1.5, NaN]) {
      assert.throws(() => atomic({ batchSize }), /^RangeError: Cannot make a RealFIFO with a batchSize of/);
    }
  });

  it("transforms each object once, but no tombstone and no resync", () => {
    const calls: string[] = [];
    const queue = new RealFIFO<Thing>({
      knownObjects: known(thing("known", "k")),
      transform: (object) => {
        calls.push(object.value);
        return { ...object, value: `${object.value}!` };
      },
    });
    queue.add(thing("a", 1));
    queue.delete(thing("a", 2));
    queue.delete(new DeletedFinalStateUnknown("seen", thing("seen", "s")));
    queue.replace([thing("b", 3)], "1");
    assert.deepEqual(drain(queue), [
      "Added a=1!",
      "Deleted a=2!",
      "Deleted seen=?(s)",
      "Deleted known=?(k)",
      "Replaced b=3!",
    ]);
    queue.resync();
    assert.deepEqual(drain(queue), ["Sync known=k"]);
    assert.deepEqual(calls, ["1", "2", "3"]);
  });

  it("never asks the key function for the key of a tombstone", () => {
    const queue = new RealFIFO<Thing>({
      keyFunc: metaNamespaceKey,
      knownObjects: known(thing("known", "k")),
    });
    queue.delete(new DeletedFinalStateUnknown<Thing>("seen", undefined));
    queue.replace([], "1");
    assert.deepEqual(drain(queue), ["Deleted seen=?()", "Deleted known=?(k)"]);
  });

  it("has the keys that its key function computes", () => {
    const keyFunc = (object: unknown) => `key of ${(object as Thing).metadata.name}`;
    const queue = new RealFIFO<Thing>({ keyFunc, knownObjects: known() });
    queue.add(thing("a", 1));
    queue.replace([], "1");
    assert.deepEqual(drain(queue), ["Added a=1", "Deleted key of a=?(1)"]);
  });

  it("says which call an object without a key was refused at", () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known() });
    const calls: Record<string, () => void> = {
      add: () => queue.add(bad),
      update: () => queue.update(bad),
      delete: () => queue.delete(bad),
      replace: () => queue.replace([bad], "1"),
    };
    for (const [operation, call] of Object.entries(calls)) {
      assert.throws(call, (error) => error instanceof KeyError && error.operation === operation);
    }
    assert.equal(queue.length, 0);
  });

  it("counts the lists and resyncs that are queued", () => {
    const queue = atomic({ emitDeltaTypeBookmark: true });
    assert.equal(queue.listsQueued, 0);
    queue.add(thing("a"));
    queue.replace([], "1");
    queue.resync();
    queue.bookmark("2");
    const counts: number[] = [queue.listsQueued];
    while (queue.tryPop(() => void counts.push(queue.listsQueued)));
    assert.deepEqual(counts, [2, 2, 1, 0, 0]);
  });

  it("shows what is popped next, and leaves it", () => {
    const queue = atomic();
    assert.equal(queue.peek(), undefined);
    queue.add(thing("a"));
    queue.add(thing("b"));
    assert.equal(text(queue.peek()!), "Added a=");
    assert.deepEqual(drain(queue), ["Added a=", "Added b="]);
  });

  it("queues nothing for an object without a key, or that the transform throws at", () => {
    const queue = atomic({
      transform: () => {
        throw new Error("no");
      },
    });
    assert.throws(
      () => queue.add(bad),
      (error) => error instanceof KeyError && error.object === bad && error.operation === "add",
    );
    assert.throws(() => queue.add(thing("a")), TransformError);
    assert.throws(() => queue.replace([thing("a")], "1"), TransformError);
    assert.equal(queue.length, 0);
  });
});

describe("RealFIFO, atomic", () => {
  it("queues a list as one delta with its resourceVersion, behind what came before it", () => {
    const queue = atomic();
    queue.add(thing("foo", 1));
    queue.replace([thing("foo", 2), thing("bar", 3)], "20");
    queue.replace([], "21");
    queue.update(thing("foo", 4));
    assert.deepEqual(drain(queue), [
      "Added foo=1",
      "ReplacedAll@20 foo+bar",
      "ReplacedAll@21 ",
      "Updated foo=4",
    ]);
  });

  it("says of a list or a delete no more than what it was given", () => {
    const queue = atomic();
    queue.replace([thing("foo", 1)], "7");
    queue.deleteKey("foo");
    const deltas: Delta<Thing>[] = [];
    while (queue.tryPop(([delta]) => void deltas.push(delta)));
    assert.deepEqual(deltas, [
      { type: "ReplacedAll", object: { resourceVersion: "7", objects: [thing("foo", 1)] } },
      { type: "Deleted", object: new DeletedFinalStateUnknown("foo", undefined) },
    ]);
  });

  it("names what is no object by its type, where its processing was slow", () => {
    const clock = new FakeClock();
    const keys: unknown[] = [];
    const logger: Logger = { ...silentLogger, warn: (_message, fields) => void keys.push(fields?.key) };
    const queue = atomic({ clock, logger, emitDeltaTypeBookmark: true });
    queue.replace([], "1");
    queue.resync();
    queue.bookmark("2");
    for (let i = 0; i < 12; i++) queue.add(thing(`pod-${i}`));
    while (queue.tryPop(() => clock.jump(1_001)));
    assert.deepEqual(keys, ["ReplacedAll", "SyncAll", "Bookmark", "pod-0"]);
  });

  it("holds the list as it was given, whatever the caller does to the array", () => {
    const queue = atomic();
    const list = [thing("foo", 1)];
    queue.replace(list, "7");
    list.push(thing("bar", 2));
    assert.deepEqual(drain(queue), ["ReplacedAll@7 foo"]);
  });

  it("passes the version of a delete on of which no more than the key is known", () => {
    const queue = atomic();
    queue.deleteKey("foo", "9");
    queue.tryPop(([delta]) => {
      assert.deepEqual(delta, {
        type: "Deleted",
        object: new DeletedFinalStateUnknown("foo", undefined),
        resourceVersion: "9",
      });
    });
  });

  it("has synced once what is queued when its population ends to be held was processed, and no sooner", () => {
    const queue = atomic();
    const release = queue.holdPopulation();
    queue.replaceNamespace([thing("foo", 1)], "7", { namespace: "a" });
    queue.add(thing("foo", 2)); // of a namespace that is watched already
    queue.replaceNamespace([thing("bar", 1)], "8", { namespace: "b" });
    queue.tryPopBatch(() => {}, () => {});
    assert.equal(queue.hasSynced(), false);
    queue.tryPop(() => {});
    assert.equal(queue.hasSynced(), false);
    release();
    assert.equal(queue.hasSynced(), false);
    queue.tryPop(() => {});
    assert.equal(queue.hasSynced(), true);
  });

  it("says of the list of one namespace which one, and what of it stays", () => {
    const queue = atomic();
    queue.replaceNamespace([thing("foo", 1)], "7", { namespace: "a", keptKeys: ["a/bad"] });
    const list = { resourceVersion: "7", objects: [thing("foo", 1)], keptKeys: ["a/bad"], namespace: "a" };
    assert.deepEqual(queue.peek(), { type: "ReplacedAll", object: list });
  });

  it("carries transformed objects in a list, and leaves the given array alone", () => {
    const queue = atomic({ transform: (object) => ({ ...object, value: "transformed" }) });
    const given = [thing("a", "as it was")];
    queue.replace(given, "1");
    given.push(thing("b"));
    queue.tryPop(([delta]) => {
      assert.equal(delta.type, "ReplacedAll");
      assert.deepEqual((delta as Extract<typeof delta, { type: "ReplacedAll" }>).object.objects, [
        thing("a", "transformed"),
      ]);
    });
    assert.equal(given[0].value, "as it was");
  });

  it("leaves the objects of a list as they came, where the consumer transforms them", () => {
    const queue = atomic({ transform: () => assert.fail("too early"), transformsLists: false });
    queue.replace([thing("a", 1)], "1");
    const list = { resourceVersion: "1", objects: [thing("a", 1)] };
    assert.deepEqual(queue.peek(), { type: "ReplacedAll", object: list });
  });

  it("leaves an object without a key in a list to the consumer", () => {
    const queue = atomic();
    queue.replace([thing("a"), bad], "1");
    assert.equal(queue.length, 1);
  });

  it("queues a resync as one delta, and a bookmark with emitDeltaTypeBookmark", () => {
    const queue = atomic({ emitDeltaTypeBookmark: true });
    queue.resync();
    queue.bookmark("7");
    assert.deepEqual(drain(queue), ["SyncAll", "Bookmark@7"]);
    queue.bookmark("8", { byState: true });
    assert.deepEqual(queue.peek(), { type: "Bookmark", object: { resourceVersion: "8", byState: true } });
    const silent = atomic();
    silent.bookmark("7");
    assert.equal(silent.length, 0);
  });

  it("has synced where a delete came first of which no more than the key is known", () => {
    const queue = atomic();
    queue.deleteKey("foo");
    assert.equal(queue.hasSynced(), true);
  });

  it("has synced when its first list was processed, also an empty one", () => {
    const queue = atomic();
    queue.replace([], "1");
    assert.equal(queue.hasSynced(), false);
    queue.tryPop((_deltas, isInInitialList) => {
      assert.equal(isInInitialList, true);
      assert.equal(queue.hasSynced(), false, "it is still being processed");
    });
    assert.equal(queue.hasSynced(), true);
  });

  it("has synced when its first list was processed, even if that failed", async () => {
    const queue = atomic();
    queue.replace([thing("a")], "1");
    await assert.rejects(queue.pop(() => Promise.reject(new Error("no use"))));
    assert.equal(queue.hasSynced(), true);
  });
});

describe("RealFIFO with known objects", () => {
  const madeDeletes: Record<string, [operations: (queue: RealFIFO<Thing>) => void, deltas: string[]]> = {
    "an added object": [(queue) => {
      queue.add(thing("foo", 1));
      queue.replace([], "1");
    }, ["Added foo=1", "Deleted foo=?(1)"]],
    "an object that was deleted already": [(queue) => {
      queue.add(thing("foo", 1));
      queue.delete(thing("foo", 1));
      queue.replace([], "1");
    }, ["Added foo=1", "Deleted foo=1"]],
    "an object that several lists held": [(queue) => {
      queue.add(thing("foo", 1));
      queue.replace([thing("foo", 2)], "1");
      queue.replace([thing("foo", 3)], "2");
      queue.replace([], "3");
    }, ["Added foo=1", "Replaced foo=2", "Replaced foo=3", "Deleted foo=?(3)"]],
    "an object that several lists lack": [(queue) => {
      queue.add(thing("foo", 1));
      queue.replace([], "1");
      queue.replace([], "2");
    }, ["Added foo=1", "Deleted foo=?(1)"]],
    "an object that was deleted and came back": [(queue) => {
      queue.add(thing("foo", 1));
      queue.delete(thing("foo", 1));
      queue.add(thing("foo", 2));
      queue.replace([], "1");
    }, ["Added foo=1", "Deleted foo=1", "Added foo=2", "Deleted foo=?(2)"]],
    "an object that came back between two lists": [(queue) => {
      queue.add(thing("foo", 1));
      queue.add(thing("bar", 1));
      queue.update(thing("foo", 2));
      queue.delete(thing("foo", 3));
      queue.replace([], "1");
      queue.add(thing("bar", 2));
      queue.replace([], "2");
    }, [
      "Added foo=1",
      "Added bar=1",
      "Updated foo=2",
      "Deleted foo=3",
      "Deleted bar=?(1)",
      "Added bar=2",
      "Deleted bar=?(2)",
    ]],
  };
  for (const [what, [operations, expected]] of Object.entries(madeDeletes)) {
    it(`infers from a list that lacks it, once, the delete of ${what}`, () => {
      const queue = new RealFIFO<Thing>({ knownObjects: known() });
      operations(queue);
      assert.deepEqual(drain(queue), expected);
    });
  }

  it("queues tombstones before the objects of the list: of queued ones, then of known ones", () => {
    const queue = new RealFIFO<Thing>({
      knownObjects: known(thing("foo", 5), thing("bar", 6), thing("baz", 7)),
    });
    queue.add(thing("qux", 1));
    queue.delete(thing("baz", 10));
    queue.replace([thing("foo", 8)], "1");
    assert.deepEqual(drain(queue), [
      "Added qux=1",
      "Deleted baz=10",
      "Deleted qux=?(1)",
      "Deleted bar=?(6)",
      "Replaced foo=8",
    ]);
  });

  it("makes a tombstone of the last state before a delete that is queued, also of an earlier tombstone", () => {
    const queue = new RealFIFO<Thing>({
      knownObjects: known(thing("foo", "stored"), thing("bar", "stored")),
    });
    queue.update(thing("foo", "queued"));
    for (const key of ["foo", "bar"]) {
      queue.deleteKey(key);
      queue.deleteKey(key);
    }
    const foo = "Deleted foo=?(queued)";
    const bar = "Deleted bar=?(stored)";
    assert.deepEqual(drain(queue), ["Updated foo=queued", foo, foo, bar, bar]);
  });

  it("leaves the queued and the known object of a key as they are that a list keeps", () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known(thing("known", 1), thing("lacked", 1)) });
    queue.add(thing("queued", 1));
    queue.replaceKeeping([thing("listed", 2)], "2", ["known", "queued"]);
    assert.deepEqual(drain(queue), ["Added queued=1", "Deleted lacked=?(1)", "Replaced listed=2"]);
  });

  it("makes a tombstone without an object for a known key without an object", () => {
    const queue = new RealFIFO<Thing>({
      knownObjects: { listKeys: () => ["foo"], getByKey: () => undefined },
    });
    queue.replace([], "1");
    assert.deepEqual(drain(queue), ["Deleted foo=?()"]);
  });

  it("resends at a resync what the consumer knows and the queue does not hold", () => {
    const { getByKey } = known(thing("foo", 5), thing("bar", 6));
    const queue = new RealFIFO<Thing>({
      knownObjects: { listKeys: () => ["foo", "bar", "vanished"], getByKey },
    });
    queue.update(thing("bar", 7));
    queue.resync();
    queue.resync();
    assert.deepEqual(drain(queue), ["Updated bar=7", "Sync foo=5"]);
  });

  it("deletes by a key the last state that is queued, or else the one that the consumer knows", () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known(thing("foo", "known")) });
    queue.deleteKey("foo");
    queue.update(thing("foo", 1));
    queue.update(thing("foo", 2));
    queue.update(thing("bar", 3));
    queue.deleteKey("foo");
    assert.deepEqual(drain(queue), [
      "Deleted foo=?(known)",
      "Updated foo=1",
      "Updated foo=2",
      "Updated bar=3",
      "Deleted foo=?(2)",
    ]);
  });

  it("leaves out of a list what the transform throws at, where someone receives that", () => {
    const failed: string[] = [];
    const queue = new RealFIFO<Thing>({
      knownObjects: known(),
      transform: (object) => {
        if (object.value === "bad") throw new Error("no");
        return { ...object, value: `${object.value}!` };
      },
      onTransformFailure: (_error, object) => {
        failed.push(object.metadata.name);
        return undefined;
      },
    });
    queue.replace([thing("a", 1), thing("b", "bad"), thing("c", 2)], "1");
    assert.deepEqual(drain(queue), ["Replaced a=1!", "Replaced c=2!"]);
    assert.deepEqual(failed, ["b"]);
  });

  it("keeps what a list queued before the object that the transform throws at", () => {
    const queue = new RealFIFO<Thing>({
      knownObjects: known(thing("foo", 5)),
      transform: (object) => {
        if (object.value === "bad") throw new Error("no");
        return object;
      },
    });
    assert.throws(() => queue.replace([thing("a", 1), thing("b", "bad"), thing("c")], "1"), TransformError);
    assert.deepEqual(drain(queue), ["Deleted foo=?(5)", "Replaced a=1"]);
  });

  it("takes lists as they are where it transforms nothing", () => {
    const queue = new RealFIFO<Thing>({
      knownObjects: known(),
      onTransformFailure: () => assert.fail("nothing failed"),
    });
    queue.replace([thing("a", 1)], "1");
    assert.deepEqual(drain(queue), ["Replaced a=1"]);
  });

  it("queues nothing of a list in which an object has no key", () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known(thing("foo", 5)) });
    assert.throws(() => queue.replace([thing("a"), bad], "1"), KeyError);
    assert.equal(queue.length, 0);
    assert.equal(queue.hasSynced(), false);
  });

  const synced: Record<string, [known: Thing[], list: Thing[], pops: number]> = {
    "an empty list": [[], [], 0],
    "a list of two": [[], [thing("a"), thing("b")], 2],
    "a list with one key twice": [[], [thing("a", 1), thing("a", 2)], 2],
    "an empty list where three objects are known": [[thing("a"), thing("b"), thing("c")], [], 3],
  };
  for (const [what, [knownObjects, list, pops]] of Object.entries(synced)) {
    it(`has synced ${pops} pops after ${what}`, () => {
      const queue = new RealFIFO<Thing>({ knownObjects: known(...knownObjects) });
      queue.replace(list, "1");
      for (let left = pops; left > 0; left--) {
        assert.equal(queue.hasSynced(), false);
        assert.equal(queue.tryPop(() => {}), true);
      }
      assert.equal(queue.hasSynced(), true);
    });
  }
});

describe("RealFIFO.popBatch", () => {
  it("has all that may be processed together", () => {
    const queue = atomic();
    for (const name of ["a", "b", "c"]) queue.add(thing(name));
    assert.deepEqual(drainBatches(queue), ["batch: Added a=, Added b=, Added c="]);
  });

  it("never mixes the first list with what came later", () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known() });
    queue.replace([thing("a", 1), thing("b", 1)], "1");
    queue.update(thing("c", 2));
    queue.update(thing("d", 2));
    const flags: boolean[] = [];
    const sizes: number[] = [];
    const process = (deltas: Deltas<Thing>, isInInitialList: boolean) => {
      flags.push(isInInitialList);
      sizes.push(deltas.length);
    };
    while (queue.tryPopBatch(process, process));
    assert.deepEqual(flags, [true, false]);
    assert.deepEqual(sizes, [2, 2]);
  });

  it("ends before a key that it holds already", () => {
    const queue = atomic();
    for (const name of ["a", "b", "a", "c"]) queue.add(thing(name));
    assert.deepEqual(drainBatches(queue), ["batch: Added a=, Added b=", "batch: Added a=, Added c="]);
  });

  it("has a thousand deltas by default", () => {
    const queue = atomic();
    for (let i = 0; i < 1_001; i++) queue.add(thing(`${i}`));
    const sizes: number[] = [];
    const process = (deltas: Deltas<Thing>) => void sizes.push(deltas.length);
    while (queue.tryPopBatch(process, process));
    assert.deepEqual(sizes, [1_000, 1]);
  });

  it("is of the first list until its processing, which is waited for, has ended", async () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known() });
    queue.replace([thing("a"), thing("b")], "1");
    queue.add(thing("c"));
    const flags: boolean[] = [];
    const process = async (_deltas: Deltas<Thing>, isInInitialList: boolean) => {
      flags.push(isInInitialList, queue.hasSynced());
      await new FakeClock().advance(0);
      assert.equal(queue.hasSynced(), !isInInitialList);
    };
    await queue.popBatch(process, process);
    assert.equal(queue.hasSynced(), true);
    await queue.popBatch(process, process);
    assert.deepEqual(flags, [true, false, false, true]);
  });

  it("is no larger than its size, also within the first list", () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known(), batchSize: 2 });
    queue.replace([thing("a"), thing("b"), thing("c")], "1");
    queue.add(thing("d"));
    assert.deepEqual(drainBatches(queue), [
      "batch: Replaced a=, Replaced b=",
      "single: Replaced c=",
      "single: Added d=",
    ]);
  });

  it("is a list, a resync or a bookmark alone", () => {
    const queue = atomic({ emitDeltaTypeBookmark: true });
    queue.add(thing("a"));
    queue.replace([thing("b")], "1");
    queue.resync();
    queue.add(thing("c"));
    queue.add(thing("d"));
    queue.bookmark("2");
    assert.deepEqual(drainBatches(queue), [
      "single: Added a=",
      "single: ReplacedAll@1 b",
      "single: SyncAll",
      "batch: Added c=, Added d=",
      "single: Bookmark@2",
    ]);
  });

  it("ends with a delta whose key can no longer be computed, which the consumer reports", () => {
    const queue = atomic({
      transform: (object) => object.value === "bad" ? "no object" as unknown as Thing : object,
    });
    queue.add(thing("a"));
    queue.add(thing("b", "bad"));
    queue.add(thing("c"));
    queue.add(thing("d", "bad"));
    const sizes: number[] = [];
    const process = (deltas: Deltas<Thing>) => void sizes.push(deltas.length);
    while (queue.tryPopBatch(process, process));
    assert.deepEqual(sizes, [2, 2]);
  });

  it("is waited for, and returned", async () => {
    const queue = atomic();
    const popped = queue.popBatch(() => assert.fail("there is one only"), () => {});
    await new FakeClock().advance(0);
    queue.add(thing("a"));
    assert.deepEqual((await popped).map(text), ["Added a="]);
    const waiting = queue.popBatch(() => {}, () => {}, { signal: AbortSignal.abort(new Error("enough")) });
    await assert.rejects(waiting, /enough/);
    queue.close();
    await assert.rejects(queue.popBatch(() => {}, () => {}), FIFOClosedError);
    assert.equal(queue.tryPopBatch(() => {}, () => {}), false);
  });

  it("is lost where its callback throws, and counts for hasSynced", async () => {
    const queue = new RealFIFO<Thing>({ knownObjects: known() });
    queue.replace([thing("a"), thing("b")], "1");
    const thrown = new Error("no use");
    await assert.rejects(queue.popBatch(() => Promise.reject(thrown), () => {}), thrown);
    assert.equal(queue.length, 0);
    assert.equal(queue.hasSynced(), true);
  });

  it("may take 100 ms for each of its deltas, and one second at most, before a warning", async () => {
    for (const [size, allowedMs] of [[3, 300], [20, 1_000]]) {
      const clock = new FakeClock();
      const warnings: string[] = [];
      const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) };
      for (const [tookMs, expected] of [[allowedMs, 0], [allowedMs + 1, 1]]) {
        const queue = atomic({ clock, logger, batchSize: size });
        for (let i = 0; i < size + 11; i++) queue.add(thing(`pod-${i}`));
        await queue.popBatch(() => clock.jump(tookMs), () => {});
        assert.equal(warnings.length, expected, `${size} deltas, ${tookMs} ms`);
      }
    }
  });
});
