import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { MergedInformer } from "@listwatch/cache/hono";
import type { StoreEvent } from "@listwatch/cache/informer";
import { decodeMergedVersion, encodeMergedVersion } from "../../../src/meta/merged_version.ts";
import type { MergedStore } from "../../../src/hono/content/merged_informer.ts";
import { fieldIndex, fieldPathOf } from "../../../src/store/index_func.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";

const partsIn = (version: string) => decodeMergedVersion(version)?.parts;

function merge(informers: readonly FakeInformer[], by?: "cluster"): MergedInformer {
  const sources = informers.map((informer, i) => ({ name: `s${i}`, informer }));
  return new MergedInformer(sources, by && { by });
}

/** What an observer of it receives. */
function observed(merged: MergedInformer) {
  const seen: string[] = [];
  const end = merged.observe((event: StoreEvent<unknown>) => {
    if (event.type === "bookmark") seen.push(`bookmark ${partsIn(event.resourceVersion)}`);
    else if (event.type === "replaced") {
      const changes = event.changes.map(({ type, key }) => `${type} ${key}`);
      seen.push(`replaced ${partsIn(event.resourceVersion)}: ${changes}`);
    } else seen.push(`${event.type} ${event.key}`);
  });
  return { seen, end };
}

describe("MergedInformer, its sources,", () => {
  it("have no content and no version before it is observed, and both at once then", () => {
    const merged = merge([FakeInformer.with([object("shop/a", 3)], 10), new FakeInformer()]);
    assert.deepEqual(partsIn(merged.indexer.lastStoreSyncResourceVersion()), ["0", "0"]);
    assert.deepEqual(merged.indexer.listKeys(), []);
    const { seen } = observed(merged);
    assert.deepEqual(partsIn(merged.indexer.lastStoreSyncResourceVersion()), ["10", "0"]);
    assert.deepEqual([merged.indexer.listKeys(), seen], [["shop/a"], []]);
  });

  it("have objects that observers see as the whole shows them", () => {
    const [first, second] = [FakeInformer.with([], 10), FakeInformer.with([], 20)];
    const merged = merge([first, second], "cluster");
    const seen: (string | undefined)[] = [];
    const end = merged.observe((event) => {
      if ("object" in event) seen.push(event.object.metadata?.name);
      if (event.type === "updated") seen.push(event.oldObject.metadata?.name);
    });
    second.put(object("a/x", 21));
    second.put(object("a/x", 22));
    second.remove("a/x", 23);
    assert.deepEqual(seen, Array(4).fill("s1.x"));
    end();
  });

  it("are taken as one list each once they have content, also where only their state says so", () => {
    const late = [new FakeInformer(), new FakeInformer(), new FakeInformer()];
    const listeners = new Set<() => void>();
    Object.assign(late[2], {
      onStatus: (listener: () => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    });
    for (const [i, informer] of late.entries()) {
      informer.indexer.replace([object(`shop/${i}`, i + 1)], `${10 + i}`);
    }
    const merged = merge(late);
    late[0].synced = true;
    assert.equal(merged.hasSynced(), false);
    assert.deepEqual(merged.indexer.listKeys(), []);
    const { seen } = observed(merged);
    assert.deepEqual(merged.indexer.listKeys(), ["shop/0"]);
    late[1].synced = true;
    assert.equal(merged.hasSynced(), false);
    assert.deepEqual(seen.splice(0), ["replaced 10,11,0: added shop/1"]);
    const phases: string[] = [];
    const unlisten = merged.onStatus(({ phase }) => void phases.push(phase));
    late[2].synced = true;
    late[2].phase = "watching";
    for (const listener of listeners) listener();
    assert.deepEqual(seen.splice(0), ["replaced 10,11,12: added shop/2"]);
    assert.deepEqual(phases, ["idle"]);
    unlisten();
    assert.equal(listeners.size, 0);
    assert.equal(merged.hasSynced(), true);
    assert.deepEqual(seen, []);
  });

  it("are restored while some have content, and not all have synced", () => {
    const informers = [new FakeInformer(), new FakeInformer()];
    const restored = { is: false };
    Object.assign(informers[0], { isRestored: () => restored.is });
    const merged = merge(informers);
    observed(merged);
    assert.equal(merged.isRestored(), false);
    restored.is = true;
    assert.equal(merged.isRestored(), true);
    for (const informer of informers) informer.synced = true;
    assert.equal(merged.isRestored(), false);
  });

  it("are followed as long as it has an observer, and each observer ends once", () => {
    const informer = FakeInformer.with([object("shop/a", 3)], 10);
    const merged = merge([informer]);
    const [first, second] = [observed(merged), observed(merged)];
    assert.equal(informer.observers.size, 1);
    first.end();
    first.end();
    informer.put(object("shop/b", 11));
    assert.deepEqual([first.seen, second.seen], [[], ["added shop/b", "bookmark 11"]]);
    second.end();
    assert.equal(informer.observers.size, 0);
    informer.put(object("shop/c", 11));
    informer.remove("shop/b", 12);
    assert.equal(merged.hasSynced(), true);
    const third = observed(merged);
    assert.deepEqual(merged.indexer.listKeys().sort(), ["shop/a", "shop/c"]);
    // An end that was called before ends no later observer.
    second.end();
    informer.remove("shop/a", 13);
    assert.deepEqual(third.seen, ["deleted shop/a", "bookmark 13"]);
    third.end();
  });

  it("have the state of the first that runs and does not watch, and the longest silence", () => {
    const informers = [new FakeInformer(), new FakeInformer(), new FakeInformer()];
    const merged = merge(informers);
    const phaseOf = (...phases: string[]) => {
      for (const [i, phase] of phases.entries()) informers[i].phase = phase;
      return merged.status();
    };
    assert.equal(phaseOf("watching", "listing", "idle").phase, "listing");
    assert.equal(phaseOf("stopped", "watching", "idle").phase, "idle");
    assert.equal(phaseOf("stopped", "watching", "watching").phase, "watching");
    assert.equal(phaseOf("stopped", "stopped", "stopped").phase, "stopped");
    informers[0].lag = 5;
    informers[1].lag = 7;
    assert.equal(merged.lagMs(), undefined);
    informers[2].lag = 0;
    assert.equal(merged.lagMs(), 7);
  });

  it("have versions that no other merge has: not of other names, nor of clusters", () => {
    const informers = [FakeInformer.with([], 10), FakeInformer.with([], 20)];
    const shards = merge(informers);
    const clusters = merge(informers, "cluster");
    observed(shards);
    observed(clusters);
    const version = shards.indexer.lastStoreSyncResourceVersion();
    assert.deepEqual(shards.partsOf(version), ["10", "20"]);
    assert.equal(clusters.partsOf(version), undefined);
    assert.equal(shards.partsOf(clusters.indexer.lastStoreSyncResourceVersion()), undefined);
    // Made up: it has the layout, and one source more or less.
    const { layout } = decodeMergedVersion(version)!;
    for (const parts of [["10"], ["10", "20", "30"]]) {
      assert.equal(shards.partsOf(encodeMergedVersion({ layout, parts })), undefined);
    }
    assert.deepEqual(shards.partsOf("15"), ["15", "15"]);
    assert.equal(clusters.partsOf("15"), undefined);
    assert.equal(shards.sourceOf("s1.web"), undefined);
    assert.equal(clusters.sourceOf("s1.web")?.informer, informers[1]);
    assert.equal(clusters.sourceOf("web"), undefined);
  });

  it("are no part of it before their first list is whole, which comes object by object", () => {
    const [first, second] = [FakeInformer.with([], 10), new FakeInformer()];
    const merged = merge([first, second]);
    const { seen } = observed(merged);
    second.put(object("shop/a", 3));
    assert.deepEqual([merged.indexer.listKeys(), seen], [[], []]);
    second.synced = true;
    second.put(object("shop/b", 4));
    assert.deepEqual(merged.indexer.listKeys().sort(), ["shop/a", "shop/b"]);
    assert.deepEqual(seen, ["replaced 10,4: added shop/a,added shop/b"]);
  });

  it("may lack events as long as one of them is only proven to be at its version", () => {
    const informers = [FakeInformer.with([object("shop/a", 3)], 10), FakeInformer.with([], 20)];
    const merged = merge(informers);
    const seen: unknown[] = [];
    merged.observe((event) => {
      if (event.type === "bookmark") seen.push("byState" in event ? event.byState : "all");
    });
    const [first, second] = informers;
    first.bookmark(15, { byState: true });
    second.put(object("shop/b", 21));
    assert.deepEqual(seen.splice(0), [true, true]);
    first.relist([object("shop/a", 3)], 15);
    second.put(object("shop/b", 22));
    assert.deepEqual(seen.splice(0), ["all"]);
    first.bookmark(16, { byState: true });
    first.put(object("shop/a", 17));
    assert.deepEqual(seen.splice(0), [true, "all"]);
  });

  it("have indices together: those that all of them have, and of clusters those of shown names alone", () => {
    const indexers = {
      byNode: ({ node }: TestObject) => typeof node === "string" ? [node] : [],
      byName: fieldIndex<TestObject>("metadata.name"),
    };
    const of = (...objects: TestObject[]) => FakeInformer.with(objects, 10, indexers);
    const first = of(object("shop/a", 3, { node: "n1" }), object("shop/b", 4, { node: "n1" }));
    const second = of(object("shop/a", 5, { node: "n1" }), object("shop/c", 6, { node: "n2" }));
    const third = FakeInformer.with([], 10, { byNode: indexers.byNode });
    for (const by of [undefined, "cluster"] as const) {
      const merged = merge([first, second], by);
      const store = merged.indexer as MergedStore;
      assert.deepEqual(store.indexKeys("byNode", "n1"), []);
      assert.equal(store.size, 0);
      observed(merged);
      const expected = by ? ["shop/s0.a", "shop/s0.b", "shop/s1.a"] : ["shop/a", "shop/b"];
      assert.deepEqual(store.indexKeys("byNode", "n1"), expected);
      assert.deepEqual([store.countByIndex("byNode", "n1"), store.size], [3, 4]);
      assert.deepEqual([...store.indexValueCounts("byNode")], [["n1", 3], ["n2", 1]]);
      const found = store.getIndexers();
      assert.deepEqual(Object.keys(found), ["byNode", "byName"]);
      assert.equal(fieldPathOf(found.byName as never), by ? undefined : "metadata.name");
      const held = store.held.getByKey(expected[0]) as never;
      assert.deepEqual([found.byNode(held), found.byName(held)], [["n1"], ["a"]]);
      assert.deepEqual(found.byNode({} as never), []);
    }
    assert.deepEqual(Object.keys((merge([first, third]).indexer as MergedStore).getIndexers()), ["byNode"]);
  });

  it("are 1 to 999, with names of their own; those of clusters are parts of names", () => {
    const source = (name: string) => ({ name, informer: new FakeInformer() });
    const many = (count: number) => Array.from({ length: count }, (_, i) => source(`s${i}`));
    new MergedInformer(many(999));
    for (const count of [0, 1_000]) {
      assert.throws(
        () => new MergedInformer(many(count)),
        /^TypeError: Cannot merge .* informers: give 1 to 999$/,
      );
    }
    assert.throws(() => new MergedInformer([source("a"), source("a")]), /two of them are named "a"$/);
    new MergedInformer([source("The first shard")]);
    for (const name of ["The first", "", "a.b", "-a", "a-", "a".repeat(64)]) {
      assert.throws(
        () => new MergedInformer([source(name)], { by: "cluster" }),
        /Cannot merge a cluster of the name/,
      );
    }
    new MergedInformer([source("a"), source("0-b"), source("a".repeat(63))], { by: "cluster" });
    const inner = { name: "inner", informer: merge([new FakeInformer()]) };
    assert.throws(() => new MergedInformer([inner]), /Cannot merge "inner", which is merged itself/);
  });

  it("show of an object that several of them have the latest, and after its end the next one that has come as far", () => {
    const informers = [[5, 12], [7, 15], [9, 9]].map(([version, position]) =>
      FakeInformer.with([object("shop/a", version)], position)
    );
    const merged = merge(informers);
    const { seen } = observed(merged);
    const version = () => merged.indexer.getByKey("shop/a")?.metadata?.resourceVersion;
    assert.equal(version(), "9");
    informers[2].remove("shop/a", 10);
    assert.deepEqual([seen.splice(0), version()], [["updated shop/a", "bookmark 12,15,10"], "7"]);
    informers[1].remove("shop/a", 16);
    assert.deepEqual([seen.splice(0), version()], [["deleted shop/a", "bookmark 12,16,10"], undefined]);
    assert.deepEqual(merged.indexer.listKeys(), []);
    informers[0].bookmark(15);
    assert.deepEqual([seen.splice(0), version()], [["bookmark 15,16,10"], undefined]);
    informers[0].bookmark(16);
    assert.deepEqual([seen.splice(0), version()], [["added shop/a", "bookmark 16,16,10"], "5"]);
    informers[0].bookmark(17);
    assert.deepEqual(seen.splice(0), ["bookmark 17,16,10"]);
    informers[0].remove("shop/a", 18);
    assert.deepEqual([seen, version()], [["deleted shop/a", "bookmark 18,16,10"], undefined]);
  });
});
