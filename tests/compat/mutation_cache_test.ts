import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  DeletedFinalStateUnknown,
  type DeletedObject,
  deletionHandlingMetaNamespaceKey,
  type KubernetesObject,
} from "@listwatch/cache";
import { MutationCache, type MutationCacheOptions, NoIndexerError } from "@listwatch/cache/compat";
import { ExplicitKey, newIndexer, newStore } from "@listwatch/cache/store";
import { FakeClock } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";
import { named, newRig, text } from "../informer/rig.ts";

function at(
  resourceVersion: string,
  options: { uid?: string; app?: string; name?: string } = {},
): KubernetesObject {
  const { uid, app, name = "a" } = options;
  return { metadata: { name, resourceVersion, ...(uid && { uid }), ...(app && { labels: { app } }) } };
}

function deleted(object: KubernetesObject): DeletedObject<KubernetesObject> {
  return { finalStateUnknown: false, key: object.metadata!.name!, object };
}

function newCache(options: MutationCacheOptions<KubernetesObject, "byApp"> = {}) {
  const store = newIndexer<KubernetesObject, "byApp">(deletionHandlingMetaNamespaceKey, {
    byApp: (object) => [object.metadata?.labels?.app ?? ""],
  });
  const clock = new FakeClock();
  const log = new LogRecorder();
  const cache = new MutationCache<KubernetesObject, "byApp">(store, {
    includeAdds: "untilStored",
    indexer: store,
    clock,
    logger: log,
    ...options,
  });
  const get = (key = "a") => {
    const object = cache.getByKey(key);
    return object === undefined ? undefined : text(object);
  };
  return { store, clock, log, cache, get };
}

