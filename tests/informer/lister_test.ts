import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  isNotFound,
  type KubernetesObject,
  LABEL_INDEX,
  labelIndexFunc,
  metaNamespaceIndex,
  metaNamespaceKey,
  newLister,
  shortTexts,
  StatusError,
} from "@listwatch/cache";
import { listAll, listAllByNamespace } from "@listwatch/cache/informer";
import {
  labelsEverything,
  labelsNothing,
  parseLabelSelector,
  SelectorParseError,
} from "@listwatch/cache/selectors";
import { newIndexer, newStore, NoMetaError } from "@listwatch/cache/store";
import { node, pod } from "@listwatch/cache/testing";
import { type Cache, newCache } from "../../src/store/cache.ts";

const pods = [
  pod("web-1", { namespace: "shop", labels: { app: "web", tier: "front" } }),
  pod("web-2", { namespace: "shop", labels: { app: "web" } }),
  pod("db-1", { namespace: "shop", labels: { app: "db" } }),
  pod("web-1", { namespace: "blog", labels: { app: "web" } }),
  pod("bare", { namespace: "blog" }),
];

function newPods(indexed = true, storage: "objects" | "encoded" = "objects") {
  const indexer = newIndexer<KubernetesObject>(
    metaNamespaceKey,
    indexed ? { namespace: metaNamespaceIndex } : {},
    { storage: storage === "encoded" ? shortTexts() : undefined },
  );
  indexer.replace(pods, "1");
  return indexer;
}

function keys(objects: readonly KubernetesObject[]): string[] {
  return objects.map(metaNamespaceKey).sort();
}

for (
  const [indexed, storage] of [[true, "objects"], [false, "objects"], [true, "encoded"], [
    false,
    "encoded",
  ]] as const
) {
  describe(`a lister ${indexed ? "with" : "without"} an index by namespace (${storage})`, () => {
    const lister = newLister(newPods(indexed, storage), "v1/pods");

    it("lists everything", () => {
      assert.equal(lister.list().length, 5);
      assert.equal(lister.list("").length, 5);
      assert.equal(lister.list(labelsEverything()).length, 5);
    });

    it("lists what carries the labels selected", () => {
      assert.deepEqual(keys(lister.list("app=web")), ["blog/web-1", "shop/web-1", "shop/web-2"]);
      assert.deepEqual(keys(lister.list(parseLabelSelector("app in (db), tier!=front"))), ["shop/db-1"]);
      assert.deepEqual(keys(lister.list("!app")), ["blog/bare"]);
    });

    it("lists nothing for a selector of nothing", () => {
      assert.deepEqual(lister.list(labelsNothing()), []);
      assert.deepEqual(lister.byNamespace("shop").list(labelsNothing()), []);
    });

    it("lists a namespace", () => {
      assert.deepEqual(keys(lister.byNamespace("blog").list()), ["blog/bare", "blog/web-1"]);
      assert.deepEqual(lister.byNamespace("nowhere").list(), []);
    });

    it("lists what carries the labels selected in a namespace", () => {
      assert.deepEqual(keys(lister.byNamespace("shop").list("app=web")), ["shop/web-1", "shop/web-2"]);
    });

    it("lists all namespaces for the empty one", () => {
      assert.equal(lister.byNamespace("").list().length, 5);
      assert.equal(lister.byNamespace("").list("app=web").length, 3);
    });

    it("hands out the objects of the store, in an array of the caller's own", () => {
      const one = lister.byNamespace("shop").list();
      assert.equal(one.every((object) => pods.includes(object as typeof pods[number])), true);
      one.length = 0;
      assert.equal(lister.byNamespace("shop").list().length, 3);
    });
  });
}

describe("Lister", () => {
  const lister = newLister(newPods(), "v1/pods");

  it("gets an object by namespace and name, or by its key", () => {
    assert.equal(lister.byNamespace("shop").get("db-1"), pods[2]);
    assert.equal(lister.get("shop/db-1"), pods[2]);
  });

  it("gets a cluster-scoped object by its name", () => {
    const indexer = newIndexer<KubernetesObject>(metaNamespaceKey, {});
    const one = node("node-1");
    indexer.add(one);
    const nodes = newLister(indexer, "v1/nodes");
    assert.equal(nodes.get("node-1"), one);
    assert.equal(nodes.byNamespace("").get("node-1"), one);
  });

  it("says what it did not find as the API server does", () => {
    assert.throws(() => lister.byNamespace("shop").get("absent"), (error: unknown) => {
      assert.ok(error instanceof StatusError && isNotFound(error));
      assert.equal(error.message, 'pods "absent" not found');
      assert.equal(error.httpStatus, 404);
      assert.deepEqual(error.status.details, { name: "absent", kind: "pods" });
      return true;
    });
    const deployments = newLister(newPods(), { group: "apps", version: "v1", resource: "deployments" });
    assert.throws(() => deployments.get("shop/web"), (error: unknown) => {
      assert.ok(error instanceof StatusError);
      assert.equal(error.message, 'deployments.apps "shop/web" not found');
      assert.deepEqual(error.status.details, { name: "shop/web", group: "apps", kind: "deployments" });
      return true;
    });
  });

  it("does not take an object of another namespace for its own", () => {
    assert.throws(() => lister.byNamespace("blog").get("db-1"), isNotFound);
  });

  it("refuses a selector that does not parse, and a resource that is none", () => {
    assert.throws(() => lister.list("app in web"), SelectorParseError);
    assert.throws(() => newLister(newPods(), "pods"), TypeError);
  });
});

