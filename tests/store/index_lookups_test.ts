import assert from "node:assert/strict";
import { type Indexer, metaNamespaceIndex, metaNamespaceKey } from "@listwatch/cache";
import { IndexNotFoundError, type IndexValues } from "@listwatch/cache/store";
import { assertSameObject, describe, it, newIndexer } from "./storages.ts";

interface Pod {
  metadata: { name: string; namespace: string };
  node?: string;
  users?: string[];
}

type Names = "byNode" | "byUser" | "namespace";

function pod(name: string, rest: { namespace?: string; node?: string; users?: string[] } = {}): Pod {
  const { namespace = "shop", ...fields } = rest;
  return { metadata: { namespace, name }, ...fields };
}

function newPods(...pods: Pod[]): Indexer<Pod, Names> {
  const indexer = newIndexer<Pod, Names>(metaNamespaceKey, {
    byNode: (object) => object.node === undefined ? [] : [object.node],
    byUser: (object) => object.users ?? [],
    namespace: metaNamespaceIndex,
  });
  indexer.replace(pods, "1");
  return indexer;
}

function namesOf(pods: Iterable<Pod>): string[] {
  return Array.from(pods, (object) => object.metadata.name).sort();
}

/** As many pods on one node as make its value a large one, and fewer. */
const SIZES = [1, 2, 8, 9, 40];

function podsOnNode(count: number): Pod[] {
  return Array.from({ length: count }, (_, i) => pod(`p${String(i).padStart(2, "0")}`, { node: "1" }));
}

describe("Indexer.countByIndex", () => {
  it("returns how many objects a value has, and follows writes", () => {
    for (const size of SIZES) {
      const indexer = newPods(...podsOnNode(size));
      assert.equal(indexer.countByIndex("byNode", "1"), size);
      assert.equal(indexer.countByIndex("byNode", "2"), 0);
      indexer.add(pod("p00", { node: "2" }));
      assert.equal(indexer.countByIndex("byNode", "1"), size - 1);
      assert.equal(indexer.countByIndex("byNode", "2"), 1);
      indexer.delete(pod("p00"));
      assert.equal(indexer.countByIndex("byNode", "2"), 0);
    }
  });

  it("returns all values with their counts, in a map of the caller's own", () => {
    const indexer = newPods(
      pod("a", { users: ["ernie", "bert"] }),
      pod("b", { users: ["bert", "bert"] }),
      pod("c"),
    );
    const counts = indexer.indexValueCounts("byUser");
    assert.deepEqual([...counts].sort(), [["bert", 2], ["ernie", 1]]);
    counts.clear();
    indexer.delete(pod("a"));
    assert.deepEqual([...indexer.indexValueCounts("byUser")], [["bert", 1]]);
  });
});

describe("Indexer.eachByIndex", () => {
  it("gives the same objects as byIndex", () => {
    for (const size of SIZES) {
      const indexer = newPods(...podsOnNode(size), pod("other", { node: "2" }));
      assert.deepEqual(namesOf(indexer.eachByIndex("byNode", "1")), namesOf(podsOnNode(size)));
      const [first] = indexer.eachByIndex("byNode", "2");
      assertSameObject(first, indexer.getByKey("shop/other"));
    }
    assert.deepEqual([...newPods().eachByIndex("byNode", "1")], []);
  });

  it("can be left early, and has ended then", () => {
    const indexer = newPods(...podsOnNode(9));
    const walk = indexer.eachByIndex("byNode", "1");
    for (const _ of walk) break;
    assert.equal(walk.next().done, true);
    assert.deepEqual([...walk], []);
  });

  it("gives each object that stays once, whatever is written meanwhile", () => {
    for (const size of SIZES) {
      const indexer = newPods(...podsOnNode(size));
      const seen: string[] = [];
      let i = 0;
      for (const { metadata } of indexer.eachByIndex("byNode", "1")) {
        seen.push(metadata.name);
        indexer.update(pod(metadata.name, { node: "1", users: ["another"] }));
        indexer.add(pod(`new-${i++}`, { node: "1" }));
        indexer.add(pod(`elsewhere-${i}`, { node: "2" }));
      }
      assert.deepEqual(seen.sort(), namesOf(podsOnNode(size)));
      assert.equal(indexer.countByIndex("byNode", "1"), 2 * size);
    }
  });

  it("gives objects as they are when their turn comes, and passes over those that have left", () => {
    for (const size of [3, 40]) {
      const indexer = newPods(...podsOnNode(size));
      const walk = indexer.eachByIndex("byNode", "1");
      const first = walk.next().value!.metadata.name;
      const others = namesOf(podsOnNode(size)).filter((name) => name !== first);
      indexer.update(pod(others[0], { node: "2" }));
      indexer.delete(pod(others[1]));
      for (const name of others.slice(2)) indexer.update(pod(name, { node: "1", users: ["ernie"] }));
      const rest = [...walk];
      assert.deepEqual(namesOf(rest), others.slice(2));
      assert.equal(rest.every(({ users }) => users?.[0] === "ernie"), true);
    }
  });

  it("does not see a replace", () => {
    for (const size of [3, 40]) {
      const indexer = newPods(...podsOnNode(size));
      const walk = indexer.eachByIndex("byNode", "1");
      const first = walk.next().value!.metadata.name;
      indexer.replace([pod("new", { node: "1" })], "2");
      assert.deepEqual([first, ...namesOf(walk)].sort(), namesOf(podsOnNode(size)));
      assert.deepEqual(namesOf(indexer.eachByIndex("byNode", "1")), ["new"]);
    }
  });
});

