import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  SharedInformerFactory,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import type { StoreEvent } from "@listwatch/cache/informer";
import type { NewHolding } from "../../src/store/holding.ts";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { TextObject } from "../../src/text/lazy_object.ts";

/** More than are kept decoded. */
const MANY = 400;

interface Pod extends KubernetesObject {
  readonly spec: Readonly<Record<string, unknown>>;
}

/** An informer with encoded storage, of what an API server holds. */
async function newWorld<I extends string = never>(
  options: SharedIndexInformerOptions<Pod, I> = {},
  { before = () => {} }: { readonly before?: (informer: SharedIndexInformer<Pod, I>) => void } = {},
) {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  const names = Array.from({ length: MANY }, (_, i) => `web-${i}`);
  for (const name of names) server.create("v1/pods", pod(name, { nodeName: `node-${name.length}` }));
  const source = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource<Pod>(
    "v1/pods",
  );
  const informer = new SharedIndexInformer<Pod, I>(source, {
    storage: shortTexts(),
    clock,
    logger: silentLogger,
    ...options,
    reflector: { random: () => 0, ...options.reflector },
  });
  const events: StoreEvent<Pod>[] = [];
  informer.observe((event) => events.push(event));
  before(informer);
  const running = informer.start();
  await settle();
  async function settle(ms = 10) {
    await clock.advance(ms);
  }
  return {
    server,
    informer,
    events,
    names,
    settle,
    /** Has everything listed again, after a change that is missed. */
    async relist(change: () => void) {
      const { length } = events;
      server.closeWatches();
      change();
      server.compact();
      await settle(60_000);
      assert.ok(events.slice(length).some(({ type }) => type === "replaced"), "it was listed again");
    },
    [Symbol.asyncDispose]: () => running.stop(),
  };
}

function nameOf(object: KubernetesObject): string {
  return object.metadata?.name ?? "";
}

for (const useWatchList of [true, false]) {
  const reflector = { useWatchList };
  describe(`an informer with encoded storage, ${useWatchList ? "streaming" : "listing"}`, () => {
    it("hands every object to handlers, observers and readers as it came, also when it is no longer hot", async () => {
      const added: Pod[] = [];
      await using world = await newWorld({ reflector }, {
        before(informer) {
          informer.addEventHandler({ onAdd: (object) => void added.push(object) });
        },
      });
      const { events, informer, names, server } = world;
      const stored = (name: string) => server.get("v1/pods", `default/${name}`);
      assert.deepEqual(added.map(nameOf).sort(), [...names].sort());
      for (const object of [...added, ...informer.indexer.list(), ...informer.indexer.values()]) {
        assert.deepEqual(object, stored(nameOf(object)));
      }
      const [replaced] = events;
      assert.ok(replaced.type === "replaced");
      for (const change of replaced.changes) assert.deepEqual(change.object, stored(nameOf(change.object)));
      assert.equal(replaced.changes.length, MANY);
      assert.equal(informer.indexer.getByKey("default/web-7"), informer.indexer.getByKey("default/web-7"));
    });

    it("asks transform and index functions once about an object of a list, index functions not again when it did not change", async () => {
      const transformed: string[] = [];
      const indexed: string[] = [];
      await using world = await newWorld({
        reflector,
        transform: (object) => {
          transformed.push(nameOf(object));
          return { ...object, metadata: { ...object.metadata, managedFields: undefined } };
        },
        indexers: {
          byNode: (object) => {
            indexed.push(nameOf(object));
            return [String(object.spec.nodeName)];
          },
        },
      });
      const { informer, names, server } = world;
      assert.deepEqual(transformed.splice(0).sort(), [...names].sort());
      assert.deepEqual(indexed.splice(0).sort(), [...names].sort());
      const received: string[] = [];
      informer.addEventHandler({ onUpdate: (_, object) => void received.push(nameOf(object)) });
      server.update("v1/pods", pod("web-7", { nodeName: "node-x" }));
      await world.settle();
      assert.deepEqual([transformed.splice(0), indexed.splice(0), received.splice(0)], [
        ["web-7"],
        ["web-7"],
        [
          "web-7",
        ],
      ]);
      await world.relist(() => server.create("v1/pods", pod("late", { nodeName: "node-x" })));
      assert.deepEqual([transformed.sort(), indexed], [[...names, "late"].sort(), ["late"]]);
      assert.deepEqual(informer.indexer.byIndex("byNode", "node-x").map(nameOf).sort(), ["late", "web-7"]);
      assert.equal(informer.indexer.byIndex("byNode", "node-6").length, 90);
    });

    it("keeps what a transform makes that is no JSON as it is, and runs it once", async () => {
      let count = 0;
      await using world = await newWorld({
        reflector,
        transform: (object) => {
          count++;
          return { ...object, spec: { ...object.spec, at: new Date(count) } };
        },
      });
      assert.equal(count, MANY);
      for (const object of world.informer.indexer.values()) assert.ok(object.spec.at instanceof Date);
    });

    it("quarantines what the transform throws for, once", async () => {
      await using world = await newWorld({
        reflector,
        transform: (object) => {
          if (nameOf(object) === "web-3") throw new Error("not this one");
          return object;
        },
      });
      assert.equal(world.informer.indexer.size, MANY - 1);
      assert.equal(world.informer.status().quarantined, 1);
    });

    it("freezes what it decodes, where objects are to be frozen", async () => {
      await using world = await newWorld({ reflector, freezeObjects: true });
      for (const object of world.informer.indexer.values()) {
        assert.ok(Object.isFrozen(object.metadata?.labels));
      }
    });
  });
}

