import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Clock,
  type KubernetesObject,
  SharedIndexInformer,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import { type ListerWatcher, type ListPage, realClock } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";
import { nextTurn } from "../../src/util/clock.ts";
import type { Cache } from "../../src/store/cache.ts";
import { finish, finishInTurns, type Steps } from "../../src/util/turns.ts";

const MANY = 5_000;

interface Item extends KubernetesObject {
  readonly node: string;
}

function items(version: number, count: number = MANY): Item[] {
  return Array.from({ length: count }, (_, i) => ({
    metadata: { name: `item-${i}`, uid: `uid-${i}`, resourceVersion: String(version + i) },
    node: `node-${i % 7}`,
  }));
}

/** A clock by which every look at it is a millisecond: work is given up after a fixed number of steps. */
function impatientClock(): Clock {
  let looks = 0;
  return { ...realClock, monotonicNow: () => realClock.now() + looks++ };
}

/** Lists what it is given, the first time and whenever its watch is ended, and watches nothing. */
function sourceOf(pages: Item[][]): ListerWatcher<Item> & { endWatch(): void; readonly listed: number } {
  let end = () => {};
  let listed = 0;
  return {
    list: (_options, context) => {
      const page = pages[listed++];
      const taken = context.intake === undefined ? page : page.map((item) => context.intake!(item) as Item);
      const list: ListPage<Item> = { metadata: { resourceVersion: String(listed * 100_000) }, items: taken };
      return Promise.resolve(list);
    },
    watch: (options) => {
      if (options.sendInitialEvents) return Promise.reject(new Error("not here"));
      const ended = new Promise<void>((resolve) => end = resolve);
      return Promise.resolve((async function* () {
        await ended;
        yield [
          {
            type: "ERROR",
            object: { kind: "Status", status: "Failure", code: 410, reason: "Expired" },
          } as never,
        ];
      })());
    },
    endWatch: () => end(),
    get listed() {
      return listed;
    },
  };
}