describe("MutationCache", () => {
  it("returns the newer of what is stored and what was written", () => {
    const { store, cache, get } = newCache();
    store.add(at("5"));
    cache.mutation(at("9"));
    assert.equal(get(), "a@9");
    store.update(at("10"));
    assert.equal(get(), "a@10");
  });

  it("compares resourceVersions as numbers, however long", () => {
    const { store, cache, get } = newCache();
    store.add(at("9"));
    cache.mutation(at("18446744073709551616"));
    assert.equal(get(), "a@18446744073709551616");
    store.update(at("18446744073709551617"));
    assert.equal(get(), "a@18446744073709551617");
  });

  it("takes a missing resourceVersion for 0, and leading zeros for nothing", () => {
    const { store, cache, get } = newCache();
    store.add(at("0"));
    cache.mutation(named("a"));
    assert.equal(get(), "a@0");
    cache.mutation(at("1"));
    assert.equal(get(), "a@1");
    store.update(named("a"));
    assert.equal(get(), "a@1");
    cache.mutation(at("002"));
    assert.equal(get(), "a@002");
    cache.mutation(at("3"));
    assert.equal(get(), "a@3");
  });

  it("ignores a write that is older than the one it has", () => {
    const { store, cache, get } = newCache();
    store.add(at("1"));
    cache.mutation(at("9"));
    cache.mutation(at("8"));
    assert.equal(get(), "a@9");
  });

  it("forgets a write when its time is over", () => {
    const { store, clock, cache, get } = newCache({ ttlMs: 1_000 });
    store.add(at("1"));
    cache.mutation(at("9"));
    clock.jump(1_000);
    assert.equal(get(), "a@9");
    clock.jump(1);
    assert.equal(get(), "a@1");
  });

  it("returns what is stored where that cannot be compared", () => {
    const { store, cache } = newCache();
    cache.mutation(at("1"));
    store.add(new ExplicitKey("a") as KubernetesObject);
    assert.equal(cache.getByKey("a"), store.getByKey("a"));
  });

  it("remembers 100 writes for five minutes by default, from the last news of each on", () => {
    const { clock, cache, get } = newCache();
    for (let i = 0; i < 101; i++) cache.mutation(at("1", { name: `web-${i}` }));
    assert.deepEqual([get("web-0"), get("web-1")], [undefined, "web-1@1"]);
    clock.jump(200_000);
    cache.mutation(at("1", { name: "web-1" }));
    clock.jump(100_000);
    assert.deepEqual([get("web-1"), get("web-2")], ["web-1@1", "web-2@1"]);
    clock.jump(1);
    assert.deepEqual([get("web-1"), get("web-2")], ["web-1@1", undefined]);
  });

  it("forgets the write that was not used for longest when there are too many", () => {
    const { cache, get } = newCache({ maxSize: 2 });
    cache.mutation(at("1", { name: "a" }));
    cache.mutation(at("1", { name: "b" }));
    get("a");
    cache.mutation(at("1", { name: "c" }));
    assert.deepEqual([get("a"), get("b"), get("c")], ["a@1", undefined, "c@1"]);
  });

  it("forgets no other write when one is replaced", () => {
    const { cache, get } = newCache({ maxSize: 2 });
    for (const [name, version] of [["a", "1"], ["b", "2"], ["b", "3"], ["b", "4"]]) {
      cache.mutation(at(version, { name }));
    }
    assert.deepEqual([get("a"), get("b")], ["a@1", "b@4"]);
  });

  it("must have room for something", () => {
    assert.throws(() => newCache({ maxSize: 0 }), RangeError);
  });

  it("does not return what is not stored, without includeAdds", () => {
    const { cache, get } = newCache({ includeAdds: false });
    cache.mutation(at("9"));
    assert.equal(get(), undefined);
    assert.deepEqual(cache.byIndex("byApp", ""), []);
  });

  it("returns what is not stored once, as client-go does, with includeAdds", () => {
    const { cache, get } = newCache({ includeAdds: true });
    cache.mutation(at("9"));
    assert.deepEqual(cache.byIndex("byApp", "").map(text), ["a@9"]);
    assert.equal(get(), "a@9");
    assert.equal(get(), undefined);
  });

  it("returns an object that cannot be compared on every read, as client-go does, with includeAdds", () => {
    const store = newStore<string>(String);
    const cache = new MutationCache<string>(store, { includeAdds: true, keyFunc: String });
    cache.mutation("a");
    for (let i = 0; i < 2; i++) assert.equal(cache.getByKey("a"), "a");
  });

  it("returns what is not stored until it is, with includeAdds untilStored", () => {
    const { store, cache, get } = newCache();
    cache.mutation(at("9"));
    assert.deepEqual([get(), get()], ["a@9", "a@9"]);
    store.add(at("9"));
    store.delete(at("9"));
    assert.equal(get(), "a@9");
    store.add(at("9"));
    assert.equal(get(), "a@9");
    store.delete(at("9"));
    assert.equal(get(), undefined, "the store had caught up when it was last asked");
  });

  it("finds by index what is stored in its newer state, and what is not stored in its own", () => {
    const { store, cache } = newCache();
    store.add(at("1", { app: "web" }));
    store.add(at("2", { name: "b", app: "web" }));
    cache.mutation(at("9", { app: "db" }));
    cache.mutation(at("3", { name: "c", app: "web" }));
    assert.deepEqual(cache.byIndex("byApp", "web").map(text).sort(), ["a@9", "b@2", "c@3"]);
  });

  it("finds a written object under its new value besides its stored one", () => {
    const { store, cache } = newCache();
    store.add(at("1", { app: "web" }));
    cache.mutation(at("9", { app: "db" }));
    assert.deepEqual(cache.byIndex("byApp", "db").map(text), ["a@9"]);
  });

  it("finds a written object once that stays under its value", () => {
    const { store, cache } = newCache();
    store.add(at("1", { app: "web" }));
    cache.mutation(at("9", { app: "web" }));
    assert.deepEqual(cache.byIndex("byApp", "web").map(text), ["a@9"]);
  });

  it("passes over a write that the index function cannot take", () => {
    const store = newIndexer<KubernetesObject, "byApp">(deletionHandlingMetaNamespaceKey, {
      byApp: (object) => [object.metadata!.labels!.app],
    });
    const log = new LogRecorder();
    const options = { indexer: store, includeAdds: true, logger: log };
    const cache = new MutationCache<KubernetesObject, "byApp">(store, options);
    cache.mutation(at("1", { name: "bare" }));
    cache.mutation(at("1", { app: "web" }));
    assert.deepEqual(cache.byIndex("byApp", "web").map(text), ["a@1"]);
    assert.match(log.of("debug")[0], /Cannot index bare by byApp/);
  });

  it("needs an indexer to find by index, and an index that is there", () => {
    const { store } = newCache();
    const without = new MutationCache<KubernetesObject, "byApp">(store);
    assert.throws(() => without.byIndex("byApp", "web"), NoIndexerError);
    const { cache } = newCache();
    assert.throws(() => cache.byIndex("nope" as "byApp", "web"), { code: "IndexNotFound" });
  });

  it("logs an object that has no key, and continues", () => {
    const { cache, log } = newCache();
    cache.mutation("no object" as never);
    cache.onAddOrUpdate("no object" as never);
    assert.equal(log.of("warn").length, 2);
    assert.match(log.of("warn")[0], /Cannot remember a write: object has no meta/);
  });
});