describe("Indexer.byIndices", () => {
  const pods = [
    pod("a", { node: "1", users: ["ernie", "bert"] }),
    pod("b", { node: "1", users: ["bert"] }),
    pod("c", { node: "2", users: ["ernie"] }),
    pod("d", { node: "1", namespace: "blog", users: ["ernie"] }),
  ];

  it("has the objects that are under every value", () => {
    const indexer = newPods(...pods);
    const cases: [IndexValues<Names>, string[]][] = [
      [{ byNode: "1" }, ["a", "b", "d"]],
      [{ byNode: "1", namespace: "shop" }, ["a", "b"]],
      [{ namespace: "shop", byNode: "1" }, ["a", "b"]],
      [{ byNode: "1", namespace: "shop", byUser: "ernie" }, ["a"]],
      [{ byUser: ["ernie", "bert"] }, ["a"]],
      [{ byUser: ["ernie"], byNode: ["1", "2"] }, []],
      [{ byNode: "1", namespace: "nowhere" }, []],
      [{ byNode: "2", namespace: "blog" }, []],
    ];
    for (const [values, expected] of cases) {
      assert.deepEqual(namesOf(indexer.byIndices(values)), expected, JSON.stringify(values));
    }
  });

  it("asks for each object of the smallest only, in large ones too", () => {
    const indexer = newPods(...podsOnNode(40), ...pods);
    assert.deepEqual(namesOf(indexer.byIndices({ byNode: "1", byUser: "bert" })), ["a", "b"]);
    assert.equal(indexer.byIndices({ byNode: "1", namespace: "shop" }).length, 42);
  });

  it("of nothing has all objects, in an array of the caller's own", () => {
    const indexer = newPods(...pods);
    for (const values of [{}, { byUser: [] }, { byNode: "1" }]) {
      const found = indexer.byIndices(values);
      const { length } = found;
      assert.equal(length, "byNode" in values ? 3 : 4);
      found.length = 0;
      assert.equal(indexer.byIndices(values).length, length);
    }
  });

  it("refuses a value that is missing, rather than to leave its condition out", () => {
    const indexer = newPods(...pods);
    assert.throws(() => indexer.byIndices({ byNode: undefined, namespace: "nowhere" }), {
      name: "TypeError",
      message: 'Cannot look in index "byNode" for a value of type undefined: pass a string',
    });
  });
});

describe("Indexer lookups", () => {
  it("refuse an index that does not exist, at once, and so does the compiler", () => {
    const indexer = newPods();
    // @ts-expect-error -- there is no such index
    assert.throws(() => indexer.eachByIndex("byZone", "a"), IndexNotFoundError);
    // @ts-expect-error -- there is no such index
    assert.throws(() => indexer.countByIndex("byZone", "a"), IndexNotFoundError);
    // @ts-expect-error -- there is no such index
    assert.throws(() => indexer.indexValueCounts("byZone"), IndexNotFoundError);
    // @ts-expect-error -- there is no such index
    assert.throws(() => indexer.byIndices({ namespace: "nowhere", byZone: "a" }), IndexNotFoundError);
    // @ts-expect-error -- a value is a text
    assert.throws(() => indexer.byIndices({ byNode: 7 }), TypeError);
  });
});

describe("IndexFunc", () => {
  it("is called once for each object that is written, and never again for one that is replaced or deleted", () => {
    const asked: string[] = [];
    const indexer = newIndexer<Pod, "byNode">(metaNamespaceKey, {
      byNode: (object) => {
        asked.push(`${object.metadata.name} on ${object.node}`);
        return [object.node ?? ""];
      },
    });
    indexer.add(pod("a", { node: "1" }));
    indexer.update(pod("a", { node: "2" }));
    indexer.transaction([{ type: "Update", object: pod("a", { node: "3" }) }, {
      type: "Add",
      object: pod("b", { node: "3" }),
    }]);
    indexer.delete(pod("b"));
    indexer.delete(pod("a"));
    assert.deepEqual(asked, ["a on 1", "a on 2", "a on 3", "b on 3"]);
    assert.deepEqual(indexer.listIndexFuncValues("byNode"), []);
  });

  it("may answer otherwise the next time: what it said is undone as it said it", () => {
    let epoch = 0;
    const indexer = newIndexer<Pod, "byEpoch">(metaNamespaceKey, { byEpoch: () => [`${++epoch}`, "same"] });
    indexer.add(pod("a"));
    indexer.update(pod("a"));
    assert.deepEqual(indexer.listIndexFuncValues("byEpoch").sort(), ["2", "same"]);
    indexer.delete(pod("a"));
    assert.deepEqual(indexer.listIndexFuncValues("byEpoch"), []);
  });

  it("may return the array that it keeps, and changes", () => {
    const users = ["ernie"];
    const indexer = newIndexer<Pod, "byUser">(metaNamespaceKey, { byUser: () => users });
    indexer.add(pod("a"));
    users[0] = "bert";
    users.push("oscar");
    indexer.update(pod("a"));
    assert.deepEqual([...indexer.indexValueCounts("byUser")].sort(), [["bert", 1], ["oscar", 1]]);
  });

  it("may name tens of thousands of values, of which few change", () => {
    const many = Array.from({ length: 30_000 }, (_, i) => `user-${i}`);
    const indexer = newPods(pod("a", { users: many }), pod("b", { users: ["user-7"] }));
    indexer.update(pod("a", { users: many.slice(1) })); // all of them move up
    indexer.update(pod("a", { users: many.slice(1).reverse() }));
    assert.equal(indexer.indexValueCounts("byUser").size, 29_999);
    assert.deepEqual(indexer.indexKeys("byUser", "user-7"), ["shop/a", "shop/b"]);
    assert.deepEqual(indexer.indexKeys("byUser", "user-0"), []);
    indexer.update(pod("a"));
    assert.deepEqual([...indexer.indexValueCounts("byUser")], [["user-7", 1]]);
  });
});