describe("SharedIndexInformer with a list of many objects", () => {
  for (const storage of ["objects", "encoded"] as const) {
    it(`is stored in several turns, and seen as one step (${storage})`, async () => {
      const source = sourceOf([items(1)]);
      const informer = new SharedIndexInformer<Item, "byNode">(source, {
        storage: storage === "encoded" ? shortTexts() : undefined,
        indexers: { byNode: (item) => [item.node] },
        clock: impatientClock(),
        logger: silentLogger,
      });
      const sizes = new Set<number>();
      let turns = 0;
      informer.observe((event) => event.type === "replaced" && sizes.add(informer.indexer.size));
      await using _running = informer.start();
      while (!informer.hasSynced()) {
        sizes.add(informer.indexer.size);
        sizes.add(informer.indexer.byIndex("byNode", "node-0").length * 7);
        turns++;
        await nextTurn();
      }
      assert.ok(turns > 5, `${turns} turns`);
      assert.deepEqual(
        [...sizes].filter((size) => size !== 0 && size < MANY),
        [],
        "no reader has seen a part of it",
      );
      assert.equal(informer.indexer.size, MANY);
      assert.equal(informer.indexer.countByIndex("byNode", "node-3"), 714);
    });
  }

  it("is stored whole, also when the informer is stopped in its middle", async () => {
    const informer = new SharedIndexInformer<Item>(sourceOf([items(1)]), {
      clock: impatientClock(),
      logger: silentLogger,
    });
    const running = informer.start();
    for (let i = 0; i < 8; i++) await nextTurn();
    const before = informer.indexer.size;
    await running.stop();
    assert.equal(before, 0, "this test must stop it in time");
    assert.equal(informer.indexer.size, informer.hasSynced() ? MANY : 0);
  });

  it("leaves what the next list has quarantined as the one before has it, which is still being stored", async () => {
    const source = sourceOf([items(1), items(1).slice(1)]);
    const { list } = source;
    source.list = async (options, context) => {
      const page = await list(options, context);
      const first = { reason: "bad", path: "", key: "item-0", resourceVersion: "200000" };
      return source.listed === 2 ? { ...page, quarantined: [first] } : page;
    };
    source.watch = () => Promise.reject(new Error("refused"));
    let isStored = false;
    const informer = new SharedIndexInformer<Item>(source, {
      clock: impatientClock(),
      logger: silentLogger,
      reflector: { useWatchList: false, backoff: { nextDelayMs: () => source.listed < 2 ? 0 : 60_000 } },
    });
    informer.observe(() => isStored = true);
    const deleted: string[] = [];
    informer.addEventHandler({ onDelete: ({ key }) => void deleted.push(key) });
    await using _running = informer.start();
    while (source.listed < 2) await nextTurn();
    assert.equal(isStored, false, "the first one must be on its way to the store");
    await informer.waitForVersion("200000");
    assert.equal(informer.indexer.getByKey("item-0")?.metadata?.resourceVersion, "1");
    assert.equal(informer.indexer.size, MANY);
    assert.deepEqual(deleted, []);
  });

  it("takes in what is written to the store in its middle", () => {
    const informer = new SharedIndexInformer<Item, "byNode">(sourceOf([]), {
      indexers: { byNode: (item) => [item.node] },
    });
    const store = informer.indexer as unknown as Cache<Item, never>;
    const objects = new Map(items(1, 1_000).map((item) => [item.metadata!.name!, item]));
    const replacement = store.held.newReplacement({ objects, resourceVersion: "7" });
    const steps = replacement.prepare();
    for (let i = 0; i < 4; i++) steps.next();
    informer.indexer.add({ metadata: { name: "other" }, node: "node-0" });
    const widened = informer.addIndexers({ byName: (item) => [item.metadata!.name!] });
    finish(steps);
    assert.equal(replacement.commit(), true);
    assert.equal(informer.indexer.size, 1_000);
    assert.equal(informer.indexer.lastStoreSyncResourceVersion(), "7");
    assert.equal(widened.indexer.countByIndex("byName", "item-999"), 1);
    assert.equal(informer.indexer.countByIndex("byNode", "node-0"), 143);
  });

  for (const storage of ["objects", "encoded"] as const) {
    it(`has every index that is added while it is stored (${storage})`, async () => {
      const first = items(1);
      const changed = items(200_000).map((item, i) => i % 3 === 0 ? item : structuredClone(first[i]));
      const source = sourceOf([items(1), changed]);
      const errors: string[] = [];
      const informer = new SharedIndexInformer<Item, "byNode">(source, {
        storage: storage === "encoded" ? shortTexts() : undefined,
        indexers: { byNode: (item) => [item.node] },
        clock: {
          ...impatientClock(),
          setTimeout: (call, ms) => realClock.setTimeout(call, ms > 5_000 ? ms : 0),
        },
        logger: { ...silentLogger, error: (message) => void errors.push(message) },
        reflector: { random: () => 0 },
      });
      await using _running = informer.start();
      await informer.synced();
      source.endWatch();
      let [added, since] = [0, 0];
      const isStored = () => informer.indexer.lastStoreSyncResourceVersion() === "200000";
      for (let turns = 0; !isStored() && errors.length === 0 && turns < 20_000; turns++) {
        await nextTurn();
        if (source.listed < 2 || since++ % 4 !== 0 || added === 12) continue;
        informer.addIndexers({ [`more-${added++}`]: (item: Item) => [item.metadata!.resourceVersion!] });
      }
      assert.deepEqual(errors, []);
      assert.equal(isStored(), true);
      assert.equal(informer.indexer.size, MANY);
      const { indexer } = informer as unknown as SharedIndexInformer<Item, string>;
      for (const name of Object.keys(indexer.getIndexers())) {
        if (name !== "byNode") assert.equal(indexer.listIndexFuncValues(name).length, MANY, name);
        for (const value of indexer.listIndexFuncValues(name)) {
          assert.ok(indexer.countByIndex(name as "byNode", value) > 0);
        }
      }
      assert.equal(indexer.countByIndex("byNode", "node-3"), 714);
      assert.ok(Object.keys(indexer.getIndexers()).length > 6, "this test must add indices in its middle");
    });
  }

  it("keeps the objects that have not changed, and lets go of the new ones as they come", async () => {
    const changed = items(1);
    changed[3] = { ...changed[3], metadata: { ...changed[3].metadata, resourceVersion: "9999" } };
    const again = structuredClone(items(1));
    const source = sourceOf([items(1), again, changed]);
    const transformed: string[] = [];
    const clock = new FakeClock();
    const informer = new SharedIndexInformer<Item>(source, {
      clock,
      logger: silentLogger,
      notifyUnchanged: false,
      transform: (item) => {
        transformed.push(item.metadata!.name!);
        return { ...item, node: "changed" };
      },
      reflector: { random: () => 0 },
    });
    const updates: string[] = [];
    informer.addEventHandler({ onUpdate: (_old, item) => void updates.push(item.metadata!.name!) });
    await using _running = informer.start();
    await clock.advance(0);
    const first = informer.indexer.list();
    assert.equal(transformed.splice(0).length, MANY);
    const relisted = async (version: string) => {
      source.endWatch();
      await clock.advance(60_000);
      assert.equal(informer.indexer.lastStoreSyncResourceVersion(), version);
    };
    await relisted("200000");
    assert.deepEqual(informer.indexer.list().map((item, i) => item === first[i]), first.map(() => true));
    assert.deepEqual([transformed.splice(0).length, updates], [MANY, []]);
    await relisted("300000");
    assert.deepEqual([transformed.splice(0).length, updates], [MANY, ["item-3"]]);
  });
});

describe("finishInTurns", () => {
  function* counting(to: number, done: number[]): Steps {
    for (let i = 0; i < to; i++) {
      done.push(i);
      yield;
    }
  }

  it("is finished in one turn, or in several, whole", async () => {
    const done: number[] = [];
    finish(counting(3, done));
    assert.deepEqual(done, [0, 1, 2]);
    let isOver = false;
    const clock = impatientClock();
    const work = finishInTurns(counting(9, done), {
      clock,
      signal: new AbortController().signal,
      turnMs: 2,
      turnObjects: 1_000,
    });
    work.then(() => isOver = true);
    await Promise.resolve();
    assert.ok(!isOver && done.length < 12);
    await work;
    assert.equal(done.length, 12);
  });

  it("is finished at once when it is to stop", async () => {
    const done: number[] = [];
    const work = finishInTurns(counting(50, done), {
      clock: impatientClock(),
      signal: AbortSignal.abort(),
      turnMs: 2,
      turnObjects: 1_000,
    });
    assert.equal(done.length, 50);
    await work;
  });
});