describe("Lister with an index by labels", () => {
  function newWatched(indexers: Record<string, (object: KubernetesObject) => readonly string[]>) {
    const indexer = newIndexer<KubernetesObject>(metaNamespaceKey, indexers);
    indexer.replace([...pods, pod("canary", { namespace: "shop", labels: { build: "7" } })], "1");
    // What a lister walks through.
    const { held } = indexer as Cache<KubernetesObject, string>;
    const { values } = held;
    let scans = 0;
    held.values = () => {
      scans++;
      return values.call(held);
    };
    return { indexer, lister: newLister(indexer, "v1/pods"), scans: () => scans };
  }

  const cases: [selector: string, keys: string[]][] = [
    ["app=web", ["blog/web-1", "shop/web-1", "shop/web-2"]],
    ["app==web,tier", ["shop/web-1"]],
    ["app in (db, api, web)", ["blog/web-1", "shop/db-1", "shop/web-1", "shop/web-2"]],
    ["app in (db, web),tier=front", ["shop/web-1"]],
    ["tier,app in (db, web)", ["shop/web-1"]],
    ["app,app!=web", ["shop/db-1"]],
    ["build>6", ["shop/canary"]],
    ["app=absent", []],
  ];

  it("looks through no other objects for a selector that requires a label", () => {
    const { lister, scans } = newWatched({ [LABEL_INDEX]: labelIndexFunc() });
    for (const [selector, expected] of cases) {
      assert.deepEqual(keys(lister.list(selector)), expected, selector);
      const inShop = expected.filter((key) => key.startsWith("shop/"));
      assert.deepEqual(keys(lister.byNamespace("shop").list(selector)), inShop, selector);
    }
    assert.equal(scans(), 0);
  });

  it("looks through everything, or the namespace, for one that only excludes", () => {
    const { indexer, lister, scans } = newWatched({ [LABEL_INDEX]: labelIndexFunc() });
    assert.deepEqual(keys(lister.list("!app")), ["blog/bare", "shop/canary"]);
    assert.deepEqual(keys(lister.byNamespace("shop").list("app notin (web)")), ["shop/canary", "shop/db-1"]);
    assert.equal(scans(), 2);
    indexer.addIndexers({ namespace: metaNamespaceIndex });
    assert.deepEqual(keys(lister.byNamespace("shop").list("app!=web")), ["shop/canary", "shop/db-1"]);
    assert.equal(scans(), 2);
  });

  it("finds it under any name, also when it comes later, and knows which labels it has", () => {
    const { indexer, lister, scans } = newWatched({});
    lister.list("app=web");
    assert.equal(scans(), 1);
    indexer.addIndexers({ mine: labelIndexFunc(["app"]) });
    assert.deepEqual(keys(lister.list("app=web,tier=front")), ["shop/web-1"]);
    assert.equal(scans(), 1);
    assert.deepEqual(keys(lister.list("tier=front")), ["shop/web-1"]);
    assert.equal(scans(), 2);
    assert.deepEqual([...indexer.indexValueCounts("mine")].sort(), [["app", 4], ["app=db", 1], [
      "app=web",
      3,
    ]]);
  });

  it("cannot be deceived by another index of its name", () => {
    const { lister } = newWatched({ [LABEL_INDEX]: () => ["app=web"] });
    assert.deepEqual(keys(lister.list("app=db")), ["shop/db-1"]);
  });

  it("refuses objects that have no metadata", () => {
    assert.throws(() => labelIndexFunc()("bare"), NoMetaError);
    assert.deepEqual(labelIndexFunc()({ metadata: {} }), []);
  });
});

describe("listAll and listAllByNamespace", () => {
  it("without metadata work until labels or namespaces are needed", () => {
    const store = newStore<unknown>(String);
    store.add("bare");
    assert.deepEqual(listAll(store), ["bare"]);
    assert.deepEqual(listAll(store, labelsEverything()), ["bare"]);
    assert.throws(() => listAll(store, parseLabelSelector("app")), NoMetaError);
    const indexer = newIndexer<unknown>(String, {});
    indexer.add("bare");
    assert.deepEqual(listAllByNamespace(indexer, ""), ["bare"]);
    assert.throws(() => listAllByNamespace(indexer, "shop"), NoMetaError);
  });

  it("decodes nothing of an encoded store but what is selected", () => {
    let decoded = 0;
    const indexer = newCache<KubernetesObject, string>(metaNamespaceKey, {}, {
      storage: shortTexts({ hotObjects: 0 }),
      freeze: (value) => (decoded++, value),
    });
    indexer.replace(pods, "1");
    assert.deepEqual(keys(newLister(indexer, "v1/pods").list("app=db")), ["shop/db-1"]);
    assert.equal(decoded, 1);
    assert.deepEqual(keys(listAllByNamespace(indexer, "shop", parseLabelSelector("app=web"))), [
      "shop/web-1",
      "shop/web-2",
    ]);
    assert.equal(decoded, 3);
  });
});
