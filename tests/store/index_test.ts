import assert from "node:assert/strict";
import { type Indexer, metaNamespaceIndex, metaNamespaceKey, NAMESPACE_INDEX } from "@listwatch/cache";
import {
  IndexerConflictError,
  IndexFuncError,
  IndexNotFoundError,
  NoMetaError,
} from "@listwatch/cache/store";
import { assertSameObject, describe, it, newIndexer } from "./storages.ts";

interface Pod {
  metadata: { name: string; namespace?: string; resourceVersion?: string };
  node?: string;
  users?: string[];
}

function pod(name: string, rest: Omit<Pod, "metadata"> = {}): Pod {
  return { metadata: { name }, ...rest };
}

function byUser(object: Pod): string[] {
  return object.users ?? [];
}

function byNode(object: Pod): string[] {
  return object.node === undefined ? [] : [object.node];
}

function namesOf(pods: readonly Pod[]): string[] {
  return pods.map((object) => object.metadata.name).sort();
}

/** Everything that can be seen of an indexer. */
function contentOf(indexer: Indexer<Pod>): unknown {
  return {
    objects: indexer.listKeys().sort().map((key) => [key, indexer.getByKey(key)]),
    resourceVersion: indexer.lastStoreSyncResourceVersion(),
    indices: Object.keys(indexer.getIndexers()).sort().map((name) => [
      name,
      indexer.listIndexFuncValues(name).sort().map((value) => [value, indexer.indexKeys(name, value)]),
    ]),
  };
}

describe("StoreIndex", () => {
  it("finds objects by value, keys in order, and its values", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    for (const object of [pod("b", { node: "1" }), pod("c", { node: "2" }), pod("a", { node: "1" })]) {
      indexer.add(object);
    }
    assert.deepEqual(namesOf(indexer.byIndex("byNode", "1")), ["a", "b"]);
    assert.deepEqual(indexer.indexKeys("byNode", "1"), ["a", "b"]);
    assert.deepEqual(indexer.listIndexFuncValues("byNode").sort(), ["1", "2"]);
    assert.deepEqual(indexer.byIndex("byNode", "3"), []);
    assert.deepEqual(indexer.indexKeys("byNode", "3"), []);
  });

  it("with several values per object follows updates and deletes", () => {
    const indexer = newIndexer<Pod, "byUser">(metaNamespaceKey, { byUser });
    indexer.add(pod("one", { users: ["ernie", "bert"] }));
    indexer.add(pod("two", { users: ["bert", "oscar"] }));
    indexer.add(pod("tre", { users: ["ernie", "elmo"] }));
    assert.deepEqual(indexer.indexKeys("byUser", "ernie"), ["one", "tre"]);
    assert.deepEqual(indexer.indexKeys("byUser", "bert"), ["one", "two"]);
    indexer.delete(pod("tre"));
    assert.deepEqual(indexer.indexKeys("byUser", "ernie"), ["one"]);
    assert.deepEqual(indexer.indexKeys("byUser", "elmo"), []);
    indexer.update(pod("two", { users: ["oscar", "elmo"] }));
    assert.deepEqual(indexer.indexKeys("byUser", "bert"), ["one"]);
    assert.deepEqual(indexer.indexKeys("byUser", "elmo"), ["two"]);
    assert.deepEqual(indexer.indexKeys("byUser", "oscar"), ["two"]);
  });

  it("finds each of the objects that share a value with one, once", () => {
    const indexer = newIndexer<Pod, "byUser">(metaNamespaceKey, { byUser });
    indexer.add(pod("one", { users: ["ernie", "bert"] }));
    indexer.add(pod("two", { users: ["bert", "oscar"] }));
    indexer.add(pod("tre", { users: ["elmo"] }));
    const like = pod("not stored", { users: ["ernie", "bert", "bert", "no user"] });
    assert.deepEqual(namesOf(indexer.index("byUser", like)), ["one", "two"]);
    assert.deepEqual(indexer.index("byUser", pod("no users")), []);
  });

  it("moves an object whose only value changes", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    indexer.add(pod("a", { node: "1" }));
    indexer.update(pod("a", { node: "2" }));
    assert.deepEqual(indexer.indexKeys("byNode", "1"), []);
    assert.deepEqual(indexer.indexKeys("byNode", "2"), ["a"]);
    indexer.update(pod("a"));
    assert.deepEqual(indexer.listIndexFuncValues("byNode"), []);
  });

  it("counts a value that the function repeats once", () => {
    const indexer = newIndexer<Pod, "byUser">(metaNamespaceKey, { byUser });
    indexer.add(pod("one", { users: ["ernie", "ernie"] }));
    assert.equal(indexer.byIndex("byUser", "ernie").length, 1);
    indexer.update(pod("one", { users: ["ernie"] }));
    assert.deepEqual(indexer.indexKeys("byUser", "ernie"), ["one"]);
    indexer.update(pod("one", { users: [] }));
    assert.deepEqual(indexer.listIndexFuncValues("byUser"), []);
  });

  it("forgets a value with its last object, and keeps it before", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    indexer.add(pod("a", { node: "1" }));
    indexer.add(pod("b", { node: "1" }));
    indexer.delete(pod("a"));
    assert.deepEqual(indexer.indexKeys("byNode", "1"), ["b"]);
    assert.deepEqual(indexer.listIndexFuncValues("byNode"), ["1"]);
    indexer.delete(pod("b"));
    assert.deepEqual(indexer.listIndexFuncValues("byNode"), []);
  });

  it("holds the newest object of a key, also where its value did not change", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    indexer.add(pod("a", { node: "1" }));
    const newer = pod("a", { node: "1" });
    indexer.update(newer);
    assertSameObject(indexer.byIndex("byNode", "1")[0], newer);
  });

  it("is built again by replace", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    indexer.add(pod("a", { node: "1" }));
    indexer.replace([pod("b", { node: "2" }), pod("b", { node: "3" })], "9");
    assert.deepEqual(indexer.listIndexFuncValues("byNode"), ["3"]);
    assert.deepEqual(indexer.indexKeys("byNode", "3"), ["b"]);
  });

  it("may have values and names that are also properties of every object", () => {
    const indexer = newIndexer<Pod, "constructor" | "__proto__">(metaNamespaceKey, {
      constructor: byNode,
      ["__proto__"]: byUser,
    });
    indexer.add(pod("hasOwnProperty", { node: "toString", users: ["__proto__"] }));
    assert.deepEqual(indexer.indexKeys("constructor", "toString"), ["hasOwnProperty"]);
    assert.deepEqual(indexer.indexKeys("__proto__", "__proto__"), ["hasOwnProperty"]);
    assert.deepEqual(indexer.indexKeys("constructor", "valueOf"), []);
  });

  it("by namespace has cluster-scoped objects under the empty string", () => {
    const indexer = newIndexer<Pod, "namespace">(metaNamespaceKey, { [NAMESPACE_INDEX]: metaNamespaceIndex });
    indexer.add(pod("node-1"));
    indexer.add({ metadata: { namespace: "shop", name: "web-1" } });
    assert.deepEqual(indexer.indexKeys("namespace", ""), ["node-1"]);
    assert.deepEqual(indexer.indexKeys("namespace", "shop"), ["shop/web-1"]);
  });
});