describe("SharedIndexInformer with encoded storage: a list", () => {
  it("is encoded item by item while it arrives, and unchanged items are the ones that are held", async () => {
    const pages: unknown[][] = [];
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    for (const name of ["a", "b"]) server.create("v1/pods", pod(name));
    const pods = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource<Pod>(
      "v1/pods",
    );
    const informer = new SharedIndexInformer<Pod>({
      list: async (options, context) => {
        const page = await pods.list(options, context);
        pages.push(page.items);
        return page;
      },
      watch: (options, context) => pods.watch(options, context),
    }, { storage: shortTexts(), clock, logger: silentLogger, reflector: { useWatchList: false } });
    await using _ = informer.start();
    await clock.advance(10);
    server.closeWatches();
    server.update("v1/pods", pod("b", { labels: { changed: "yes" } }));
    server.compact();
    await clock.advance(60_000);
    const [[a, b], [sameA, otherB]] = pages;
    for (const item of [a, b, sameA, otherB]) assert.ok(item instanceof TextObject);
    assert.equal(sameA, a);
    assert.notEqual(otherB, b);
    assert.deepEqual(informer.indexer.getByKey("default/b")?.metadata?.labels, { changed: "yes" });
  });
});

describe("SharedIndexInformerOptions.storage", () => {
  it("is what the options of a factory say", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    for (let i = 0; i < MANY; i++) server.create("v1/pods", pod(`web-${i}`));
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const factory = new SharedInformerFactory(cluster, {
      informer: { storage: shortTexts(), clock, logger: silentLogger },
    });
    const { informer: { indexer }, lister } = factory.forResource("v1/pods");
    factory.start();
    await clock.advance(10);
    assert.equal(lister.list().length, MANY);
    const [first] = indexer.list();
    const others = indexer.listKeys().map((key) => indexer.getByKey(key));
    assert.notEqual(indexer.list()[0], first, "it was decoded again");
    assert.deepEqual(indexer.list()[0], first);
    assert.equal(others.length, MANY);
    await factory.shutdown();
  });

  it("is refused if it makes no holding", () => {
    const source = newCluster({ server: "http://in-memory" }).resource("v1/pods");
    assert.throws(
      () => new SharedIndexInformer(source, { storage: "encoded" as unknown as NewHolding }),
      /Cannot make a store with the storage "encoded": import and pass shortTexts\(\), or leave it out/,
    );
  });
});
