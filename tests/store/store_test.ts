import assert from "node:assert/strict";
import { describe as describeOnce } from "node:test";
import { DeletedFinalStateUnknown, metaNamespaceKey, shortTexts } from "@listwatch/cache";
import {
  ExplicitKey,
  IndexFuncError,
  KeyError,
  NoMetaError,
  type Store,
  ThreadSafeStore,
  TransactionError,
  TransformError,
} from "@listwatch/cache/store";
import { newExpirationStore, newTTLStore, UndeltaStore } from "@listwatch/cache/compat";
import { describe, it, newIndexer, newStore } from "./storages.ts";

interface Thing {
  metadata: { name: string; resourceVersion?: string };
  value?: string;
}

function thing(name: string, value?: string, resourceVersion?: string): Thing {
  return {
    metadata: { name, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    ...(value === undefined ? {} : { value }),
  };
}

function names(store: Store<Thing>): string[] {
  return store.list().map((object) => object.metadata.name).sort();
}

const notAnObject = "not an object" as unknown as Thing;

const kinds: Record<string, () => Store<Thing>> = {
  newStore: () => newStore<Thing>(metaNamespaceKey),
  newIndexer: () =>
    newIndexer<Thing, "byValue">(metaNamespaceKey, { byValue: ({ value }) => value ? [value] : [] }),
  "newStore (encoded)": () => newStore<Thing>(metaNamespaceKey, { storage: shortTexts() }),
  "newIndexer (encoded)": () =>
    newIndexer<Thing, "byValue">(metaNamespaceKey, { byValue: ({ value }) => value ? [value] : [] }, {
      storage: shortTexts(),
    }),
  newTTLStore: () => newTTLStore<Thing>(metaNamespaceKey, 60_000),
  newExpirationStore: () => newExpirationStore<Thing>(metaNamespaceKey, { isExpired: () => false }),
  UndeltaStore: () => new UndeltaStore<Thing>(() => {}, metaNamespaceKey),
};

for (const [kind, make] of Object.entries(kinds)) {
  describeOnce(`every store: ${kind}`, () => {
    it("holds what was added, updated and not deleted", () => {
      const store = make();
      store.add(thing("foo", "bar"));
      assert.equal(store.get(thing("foo"))?.value, "bar");
      store.update(thing("foo", "baz"));
      assert.equal(store.get(thing("foo"))?.value, "baz");
      assert.equal(store.getByKey("foo")?.value, "baz");
      assert.equal(store.has("foo"), true);
      store.delete(thing("foo"));
      assert.equal(store.get(thing("foo")), undefined);
      assert.equal(store.has("foo"), false);
      assert.equal(store.size, 0);
    });

    it("lists every object once", () => {
      const store = make();
      for (const name of ["a", "b", "c", "b"]) store.add(thing(name));
      assert.deepEqual(names(store), ["a", "b", "c"]);
      assert.deepEqual(store.listKeys().sort(), ["a", "b", "c"]);
      assert.deepEqual([...store.values()].map((object) => object.metadata.name).sort(), ["a", "b", "c"]);
      assert.equal(store.size, 3);
    });

    it("hands out the very object that was put in", () => {
      const store = make();
      const object = thing("a");
      store.add(object);
      assert.equal(store.getByKey("a"), object);
      assert.equal(store.list()[0], object);
    });

    it("replaces the whole content; of two objects with one key the last counts", () => {
      const store = make();
      store.add(thing("removed"));
      store.replace([thing("foo", "older"), thing("bar"), thing("foo", "newer")], "7");
      assert.deepEqual(names(store), ["bar", "foo"]);
      assert.equal(store.getByKey("foo")?.value, "newer");
      assert.equal(store.lastStoreSyncResourceVersion(), "7");
    });

    it("returns the object that a write replaces or removes", () => {
      const store = make();
      const first = thing("a", "1");
      const second = thing("a", "2");
      assert.equal(store.add(first), undefined);
      assert.equal(store.update(second), first);
      assert.equal(store.delete(thing("a")), second);
      assert.equal(store.delete(thing("a")), undefined);
    });

    it("takes an explicit key where only the key matters", () => {
      const store = make();
      store.add(thing("a", "1"));
      assert.equal(store.get(new ExplicitKey("a"))?.value, "1");
      assert.equal(store.delete(new ExplicitKey("a"))?.value, "1");
    });

    it("does nothing at a resync", () => {
      const store = make();
      store.add(thing("a"));
      store.resync();
      assert.deepEqual(names(store), ["a"]);
    });

    it("reports an object without a key with what the key function threw, and stays as it was", () => {
      const store = make();
      store.replace([thing("a")], "1");
      const calls: [string, () => unknown][] = [
        ["add", () => store.add(notAnObject)],
        ["update", () => store.update(notAnObject)],
        ["delete", () => store.delete(notAnObject)],
        ["get", () => store.get(notAnObject)],
        ["replace", () => store.replace([thing("b"), notAnObject], "2")],
      ];
      for (const [operation, call] of calls) {
        assert.throws(call, (error) => {
          assert.ok(error instanceof KeyError);
          assert.equal(error.operation, operation);
          assert.equal(error.object, notAnObject);
          assert.ok(error.cause instanceof NoMetaError);
          return true;
        });
      }
      assert.deepEqual(names(store), ["a"]);
      assert.equal(store.lastStoreSyncResourceVersion(), "1");
    });

    it("refuses a key that is not a string", () => {
      const numbers = newStore<Thing>(() => 7 as unknown as string);
      assert.throws(() => numbers.add(thing("a")), /the key function returned number, not a string/);
    });

    it("applies the writes of a transaction in order", () => {
      const store = make();
      store.add(thing("old"));
      store.transaction([
        { type: "Add", object: thing("a", "1") },
        { type: "Update", object: thing("a", "2") },
        { type: "Add", object: thing("b") },
        { type: "Delete", object: thing("b") },
        { type: "Delete", object: new ExplicitKey("old") },
        { type: "Delete", object: thing("never there") },
        { type: "Add", object: thing("c") },
      ]);
      assert.deepEqual(names(store), ["a", "c"]);
      assert.equal(store.getByKey("a")?.value, "2");
    });

    it("applies the entries of a transaction that have a key, and names them", () => {
      const store = make();
      assert.throws(
        () =>
          store.transaction([
            { type: "Add", object: thing("a") },
            { type: "Add", object: notAnObject },
            { type: "Update", object: thing("b") },
            { type: "Delete", object: notAnObject },
          ]),
        (error) => {
          assert.ok(error instanceof TransactionError);
          assert.equal(error.code, "TransactionError");
          assert.deepEqual(error.successfulIndices, [0, 2]);
          assert.equal(error.totalTransactions, 4);
          assert.equal(error.errors.length, 2);
          assert.ok(error.errors.every((cause) => cause instanceof KeyError));
          assert.match(error.message, /^failed to execute \(2\/4\) transactions failed due to: /);
          return true;
        },
      );
      assert.deepEqual(names(store), ["a", "b"]);
    });
  });
}

describe("newStore with a transform", () => {
  function upperCase(): Store<Thing> {
    return newStore<Thing>(metaNamespaceKey, {
      transform: (object) => {
        if (object.value === undefined) throw new Error("no value");
        return { ...object, value: object.value.toUpperCase() };
      },
    });
  }

  it("stores and lists transformed objects, whichever way they came", () => {
    const store = upperCase();
    store.add(thing("a", "one"));
    store.update(thing("b", "two"));
    assert.deepEqual(store.list().map((object) => object.value), ["ONE", "TWO"]);
    store.replace([thing("c", "three")], "1");
    assert.deepEqual(store.list().map((object) => object.value), ["THREE"]);
  });

  it("does not transform the objects of a transaction", () => {
    const store = upperCase();
    store.transaction([{ type: "Add", object: thing("a", "one") }]);
    assert.equal(store.getByKey("a")?.value, "one");
  });

  it("computes the key before it transforms", () => {
    const store = newStore<unknown>(metaNamespaceKey, { transform: () => "a bare string" });
    store.add(thing("a"));
    assert.equal(store.getByKey("a"), "a bare string");
  });

  it("keeps the key of before where the transform changes the object itself", () => {
    const store = newStore<{ metadata: { name: string } }>(metaNamespaceKey, {
      transform: (object) => {
        object.metadata.name += "-renamed";
        return object;
      },
    });
    store.replace([{ metadata: { name: "a" } }, { metadata: { name: "b" } }], "1");
    assert.deepEqual(store.listKeys().sort(), ["a", "b"]);
    assert.equal(store.getByKey("a")?.metadata.name, "a-renamed");
  });

  it("stores nothing where the transform throws, and says what it threw and for which object", () => {
    const store = upperCase();
    store.replace([thing("a", "one")], "1");
    for (
      const write of [
        () => store.add(thing("b")),
        () => store.update(thing("a")),
        () => store.replace([thing("c", "three"), thing("b")], "2"),
      ]
    ) {
      assert.throws(write, (error) => {
        assert.ok(error instanceof TransformError);
        assert.equal((error.cause as Error).message, "no value");
        assert.match(error.message, /^transforming: object "[ab]": no value$/);
        return true;
      });
    }
    assert.deepEqual(store.list().map((object) => object.value), ["ONE"]);
    assert.equal(store.lastStoreSyncResourceVersion(), "1");
  });
});

describe("Store.lastStoreSyncResourceVersion", () => {
  it("is that of the last object written, without comparing", () => {
    const store = newStore<Thing>(metaNamespaceKey);
    assert.equal(store.lastStoreSyncResourceVersion(), "");
    store.add(thing("a", "1", "10"));
    assert.equal(store.lastStoreSyncResourceVersion(), "10");
    store.update(thing("b", "1", "20"));
    store.update(thing("a", "1", "15"));
    assert.equal(store.lastStoreSyncResourceVersion(), "15");
    store.delete(thing("b", "1", "30"));
    assert.equal(store.lastStoreSyncResourceVersion(), "30");
  });

  it("becomes empty with an object that has none", () => {
    const store = newStore<Thing>(metaNamespaceKey);
    store.add(thing("a", "1", "10"));
    store.add(thing("b"));
    assert.equal(store.lastStoreSyncResourceVersion(), "");
  });

  it("stays at values without metadata, and at deletes by key or tombstone", () => {
    const store = newStore<unknown>((value) => typeof value === "string" ? value : metaNamespaceKey(value));
    store.add(thing("a", "1", "10"));
    store.add("no metadata");
    assert.equal(store.lastStoreSyncResourceVersion(), "10");
    store.delete(new ExplicitKey("a"));
    assert.equal(store.lastStoreSyncResourceVersion(), "10");
    const forgiving = newStore<Thing>((value) =>
      value instanceof DeletedFinalStateUnknown ? value.key : metaNamespaceKey(value)
    );
    forgiving.add(thing("a", "1", "10"));
    forgiving.delete(new DeletedFinalStateUnknown("a", thing("a", "1", "99")));
    assert.equal(forgiving.size, 0);
    assert.equal(forgiving.lastStoreSyncResourceVersion(), "10");
  });

  it("moves when an absent object is deleted, since the content has reached that too", () => {
    const store = newStore<Thing>(metaNamespaceKey);
    store.delete(thing("absent", "1", "30"));
    assert.equal(store.lastStoreSyncResourceVersion(), "30");
  });

  it("is that of a transaction's last entry", () => {
    const store = newStore<Thing>(metaNamespaceKey);
    store.transaction([
      { type: "Add", object: thing("a", "1", "40") },
      { type: "Add", object: thing("b", "1", "30") },
      { type: "Delete", object: thing("a", "1", "50") },
    ]);
    assert.equal(store.lastStoreSyncResourceVersion(), "50");
    store.transaction([]);
    assert.equal(store.lastStoreSyncResourceVersion(), "50");
  });

  it("is what replace and bookmark say", () => {
    const store = newStore<Thing>(metaNamespaceKey);
    store.replace([thing("a", "1", "3")], "50");
    assert.equal(store.lastStoreSyncResourceVersion(), "50");
    store.bookmark("60");
    assert.equal(store.lastStoreSyncResourceVersion(), "60");
  });
});

describeOnce("ThreadSafeStore", () => {
  it("moves its resourceVersion with deleteWithObject, but not with delete", () => {
    const store = new ThreadSafeStore<Thing>();
    store.add("a", thing("a", "1", "10"));
    store.add("b", thing("b", "1", "20"));
    store.delete("a");
    assert.equal(store.lastStoreSyncResourceVersion(), "20");
    assert.equal(store.deleteWithObject("b", thing("b", "2", "30"))?.value, "1");
    assert.equal(store.lastStoreSyncResourceVersion(), "30");
    assert.equal(store.size, 0);
  });

  it("distinguishes an absent key from one that holds undefined", () => {
    const store = new ThreadSafeStore<string | undefined>();
    store.add("a", undefined);
    assert.equal(store.get("a"), undefined);
    assert.equal(store.has("a"), true);
    assert.equal(store.has("b"), false);
    store.update("a", "now something");
    store.delete("a");
    assert.equal(store.has("a"), false);
  });

  it("replaces from any iterable", () => {
    const store = new ThreadSafeStore<string, "self">({ self: (object) => [object] });
    store.replace(new Map([["a", "x"], ["b", "y"]]), "9");
    assert.deepEqual(store.listKeys().sort(), ["a", "b"]);
    assert.deepEqual(store.byIndex("self", "y"), ["y"]);
  });

  it("calls index functions only for what a replace brings newly", () => {
    const asked: string[] = [];
    const store = new ThreadSafeStore<{ users: string[] }, "byUser">({
      byUser: ({ users }) => {
        asked.push(users.join());
        return users;
      },
    });
    const one = { users: ["ernie", "bert"] };
    const none = { users: [] };
    store.replace([["one", one], ["none", none]], "1");
    asked.length = 0;
    store.replace([["one", one], ["two", { users: ["bert"] }], ["none", none]], "2");
    assert.deepEqual(asked, ["bert"]);
    assert.deepEqual(store.indexKeys("byUser", "bert"), ["one", "two"]);
    assert.deepEqual(store.indexKeys("byUser", "ernie"), ["one"]);
    store.update("one", { users: ["oscar"] });
    assert.deepEqual(store.listIndexFuncValues("byUser").sort(), ["bert", "oscar"]);
  });

  it("names the index, the key and the operation when an index function throws", () => {
    const store = new ThreadSafeStore<string, "fussy">({
      fussy: (object) => {
        if (object === "bad") throw new Error("I do not like it");
        return [object];
      },
    });
    const cases: [string, () => unknown][] = [
      ["add", () => store.add("k", "bad")],
      ["update", () => store.update("k", "bad")],
      ["replace", () => store.replace([["k", "bad"]], "1")],
      ["transaction", () => store.transaction([{ type: "Add", key: "k", object: "bad" }])],
    ];
    for (const [operation, write] of cases) {
      assert.throws(write, (error) => {
        assert.ok(error instanceof IndexFuncError);
        assert.deepEqual([error.indexName, error.key, error.operation], ["fussy", "k", operation]);
        assert.match(error.message, /I do not like it/);
        return true;
      });
    }
  });
});