describe("IndexNotFoundError", () => {
  const indexer = newIndexer<Pod, "byNode" | "byUser">(metaNamespaceKey, { byNode, byUser });
  const unknown = indexer as unknown as Indexer<Pod, string>;

  it("names the known ones, in every lookup but listIndexFuncValues", () => {
    for (
      const lookup of [
        () => unknown.byIndex("byZone", "a"),
        () => unknown.indexKeys("byZone", "a"),
        () => unknown.index("byZone", pod("a")),
      ]
    ) {
      assert.throws(lookup, (error) => {
        assert.ok(error instanceof IndexNotFoundError);
        assert.equal(error.indexName, "byZone");
        assert.match(error.message, /^Index with name byZone does not exist .*byNode, byUser/);
        return true;
      });
    }
    assert.deepEqual(unknown.listIndexFuncValues("byZone"), []);
  });

  it("is refused by the compiler", () => {
    // @ts-expect-error -- there is no such index
    assert.throws(() => indexer.byIndex("byZone", "a"), IndexNotFoundError);
    // @ts-expect-error -- there is no such index
    assert.throws(() => indexer.indexKeys("byZone", "a"), IndexNotFoundError);
    // @ts-expect-error -- there is no such index
    assert.throws(() => indexer.index("byZone", pod("a")), IndexNotFoundError);
    // @ts-expect-error -- there is no such index
    assert.deepEqual(indexer.listIndexFuncValues("byZone"), []);
    // @ts-expect-error -- there is no such index
    assert.equal(indexer.getIndexers().byZone, undefined);
    assert.equal(typeof indexer.getIndexers().byNode, "function");
  });

  it("is refused by the compiler where the named ones are not all given, or others are", () => {
    // @ts-expect-error -- byUser is missing
    assert.ok(newIndexer<Pod, "byNode" | "byUser">(metaNamespaceKey, { byNode }));
    // @ts-expect-error -- byUser is not named
    assert.ok(newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode, byUser }));
    // @ts-expect-error -- an index function returns strings
    assert.ok(newIndexer<Pod, "byAge">(metaNamespaceKey, { byAge: () => [7] }));
  });
});

