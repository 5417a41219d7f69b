import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DeletedFinalStateUnknown, metaNamespaceKey } from "@listwatch/cache";
import {
  DeltaFIFO,
  type DeltaFIFOOptions,
  type KeyListerGetter,
  newest,
  NotDeltasError,
  type ObjectDeltas,
  oldest,
  ZeroLengthDeltasError,
} from "@listwatch/cache/queue";
import { KeyError, TransformError } from "@listwatch/cache/store";

interface Thing {
  metadata: { name: string };
  value: string;
}

function thing(name: string, value: string | number): Thing {
  return { metadata: { name }, value: String(value) };
}

function known(...objects: Thing[]): KeyListerGetter<Thing> {
  return {
    listKeys: () => objects.map((object) => object.metadata.name),
    getByKey: (key) => objects.find((object) => object.metadata.name === key),
  };
}

/** Deltas as text: `Added 1`, `Deleted ?(1)` for a tombstone. */
function text(deltas: ObjectDeltas<Thing>): string {
  return deltas.map(({ type, object }) => {
    if (!(object instanceof DeletedFinalStateUnknown)) return `${type} ${object.value}`;
    assert.ok(!(object.object instanceof DeletedFinalStateUnknown), "tombstones do not nest");
    return `${type} ?(${object.object === undefined ? "" : (object.object as Thing).value})`;
  }).join(", ");
}

/** Pops everything: key and deltas. */
function drain(queue: DeltaFIFO<Thing>): [key: string, deltas: string][] {
  const popped: [string, string][] = [];
  while (queue.tryPop((deltas) => void popped.push([queue.keyOf(deltas), text(deltas)])));
  return popped;
}

