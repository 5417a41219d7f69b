import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { metaNamespaceKey } from "@listwatch/cache";
import { ExplicitKey, KeyError, TransactionError } from "@listwatch/cache/store";
import { UndeltaStore } from "@listwatch/cache/compat";

interface Thing {
  metadata: { name: string };
}

function thing(name: string): Thing {
  return { metadata: { name } };
}

const notAnObject = "not an object" as unknown as Thing;

function recorded(): { store: UndeltaStore<Thing>; pushes: string[][] } {
  const pushes: string[][] = [];
  const store = new UndeltaStore<Thing>(
    (objects) => pushes.push(objects.map((object) => object.metadata.name)),
    metaNamespaceKey,
  );
  return { store, pushes };
}

describe("UndeltaStore", () => {
  it("pushes the whole content once for each write", () => {
    const { store, pushes } = recorded();
    store.add(thing("a"));
    store.update(thing("b"));
    store.delete(thing("a"));
    store.delete(thing("absent"));
    store.replace([thing("x"), thing("y")], "1");
    store.transaction([{ type: "Delete", object: new ExplicitKey("x") }, {
      type: "Add",
      object: thing("z"),
    }]);
    assert.deepEqual(pushes, [["a"], ["a", "b"], ["b"], ["b"], ["x", "y"], ["y", "z"]]);
  });

  it("pushes nothing for reads, resyncs and bookmarks", () => {
    const { store, pushes } = recorded();
    store.add(thing("a"));
    pushes.length = 0;
    store.list();
    store.listKeys();
    store.get(thing("a"));
    store.getByKey("a");
    store.has("a");
    assert.equal([...store.values()].length, store.size);
    store.resync();
    store.bookmark("9");
    assert.equal(store.lastStoreSyncResourceVersion(), "9");
    assert.deepEqual(pushes, []);
  });

  it("pushes nothing for a write that throws", () => {
    const { store, pushes } = recorded();
    assert.throws(() => store.add(notAnObject), KeyError);
    assert.throws(() => store.update(notAnObject), KeyError);
    assert.throws(() => store.delete(notAnObject), KeyError);
    assert.throws(() => store.replace([thing("a"), notAnObject], "1"), KeyError);
    assert.throws(() => store.transaction([{ type: "Add", object: notAnObject }]), TransactionError);
    assert.deepEqual(pushes, []);
  });

  it("pushes what a transaction wrote before it throws about the rest", () => {
    const { store, pushes } = recorded();
    assert.throws(
      () => store.transaction([{ type: "Add", object: notAnObject }, { type: "Add", object: thing("a") }]),
      TransactionError,
    );
    assert.deepEqual(pushes, [["a"]]);
  });

  it("keeps the write where the push throws, and throws that", () => {
    const store = new UndeltaStore<Thing>(() => {
      throw new Error("no receiver");
    }, metaNamespaceKey);
    assert.throws(() => store.add(thing("a")), /no receiver/);
    assert.equal(store.has("a"), true);
  });

  it("pushes a list that the receiver may keep and change", () => {
    const lists: Thing[][] = [];
    const store = new UndeltaStore<Thing>((objects) => lists.push(objects), metaNamespaceKey);
    store.add(thing("a"));
    lists[0].pop();
    store.add(thing("b"));
    assert.deepEqual(lists.map((list) => list.length), [0, 2]);
  });
});
