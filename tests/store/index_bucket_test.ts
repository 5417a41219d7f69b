import assert from "node:assert/strict";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { IndexFuncError, indexFuncToKeyFunc, newStore } from "@listwatch/cache/store";
import { BucketIterator, IndexBucket } from "../../src/store/index_bucket.ts";
import { describe, it, newIndexer } from "./storages.ts";

interface Pod extends KubernetesObject {
  values: string[];
}

const pod = (name: string, ...values: string[]): Pod => ({ metadata: { name }, values });

const newPods = () => newIndexer(metaNamespaceKey, { value: (object: Pod) => object.values });

describe("IndexBucket", () => {
  it("has what was added since it was listed, and no more what was deleted, whatever its size", () => {
    const pods = newPods();
    for (let i = 0; i < 40; i++) {
      pods.add(pod(`p${i}`, "v", "v"));
      assert.equal(pods.byIndex("value", "v").length, i + 1);
      assert.equal(pods.countByIndex("value", "v"), i + 1);
      pods.add(pod(`p${i}`, "v"));
      assert.equal(pods.byIndex("value", "v").length, i + 1);
    }
    for (let i = 39; i >= 0; i--) {
      pods.delete(pod(`p${i}`));
      assert.deepEqual(
        pods.indexKeys("value", "v").sort(),
        Array.from({ length: i }, (_, j) => `p${j}`).sort(),
      );
    }
    assert.equal(pods.countByIndex("value", "v"), 0);
  });

  it("takes an object that is under one value twice once, however many there are", () => {
    const pods = newPods();
    for (let i = 0; i < 40; i++) pods.add(pod(`p${i}`, "v", "w", "v"));
    assert.equal(pods.countByIndex("value", "v"), 40);
    pods.update(pod("p0", "w"));
    assert.equal(pods.countByIndex("value", "v"), 39);
    assert.equal(pods.countByIndex("value", "w"), 40);
  });
});

describe("BucketIterator", () => {
  it("walks what the bucket had, but for what was deleted, and ends where it is left", () => {
    const entries = Array.from({ length: 40 }, (_, i) => ({ key: `${i}`, object: i, places: [] }));
    for (const size of [3, 40]) {
      const bucket = new IndexBucket<number>("v");
      const some = entries.slice(0, size);
      for (const entry of some) bucket.add(entry);
      const walk = new BucketIterator(bucket);
      assert.deepEqual(walk.next(), { done: false, value: 0 });
      bucket.delete(entries[1]);
      bucket.add({ key: "new", object: 100, places: [] });
      assert.deepEqual([...walk], some.slice(2).map(({ object }) => object));
      const left = new BucketIterator(bucket);
      left.next();
      assert.deepEqual(left.return(), { done: true, value: undefined });
      assert.deepEqual(left.next(), { done: true, value: undefined });
    }
    assert.deepEqual([...new BucketIterator<number>(undefined)], []);
  });
});

describe("IndexFuncError and other refusals of stores", () => {
  it("say what an index function must return", async () => {
    const refusedBy = (indexFunc: (object: Pod) => unknown) => {
      const pods = newIndexer(metaNamespaceKey, { value: indexFunc as (object: Pod) => string[] });
      try {
        pods.add(pod("a"));
      } catch (error) {
        assert.ok(error instanceof IndexFuncError);
        return String(error.cause);
      }
      return assert.fail("it was added");
    };
    const must = "TypeError: an index function must return an array of strings";
    assert.equal(refusedBy(() => "a"), `${must}, not string`);
    assert.equal(refusedBy(() => ["a", 1]), `${must}, but value 1 is of type number`);
    assert.equal(refusedBy(() => Promise.reject(new Error("late"))), "TypeError: it must return no promise");
    await Promise.resolve(); // its rejection is not left unhandled
  });

  it("say which index is there already, and how many values make no key", () => {
    const pods = newIndexer<Pod, string>(metaNamespaceKey, { b: () => [], a: () => [] });
    assert.throws(
      () => pods.addIndexers({ b: () => [], c: () => [], a: () => [] } as never),
      /^IndexerConflictError: .*\ba\b.*\bb\b/,
    );
    const key = (values: string[]) => () => indexFuncToKeyFunc(() => values)({});
    assert.throws(key([]), { code: "EmptyIndexKeys", message: "unexpected empty indexKeys" });
    assert.throws(key(["x", "y"]), { code: "TooManyKeys", message: "too many keys: x, y" });
  });

  it("say which write of a transaction has no key, and which storage is none", () => {
    const store = newStore<Pod>(metaNamespaceKey);
    for (const type of ["Add", "Update", "Delete"] as const) {
      assert.throws(
        () => store.transaction([{ type, object: 5 as unknown as Pod }]),
        new RegExp(`^TransactionError: .* due to: Cannot ${type.toLowerCase()} an object: `),
      );
    }
    assert.throws(
      () => newStore<Pod>(metaNamespaceKey, { storage: "texts" as never }),
      /^TypeError: Cannot make a store with the storage "texts": import and pass shortTexts\(\), or leave it out$/,
    );
  });
});

describe("Store.replace with onIndexFailure", () => {
  const node = (name: string, ...values: string[]) => pod(name, ...values);
  const newNodes = () =>
    newIndexer(metaNamespaceKey, {
      value: (object: Pod) => {
        if (object.values.includes("broken")) throw new Error("no such value");
        return object.values;
      },
    });

  it("stores what takes the place of a quarantined object, and leaves out what has none", () => {
    const pods = newNodes();
    pods.replace([node("a", "one"), node("b", "one")], "1");
    const asked: string[] = [];
    pods.replace([node("a", "broken"), node("b", "broken"), node("c", "two")], "2", (error, object) => {
      assert.deepEqual(object, node(error.key, "broken"));
      asked.push(error.key);
      return error.key === "a" ? pods.getByKey("a") : undefined;
    });
    assert.deepEqual(asked, ["a", "b"]);
    assert.deepEqual(pods.listKeys().sort(), ["a", "c"]);
    assert.deepEqual(pods.getByKey("a"), node("a", "one"));
    assert.deepEqual(pods.indexKeys("value", "one"), ["a"]);
  });

  it("need not be there: then the call throws, and changes nothing", () => {
    const pods = newNodes();
    pods.replace([node("a", "one")], "1");
    assert.throws(() => pods.replace([node("a", "broken"), node("c", "two")], "2"), IndexFuncError);
    assert.deepEqual(pods.list(), [node("a", "one")]);
    assert.equal(pods.lastStoreSyncResourceVersion(), "1");
  });
});