describe("DeltaFIFO", () => {
  it("keeps all that happened to an object, oldest first", () => {
    const queue = new DeltaFIFO<Thing>();
    queue.add(thing("foo", 10));
    queue.update(thing("foo", 12));
    queue.delete(thing("foo", 15));
    assert.deepEqual(drain(queue), [["foo", "Added 10, Updated 12, Deleted 15"]]);
  });

  it("pops objects in the order in which something first happened to them", () => {
    const queue = new DeltaFIFO<Thing>();
    for (const [name, value] of [["foo", 10], ["bar", 1], ["foo", 11], ["zab", 30]] as const) {
      queue.add(thing(name, value));
    }
    assert.deepEqual(queue.listKeys(), ["foo", "bar", "zab"]);
    assert.deepEqual(drain(queue), [["foo", "Added 10, Added 11"], ["bar", "Added 1"], ["zab", "Added 30"]]);
  });

  it("does not queue the delete of an unknown object", () => {
    const queue = new DeltaFIFO<Thing>();
    queue.delete(thing("foo", 1));
    assert.deepEqual(drain(queue), []);
    const other = new DeltaFIFO<Thing>({ knownObjects: known(thing("bar", 1)) });
    other.delete(thing("foo", 1));
    other.delete(thing("bar", 2));
    assert.deepEqual(drain(other), [["bar", "Deleted 2"]]);
  });

  it("deletes by a key the last state that is queued, or else the one that the consumer knows", () => {
    const queue = new DeltaFIFO<Thing>({ knownObjects: known(thing("foo", "known")) });
    queue.deleteKey("foo");
    assert.deepEqual(drain(queue), [["foo", "Deleted ?(known)"]]);
    queue.update(thing("foo", 1));
    queue.update(thing("foo", 2));
    queue.deleteKey("foo");
    assert.deepEqual(drain(queue), [["foo", "Updated 1, Updated 2, Deleted ?(2)"]]);
  });

  it("keeps one of two deletes in a row: the one that was seen, else the older", () => {
    const queue = new DeltaFIFO<Thing>();
    const tombstone = new DeletedFinalStateUnknown("a", thing("a", "t"));
    for (
      const [deletes, expected] of [
        [[thing("a", 1), thing("a", 2)], "Deleted 1"],
        [[tombstone, thing("a", 2)], "Deleted 2"],
        [[thing("a", 1), tombstone], "Deleted 1"],
        [[tombstone, new DeletedFinalStateUnknown("a", thing("a", "u"))], "Deleted ?(u)"],
      ] as const
    ) {
      queue.add(thing("a", 0));
      for (const object of deletes) queue.delete(object);
      assert.deepEqual(drain(queue), [["a", `Added 0, ${expected}`]]);
    }
  });

  const madeDeletes: Record<string, [operations: (queue: DeltaFIFO<Thing>) => void, deltas: string]> = {
    "an added object": [(queue) => {
      queue.add(thing("foo", 1));
      queue.replace([]);
    }, "Added 1, Deleted ?(1)"],
    "an object that was deleted already": [(queue) => {
      queue.add(thing("foo", 1));
      queue.delete(thing("foo", 1));
      queue.replace([]);
    }, "Added 1, Deleted 1"],
    "an object that several lists held": [(queue) => {
      queue.add(thing("foo", 1));
      queue.replace([thing("foo", 2)]);
      queue.replace([thing("foo", 3)]);
      queue.replace([]);
    }, "Added 1, Replaced 2, Replaced 3, Deleted ?(3)"],
    "an object that several lists lack": [(queue) => {
      queue.add(thing("foo", 1));
      queue.replace([]);
      queue.replace([]);
    }, "Added 1, Deleted ?(1)"],
    "an object that was deleted and came back": [(queue) => {
      queue.add(thing("foo", 1));
      queue.delete(thing("foo", 1));
      queue.add(thing("foo", 2));
      queue.replace([]);
    }, "Added 1, Deleted 1, Added 2, Deleted ?(2)"],
  };
  for (const [what, [operations, expected]] of Object.entries(madeDeletes)) {
    it(`infers from a list that lacks it, once, the delete of ${what}`, () => {
      const queue = new DeltaFIFO<Thing>({ emitDeltaTypeReplaced: true });
      operations(queue);
      assert.deepEqual(drain(queue), [["foo", expected]]);
    });
  }

  const foo = thing("foo", 5);
  const bar = thing("bar", 6);
  const baz = thing("baz", 7);
  const withKnown: Record<
    string,
    [operations: (queue: DeltaFIFO<Thing>) => void, popped: [string, string][]]
  > = {
    "with a queued delete": [(queue) => {
      queue.delete(thing("baz", 10));
      queue.replace([foo]);
    }, [["baz", "Deleted 10"], ["foo", "Sync 5"], ["bar", "Deleted ?(6)"]]],
    "with a queued add": [(queue) => {
      queue.add(thing("baz", 10));
      queue.replace([foo]);
    }, [["baz", "Added 10, Deleted ?(10)"], ["foo", "Sync 5"], ["bar", "Deleted ?(6)"]]],
    "with a delete and an add queued": [(queue) => {
      queue.delete(bar);
      queue.add(thing("bar", 100));
      queue.replace([foo]);
    }, [["bar", "Deleted 6, Added 100, Deleted ?(100)"], ["foo", "Sync 5"], ["baz", "Deleted ?(7)"]]],
    "with a list queued": [(queue) => {
      queue.replace([thing("bar", 100), foo]);
      queue.replace([foo]);
    }, [["bar", "Sync 100, Deleted ?(100)"], ["foo", "Sync 5, Sync 5"], ["baz", "Deleted ?(7)"]]],
  };
  for (const [what, [operations, expected]] of Object.entries(withKnown)) {
    it(`infers the deletes of objects that the consumer knows, ${what}`, () => {
      const queue = new DeltaFIFO<Thing>({ knownObjects: known(foo, bar, baz) });
      operations(queue);
      assert.deepEqual(drain(queue), expected);
    });
  }

  it("makes a tombstone without an object for a known key without an object", () => {
    const queue = new DeltaFIFO<Thing>({
      knownObjects: { listKeys: () => ["foo"], getByKey: () => undefined },
    });
    queue.replace([]);
    assert.deepEqual(drain(queue), [["foo", "Deleted ?()"]]);
  });

  it("makes a tombstone of the stored state where a delete is queued already, also of an earlier tombstone", () => {
    const queue = new DeltaFIFO<Thing>({ knownObjects: known(thing("foo", "stored")) });
    for (let i = 0; i < 3; i++) queue.deleteKey("foo");
    assert.deepEqual(drain(queue), [["foo", "Deleted ?(stored)"]]);
  });

  it("calls what a list brings Sync, or Replaced with emitDeltaTypeReplaced", () => {
    for (
      const [emitDeltaTypeReplaced, type] of [[undefined, "Sync"], [false, "Sync"], [
        true,
        "Replaced",
      ]] as const
    ) {
      const queue = new DeltaFIFO<Thing>({ emitDeltaTypeReplaced });
      queue.replace([foo]);
      assert.deepEqual(drain(queue), [["foo", `${type} 5`]]);
    }
  });

  it("resends at a resync what the consumer knows and the queue does not hold", () => {
    const queue = new DeltaFIFO<Thing>({
      knownObjects: { listKeys: () => ["foo", "bar", "vanished"], getByKey: known(foo, bar).getByKey },
    });
    queue.update(thing("bar", 7));
    queue.resync();
    queue.resync();
    assert.deepEqual(drain(queue), [["bar", "Updated 7"], ["foo", "Sync 5"]]);
  });

  it("does nothing at a resync where it knows nothing", () => {
    const queue = new DeltaFIFO<Thing>();
    queue.resync();
    assert.deepEqual(drain(queue), []);
    assert.equal(queue.hasSynced(), false);
  });

  it("deletes by a key what is not queued, where it knows nothing: not at all", () => {
    const queue = new DeltaFIFO<Thing>();
    queue.deleteKey("foo");
    assert.deepEqual(drain(queue), []);
  });

  it("leaves out of a list what the transform throws at, where someone receives that", () => {
    const failed: string[] = [];
    const queue = new DeltaFIFO<Thing>({
      transform: (object) => {
        if (object.value === "bad") throw new Error("no");
        return { ...object, value: `${object.value}!` };
      },
      onTransformFailure: (_error, object) => {
        failed.push(object.metadata.name);
        return undefined;
      },
    });
    queue.replace([thing("a", 1), thing("b", "bad"), thing("c", 2)]);
    assert.deepEqual(drain(queue), [["a", "Sync 1!"], ["c", "Sync 2!"]]);
    assert.deepEqual(failed, ["b"]);
  });

  it("takes lists as they are where it transforms nothing", () => {
    const queue = new DeltaFIFO<Thing>({ onTransformFailure: () => assert.fail("nothing failed") });
    queue.replace([foo]);
    assert.deepEqual(drain(queue), [["foo", "Sync 5"]]);
  });

  it("has the keys that its key function computes", () => {
    const queue = new DeltaFIFO<Thing>({ keyFunc: (object) => `key of ${(object as Thing).metadata.name}` });
    queue.add(foo);
    assert.deepEqual(drain(queue), [["key of foo", "Added 5"]]);
  });

  const synced: Record<string, [DeltaFIFOOptions<Thing>, (queue: DeltaFIFO<Thing>) => void, pops: number]> = {
    "an empty list": [{}, (queue) => queue.replace([]), 0],
    "a list of two": [{}, (queue) => queue.replace([foo, bar]), 2],
    "a list with one key twice": [{}, (queue) => queue.replace([thing("a", 1), thing("a", 2)]), 1],
    "an empty list where three objects are known": [
      { knownObjects: known(foo, bar, baz) },
      (queue) => queue.replace([]),
      3,
    ],
    "a list of two where one of three known is missing": [
      { knownObjects: known(foo, bar, baz) },
      (queue) => queue.replace([foo, bar]),
      3,
    ],
    "a resync, and a list of one that lacks another": [
      { knownObjects: known(foo) },
      (queue) => {
        queue.resync();
        queue.replace([bar]);
      },
      2,
    ],
    "an add": [{}, (queue) => queue.add(foo), 0],
    "a delete of an unknown object": [{}, (queue) => queue.delete(foo), 0],
    "an add and a list": [{}, (queue) => {
      queue.add(foo);
      queue.replace([foo, bar]);
    }, 0],
  };
  for (const [what, [options, operations, pops]] of Object.entries(synced)) {
    it(`has synced ${pops} pops after ${what}`, () => {
      const queue = new DeltaFIFO<Thing>(options);
      operations(queue);
      for (let left = pops; left > 0; left--) {
        assert.equal(queue.hasSynced(), false);
        assert.equal(queue.tryPop(() => {}), true);
      }
      assert.equal(queue.hasSynced(), true);
    });
  }

  it("transforms each object once, but no tombstone and no resync", () => {
    const calls: string[] = [];
    const queue = new DeltaFIFO<Thing>({
      knownObjects: known(thing("known", "k"), thing("resent", "r")),
      emitDeltaTypeReplaced: true,
      transform: (object) => {
        calls.push(object.value);
        return { ...object, value: `${object.value}!` };
      },
    });
    queue.add(thing("a", 1));
    queue.update(thing("a", 2));
    queue.delete(thing("a", 3));
    queue.replace([thing("b", 4), thing("resent", 5)]);
    assert.deepEqual(drain(queue), [
      ["a", "Added 1!, Updated 2!, Deleted 3!"],
      ["b", "Replaced 4!"],
      ["resent", "Replaced 5!"],
      ["known", "Deleted ?(k)"],
    ]);
    queue.resync();
    assert.deepEqual(drain(queue), [["known", "Sync k"], ["resent", "Sync r"]]);
    assert.deepEqual(calls, ["1", "2", "3", "4", "5"]);
  });

  it("transforms what a list brings, also where it calls it Sync", () => {
    const queue = new DeltaFIFO<Thing>({ transform: (object) => ({ ...object, value: `${object.value}!` }) });
    queue.replace([foo]);
    assert.deepEqual(drain(queue), [["foo", "Sync 5!"]]);
  });

  it("queues nothing where the transform throws, and keeps what a list queued before", () => {
    const queue = new DeltaFIFO<Thing>({
      transform: (object) => {
        if (object.value === "bad") throw new Error("I do not like it");
        return object;
      },
    });
    assert.throws(() => queue.add(thing("a", "bad")), TransformError);
    assert.deepEqual(queue.listKeys(), []);
    assert.throws(() => queue.replace([foo, thing("a", "bad"), bar]), TransformError);
    assert.deepEqual(queue.listKeys(), ["foo"]);
  });

  it("returns the key of an object, a tombstone and some deltas", () => {
    const queue = new DeltaFIFO<Thing>({ keyFunc: metaNamespaceKey });
    assert.equal(queue.keyOf(foo), "foo");
    assert.equal(queue.keyOf(new DeletedFinalStateUnknown<Thing>("deleted", undefined)), "deleted");
    assert.equal(queue.keyOf([{ type: "Added", object: foo }, { type: "Updated", object: bar }]), "bar");
    assert.equal(
      queue.keyOf([{ type: "Deleted", object: new DeletedFinalStateUnknown<Thing>("deleted", undefined) }]),
      "deleted",
    );
    assert.throws(
      () => queue.keyOf([]),
      (error) => error instanceof KeyError && error.cause instanceof ZeroLengthDeltasError,
    );
  });

  it("shows what is queued as copies", () => {
    const queue = new DeltaFIFO<Thing>();
    queue.add(foo);
    const deltas = queue.get(foo) as unknown[];
    deltas.length = 0;
    (queue.listKeys() as string[]).length = 0;
    assert.equal(text(queue.getByKey("foo")!), "Added 5");
    assert.deepEqual(queue.list(), [foo]);
    queue.update(thing("foo", 6));
    assert.deepEqual(queue.list(), [thing("foo", 6)]);
    assert.equal(queue.getByKey("bar"), undefined);
    assert.deepEqual(drain(queue), [["foo", "Added 5, Updated 6"]]);
  });

  it("puts deltas back unless their key is queued, and nothing else than deltas", () => {
    const queue = new DeltaFIFO<Thing>();
    queue.addIfNotPresent([{ type: "Added", object: foo }]);
    queue.addIfNotPresent([{ type: "Added", object: thing("foo", "other") }]);
    assert.deepEqual(drain(queue), [["foo", "Added 5"]]);
    const given: Parameters<typeof queue.addIfNotPresent>[0] = [{ type: "Added", object: foo }];
    queue.addIfNotPresent(given);
    queue.update(thing("foo", "later"));
    assert.equal(text(given), "Added 5");
    assert.deepEqual(drain(queue), [["foo", "Added 5, Updated later"]]);
    // @ts-expect-error -- an object is no deltas
    assert.throws(() => queue.addIfNotPresent(foo), NotDeltasError);
    assert.throws(() => queue.addIfNotPresent([]), KeyError);
  });

  it("queues nothing for an object without a key", () => {
    const queue = new DeltaFIFO<Thing>();
    const bad = "not an object" as unknown as Thing;
    const calls: Record<string, () => void> = {
      add: () => queue.add(bad),
      update: () => queue.update(bad),
      delete: () => queue.delete(bad),
      get: () => queue.get(bad),
      replace: () => queue.replace([foo, bad]),
    };
    for (const [operation, call] of Object.entries(calls)) {
      assert.throws(call, (error) => error instanceof KeyError && error.operation === operation);
    }
    assert.throws(() => queue.addIfNotPresent([]), /^KeyError: Cannot read the key of an object: /);
    assert.deepEqual(queue.listKeys(), ["foo"]);
  });
});

describe("DeltaFIFO.resync", () => {
  it("looks for the key of the known object among the queued ones, as that may be known by another", () => {
    const queue = new DeltaFIFO<Thing>({
      knownObjects: { listKeys: () => ["another"], getByKey: () => thing("foo", 1) },
    });
    queue.update(thing("foo", 2));
    queue.resync();
    assert.deepEqual(queue.getByKey("foo")?.map(({ type }) => type), ["Updated"]);
  });

  it("continues behind an object that was deleted since the keys were listed", () => {
    const { getByKey } = known(thing("bar", 2));
    const queue = new DeltaFIFO<Thing>({
      keyFunc: metaNamespaceKey,
      knownObjects: { listKeys: () => ["deleted", "bar"], getByKey },
    });
    queue.resync();
    assert.deepEqual(queue.listKeys(), ["bar"]);
  });
});

describe("newest", () => {
  it("is the last of some deltas, oldest the first, and nothing of none", () => {
    const deltas = [1, 2, 3];
    assert.deepEqual([oldest(deltas), newest(deltas)], [1, 3]);
    assert.deepEqual([oldest([]), newest([])], [undefined, undefined]);
  });
});