describe("MutationCache.handler", () => {
  it("forgets a write that is not newer, and keeps one that is", () => {
    for (const [version, kept] of [["8", true], ["9", false], ["10", false]] as const) {
      const { cache, get } = newCache();
      cache.mutation(at("9"));
      cache.onAddOrUpdate(at(version));
      assert.equal(get() !== undefined, kept, `the store saw ${version}`);
    }
  });

  it("forgets a write to an object that was deleted: the same instance, or an older one", () => {
    const cases = [
      { name: "same instance", object: at("8", { uid: "1" }), kept: false },
      { name: "another instance, deleted later", object: at("10", { uid: "2" }), kept: false },
      { name: "another instance, deleted before", object: at("8", { uid: "2" }), kept: true },
    ];
    for (const { name, object, kept } of cases) {
      const { cache, get } = newCache();
      cache.mutation(at("9", { uid: "1" }));
      cache.onDelete(deleted(object));
      assert.equal(get() !== undefined, kept, name);
    }
  });

  it("ignores late news of an object that was deleted", () => {
    const { cache, get } = newCache();
    cache.onDelete(deleted(at("10", { uid: "1" })));
    for (const late of [at("9", { uid: "1" }), at("9", { uid: "0" }), at("10"), at("11", { uid: "1" })]) {
      cache.mutation(late);
      assert.equal(get(), undefined, text(late));
    }
    assert.deepEqual(cache.byIndex("byApp", ""), []);
  });

  it("takes a write to a new instance after a delete", () => {
    const { cache, get } = newCache();
    cache.onDelete(deleted(at("10", { uid: "1" })));
    cache.mutation(at("11", { uid: "2" }));
    assert.equal(get(), "a@11");
  });

  it("never returns the tombstone, even when the store holds an older object", () => {
    const { store, cache, get } = newCache();
    store.add(at("9"));
    cache.onDelete(deleted(at("10")));
    assert.equal(get(), "a@9");
    store.update(at("11"));
    assert.equal(get(), "a@11");
  });

  it("goes by the last known state where the final one is unknown, and ignores a delete without any", () => {
    const { cache, get } = newCache();
    cache.mutation(at("9", { uid: "1" }));
    cache.onDelete(new DeletedFinalStateUnknown<KubernetesObject>("a", undefined));
    assert.equal(get(), "a@9");
    cache.onDelete(new DeletedFinalStateUnknown("a", at("7", { uid: "1" })));
    assert.equal(get(), undefined);
  });

  it("receives the changes of the informer that it is added to", async () => {
    await using rig = newRig();
    const cache = new MutationCache<KubernetesObject>(rig.informer.indexer, {
      includeAdds: "untilStored",
      clock: rig.clock,
    });
    rig.informer.addEventHandler(cache.handler);
    await rig.start();
    const written = { metadata: { name: "a", uid: "1", resourceVersion: "1" } };
    cache.mutation(written);
    assert.equal(cache.getByKey("a"), written);
    rig.source.add({ metadata: { name: "a", uid: "1" } });
    rig.source.delete({ metadata: { name: "a", uid: "1" } });
    await rig.settle();
    assert.equal(cache.getByKey("a"), undefined);
    cache.mutation(written);
    assert.equal(cache.getByKey("a"), undefined);
  });
});
