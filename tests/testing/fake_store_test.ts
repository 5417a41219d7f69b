import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey, silentLogger } from "@listwatch/cache";
import { Reflector } from "@listwatch/cache/reflector";
import type { Store } from "@listwatch/cache/store";
import { type ExpirationPolicy, newExpirationStore } from "@listwatch/cache/compat";
import { FakeControllerSource, FakeCustomStore, FakeExpirationPolicy, pod } from "@listwatch/cache/testing";

describe("FakeCustomStore", () => {
  it("does nothing and is empty without functions", () => {
    const store: Store<string> = new FakeCustomStore<string>();
    store.replace(["a"], "1");
    store.transaction([{ type: "Add", object: "a" }]);
    store.resync();
    store.bookmark("2");
    const held = [store.add("a"), store.update("a"), store.delete("a"), store.get("a"), store.getByKey("a")];
    assert.deepEqual(held, [undefined, undefined, undefined, undefined, undefined]);
    assert.deepEqual([store.list(), store.listKeys(), [...store.values()]], [[], [], []]);
    assert.deepEqual([store.size, store.has("a"), store.lastStoreSyncResourceVersion()], [0, false, ""]);
  });

  it("calls the function of each method", () => {
    const calls: unknown[][] = [];
    const record = (name: string) => (...args: unknown[]) => (calls.push([name, ...args]), undefined);
    const store = new FakeCustomStore<string>({
      add: record("add"),
      update: record("update"),
      delete: record("delete"),
      get: record("get"),
      replace: record("replace"),
      transaction: record("transaction"),
      resync: record("resync"),
      bookmark: record("bookmark"),
      list: () => ["x", "y"],
      listKeys: () => ["k"],
      getByKey: (key) => key === "k" ? "x" : undefined,
      lastStoreSyncResourceVersion: () => "7",
    });
    store.add("a");
    store.update("b");
    store.delete("c");
    store.get("d");
    store.replace(["e"], "1");
    store.transaction([{ type: "Add", object: "f" }]);
    store.resync();
    store.bookmark("2");
    assert.deepEqual(calls, [
      ["add", "a"],
      ["update", "b"],
      ["delete", "c"],
      ["get", "d"],
      ["replace", ["e"], "1"],
      ["transaction", [{ type: "Add", object: "f" }]],
      ["resync"],
      ["bookmark", "2"],
    ]);
    assert.deepEqual([store.size, [...store.values()], store.listKeys()], [2, ["x", "y"], ["k"]]);
    assert.deepEqual([store.has("k"), store.has("l"), store.lastStoreSyncResourceVersion()], [
      true,
      false,
      "7",
    ]);
  });

  it("can be the failing store of a reflector", async () => {
    const source = new FakeControllerSource();
    source.add(pod("web-1"));
    const reflector = new Reflector<KubernetesObject>(
      source,
      new FakeCustomStore<KubernetesObject>({
        replace: () => {
          throw new Error("disk full");
        },
      }),
      { logger: silentLogger },
    );
    await assert.rejects(reflector.listAndWatch(new AbortController().signal), /disk full/);
  });
});

it("FakeExpirationPolicy expires every entry except those of its keys", () => {
  const policy = new FakeExpirationPolicy(["default/web-1"]);
  const asPolicy: ExpirationPolicy<KubernetesObject> = policy;
  const store = newExpirationStore<KubernetesObject>(metaNamespaceKey, asPolicy);
  store.replace([pod("web-1"), pod("web-2")], "1");
  assert.deepEqual(store.list().map((object) => object.metadata?.name), ["web-1"]);
  policy.neverExpire.clear();
  assert.equal(store.has("default/web-1"), false);
});