describe("Indexer.addIndexers", () => {
  it("indexes what is stored at once, and what is stored later", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    indexer.add(pod("a", { node: "1", users: ["ernie"] }));
    const both = indexer.addIndexers({ byUser, byName: (object) => [object.metadata.name] });
    assert.deepEqual(both.indexKeys("byUser", "ernie"), ["a"]);
    assert.deepEqual(both.indexKeys("byName", "a"), ["a"]);
    indexer.add(pod("b", { users: ["ernie"] }));
    assert.deepEqual(both.indexKeys("byUser", "ernie"), ["a", "b"]);
    indexer.delete(pod("a"));
    assert.deepEqual(both.indexKeys("byUser", "ernie"), ["b"]);
    assert.deepEqual(both.indexKeys("byNode", "1"), []);
    assert.equal(both, indexer as unknown);
    // @ts-expect-error -- the older type does not know the newer index
    assert.deepEqual(indexer.indexKeys("byUser", "ernie"), ["b"]);
  });

  it("adds nothing where one name is taken", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    indexer.add(pod("a", { node: "1", users: ["ernie"] }));
    const before = contentOf(indexer);
    assert.throws(() => indexer.addIndexers({ byUser, byNode: byUser }), (error) => {
      assert.ok(error instanceof IndexerConflictError);
      assert.deepEqual(error.indexNames, ["byNode"]);
      assert.match(error.message, /^indexer conflict: /);
      return true;
    });
    assert.deepEqual(contentOf(indexer), before);
    assert.equal(indexer.getIndexers().byNode, byNode);
  });

  it("adds nothing where an index function throws for a stored object", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    indexer.add(pod("a", { node: "1" }));
    const before = contentOf(indexer);
    assert.throws(
      () => indexer.addIndexers({ byUser, strict: (object) => object.users!.slice() }),
      IndexFuncError,
    );
    assert.deepEqual(contentOf(indexer), before);
    assert.deepEqual(Object.keys(indexer.addIndexers({ byUser }).getIndexers()), ["byNode", "byUser"]);
  });

  it("is not reached by changes to what getIndexers returned", () => {
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, { byNode });
    (indexer.getIndexers() as Record<string, unknown>).byUser = byUser;
    assert.deepEqual(Object.keys(indexer.getIndexers()), ["byNode"]);
  });
});

describe("IndexFunc that throws", () => {
  function filled(): Indexer<Pod, "byNode" | "byUser"> {
    const indexer = newIndexer<Pod, "byNode" | "byUser">(metaNamespaceKey, {
      byNode,
      byUser: (object) => object.users!.slice(), // throws where there are none
    });
    indexer.replace(
      [pod("a", { node: "1", users: ["ernie"] }), pod("b", { node: "2", users: ["bert"] })],
      "5",
    );
    return indexer;
  }

  const bad = pod("a", { node: "3" });

  it("leaves store and indices as they were, whatever the write", () => {
    const indexer = filled();
    const before = contentOf(indexer);
    const writes: Record<string, () => unknown> = {
      add: () => indexer.add(pod("new", { node: "3" })),
      update: () => indexer.update(bad),
      replace: () => indexer.replace([pod("c", { users: [] }), bad], "6"),
      transaction: () =>
        indexer.transaction([
          { type: "Delete", object: pod("b") },
          { type: "Add", object: pod("c", { users: ["elmo"] }) },
          { type: "Update", object: bad },
        ]),
    };
    for (const [operation, write] of Object.entries(writes)) {
      assert.throws(
        write,
        (error) => error instanceof IndexFuncError && error.indexName === "byUser",
        operation,
      );
      assert.deepEqual(contentOf(indexer), before, operation);
    }
  });

  it("throws what it throws where it is called for a lookup", () => {
    const indexer = filled();
    assert.throws(() => indexer.index("byUser", bad), TypeError);
    const byNamespace = newIndexer<unknown, "namespace">(metaNamespaceKey, { namespace: metaNamespaceIndex });
    assert.throws(() => byNamespace.index("namespace", "not an object"), NoMetaError);
  });

  it("is also one that returns anything but an array of strings", () => {
    for (
      const [returned, message] of [["text", /not string/], [undefined, /not undefined/], [
        [7],
        /value 0 is of type number/,
      ]] as const
    ) {
      const indexer = newIndexer<Pod, "odd">(metaNamespaceKey, {
        odd: () => returned as unknown as string[],
      });
      assert.throws(() => indexer.add(pod("a")), message);
      assert.equal(indexer.size, 0);
    }
  });
});
