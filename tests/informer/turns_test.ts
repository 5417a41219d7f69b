/**
 * No turn of the event loop works on more than so many objects, whatever happens to a long
 * list. Nothing here measures time: the clock does not advance, so a turn is over after
 * `turnObjects` objects, and what is done in it is counted.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  metaNamespaceKey,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import type { ListerWatcher, WatchEvent } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";
import { ObjectHolding } from "../../src/store/holding.ts";
import { ListNotifications } from "../../src/informer/list_application.ts";
import { Processor } from "../../src/informer/processor.ts";
import { nextTurn } from "../../src/util/clock.ts";
import { finish } from "../../src/util/turns.ts";

const MANY = 3_000;
const TURN_OBJECTS = 50;
/** A turn may ask for an object's key more than once: to compare, to look it up, to notify. */
const MOST_PER_TURN = 8 * TURN_OBJECTS;

interface Item extends KubernetesObject {
  readonly node: string;
}

function items(version: number, count = MANY): Item[] {
  return Array.from({ length: count }, (_, i) => ({
    metadata: { name: `item-${i}`, uid: `uid-${i}`, resourceVersion: String(version + i) },
    node: `node-${i % 7}`,
  }));
}

/** Lists the given objects, and sends the given events. Knows nothing of an intake: all of it is raw. */
class Source implements ListerWatcher<Item> {
  items: Item[] = items(1);
  version = 10_000;
  #wake = () => {};
  #events: WatchEvent<Item>[] = [];

  list() {
    return Promise.resolve({
      metadata: { resourceVersion: String(this.version) },
      items: structuredClone(this.items),
    });
  }

  watch(options: { sendInitialEvents?: boolean }) {
    if (options.sendInitialEvents) return Promise.reject(new Error("not here"));
    const next = () => new Promise<void>((resolve) => this.#wake = resolve);
    const taken = () => this.#events.splice(0);
    return Promise.resolve((async function* () {
      for (;;) {
        const events = taken();
        if (events.length === 0) await next();
        else yield events;
      }
    })());
  }

  send(...events: WatchEvent<Item>[]): void {
    this.#events.push(...events);
    this.#wake();
  }

  modify(name: string): Item {
    const object: Item = {
      metadata: { name, uid: `uid-${name.slice(5)}`, resourceVersion: String(++this.version) },
      node: "moved",
    };
    this.send({ type: "MODIFIED", object });
    return object;
  }

  relist(all: Item[]): void {
    this.version += 10_000;
    this.items = all;
    const status = { kind: "Status", status: "Failure", code: 410, reason: "Expired" };
    this.send({ type: "ERROR", object: status } as never);
  }
}

/** Counts what is done with objects between two turns of the event loop. */
class TurnCounter {
  #now = 0;
  most = 0;
  total = 0;

  did(): void {
    this.total++;
    this.most = Math.max(this.most, ++this.#now);
  }

  /** Waits until something is so, and starts to count again in every turn. */
  async until(isSo: () => boolean, what: string): Promise<void> {
    for (let turns = 0; !isSo(); turns++) {
      assert.ok(turns < 20_000, `${what} does not come`);
      this.#now = 0;
      await nextTurn();
    }
  }
}

function newRig(options: Partial<SharedIndexInformerOptions<Item, "byNode">> = {}) {
  const counter = new TurnCounter();
  const clock = new FakeClock();
  const source = new Source();
  const informer = new SharedIndexInformer<Item, "byNode">(source, {
    indexers: {
      byNode: (item) => {
        counter.did();
        return [item.node];
      },
    },
    keyFunc: (object) => {
      counter.did();
      return metaNamespaceKey(object);
    },
    turnObjects: TURN_OBJECTS,
    clock,
    logger: silentLogger,
    reflector: { random: () => 0 },
    ...options,
  });
  return { counter, clock, source, informer };
}

/** Folds what it receives, and blocks in the first call until it is released. */
class Handler {
  readonly known = new Map<string, Item>();
  readonly #gate: Promise<void>;
  release = () => {};
  calls = 0;

  constructor(isStalled: boolean) {
    this.#gate = new Promise((resolve) => this.release = resolve);
    if (!isStalled) this.release();
  }

  onAdd(object: Item): void | Promise<void> {
    assert.ok(!this.known.has(object.metadata!.name!));
    return this.#took(object);
  }

  onUpdate(oldObject: Item, object: Item): void | Promise<void> {
    assert.equal(this.known.get(object.metadata!.name!), oldObject);
    return this.#took(object);
  }

  onDelete({ key }: { key: string }): void {
    assert.ok(this.known.delete(key));
    this.calls++;
  }

  #took(object: Item): void | Promise<void> {
    this.known.set(object.metadata!.name!, object);
    if (++this.calls === 1) return this.#gate;
  }
}

/** Lets stalled handlers go in the end, whatever happens: an informer that stops waits for them. */
function releasing(handlers: Handler[]): Disposable {
  return { [Symbol.dispose]: () => handlers.forEach(({ release }) => release()) };
}

describe("SharedIndexInformer: no turn is long", () => {
  for (const storage of ["objects", "encoded"] as const) {
    it(`when a list is stored that a transform changes (${storage})`, async () => {
      const { counter, informer } = newRig({
        storage: storage === "encoded" ? shortTexts() : undefined,
        transform: (item) => {
          counter.did();
          return { ...item, node: `${item.node}-b` };
        },
      });
      await using _running = informer.start();
      await counter.until(() => informer.hasSynced(), "the list");
      assert.equal(informer.indexer.countByIndex("byNode", "node-3-b"), 429);
      assert.ok(counter.total >= 2 * MANY, `${counter.total}`);
      assert.ok(counter.most <= MOST_PER_TURN, `${counter.most} in one turn`);
    });

    it(`when an index function throws for one object of a relist, and an observer is there (${storage})`, async () => {
      const { counter, clock, source, informer } = newRig({
        storage: storage === "encoded" ? shortTexts() : undefined,
        indexers: {
          byNode: (item) => {
            if (item.node === "broken") throw new Error("no such node");
            return [item.node];
          },
        },
      });
      const changes: number[] = [];
      informer.observe((event) => event.type === "replaced" && changes.push(event.changes.length));
      await using _running = informer.start();
      await counter.until(() => informer.hasSynced(), "the list");
      counter.most = 0;
      source.relist(items(5_000).map((item, i) => i === 7 ? { ...item, node: "broken" } : item));
      await nextTurn();
      const moving = clock.advance(2_000);
      await counter.until(() => informer.indexer.lastStoreSyncResourceVersion() === "20000", "the relist");
      await moving;
      assert.deepEqual(changes, [MANY, MANY - 1]);
      assert.equal(informer.indexer.getByKey("item-7")?.metadata?.resourceVersion, "8");
      assert.ok(counter.most <= MOST_PER_TURN, `${counter.most} in one turn`);
    });
  }

  it("when changes come behind a first list that handlers have not taken, and a relist behind that", async () => {
    const { counter, clock, source, informer } = newRig();
    const handlers = [new Handler(true), new Handler(true), new Handler(false)];
    const registrations = handlers.map((handler) => informer.addEventHandler(handler));
    await using _running = informer.start();
    using _stalled = releasing(handlers);
    await counter.until(() => informer.hasSynced(), "the list");
    await counter.until(() => handlers[2].calls >= MANY, "the quick handler");
    counter.most = 0;
    for (let i = 0; i < 100; i++) source.modify(`item-${i * 30}`);
    await counter.until(() => informer.indexer.countByIndex("byNode", "moved") === 100, "the changes");
    assert.ok(counter.most <= MOST_PER_TURN, `${counter.most} in one turn, of changes`);
    assert.equal(registrations[0].backlog, MANY - 1, "one for each object that waits");
    counter.most = 0;
    source.relist(items(30_000, MANY - 5).slice(5));
    await nextTurn();
    const moving = clock.advance(2_000);
    await counter.until(() => informer.indexer.lastStoreSyncResourceVersion() === "20100", "the relist");
    await moving;
    assert.equal(informer.indexer.size, MANY - 10);
    assert.ok(counter.most <= MOST_PER_TURN, `${counter.most} in one turn, of the relist`);
    for (const { release } of handlers) release();
    await counter.until(() => registrations.every(({ backlog }) => backlog === 0), "the end");
    for (const { known } of handlers) assert.equal(known.size, MANY - 10);
    // An add or an update of each stored object; the one that it
    // had received was deleted; four came and went.
    assert.equal(handlers[0].calls, 1 + (MANY - 10) + 1);
    await counter.until(() => registrations.every((registration) => registration.hasSynced()), "synced");
  });

  it("when everything is handed out again, to handlers that take it and to one that does not", async () => {
    const { counter, clock, informer } = newRig({ resyncPeriodMs: 10_000 });
    const handlers = [new Handler(true), new Handler(false)];
    for (const handler of handlers) informer.addEventHandler(handler);
    await using _running = informer.start();
    using _stalled = releasing(handlers);
    await counter.until(() => informer.hasSynced(), "the list");
    await counter.until(() => handlers[1].calls === MANY, "the quick handler");
    counter.most = 0;
    const moving = clock.advance(10_000);
    await counter.until(() => handlers[1].calls === 2 * MANY, "the resync");
    await moving;
    assert.ok(counter.most <= MOST_PER_TURN, `${counter.most} in one turn`);
    handlers[0].release();
    await counter.until(() => handlers[0].calls >= MANY + 1, "the stalled handler");
  });

  it("when a handler joins late, while a list is stored too", async () => {
    const { counter, clock, source, informer } = newRig();
    await using _running = informer.start();
    await counter.until(() => informer.hasSynced(), "the list");
    counter.most = 0;
    const late = new Handler(false);
    informer.addEventHandler(late);
    await counter.until(() => late.calls === MANY, "the late handler");
    source.relist(items(30_000));
    await nextTurn();
    const moving = clock.advance(2_000);
    const inBetween: Handler[] = [];
    await counter.until(() => {
      const handler = new Handler(inBetween.length % 2 === 0);
      if (counter.total % 3 === 0 && inBetween.length < 10) {
        informer.addEventHandler(handler);
        inBetween.push(handler);
      }
      return informer.indexer.lastStoreSyncResourceVersion() === "20000";
    }, "the relist");
    await moving;
    assert.ok(counter.most <= MOST_PER_TURN, `${counter.most} in one turn`);
    for (const { release } of inBetween) release();
    const isCurrent = ({ known }: Handler) =>
      known.size === MANY && [...known].every(([key, item]) => informer.indexer.getByKey(key) === item);
    await counter.until(() => [late, ...inBetween].every(isCurrent), "the end");
  });

  for (const storage of ["objects", "encoded"] as const) {
    it(`when indices are added in turns, and they are there as one (${storage})`, async () => {
      const { counter, source, informer } = newRig({
        storage: storage === "encoded" ? shortTexts() : undefined,
      });
      await using _running = informer.start();
      await counter.until(() => informer.hasSynced(), "the list");
      counter.most = 0;
      let isDone = false;
      const byName = (item: Item) => {
        counter.did();
        return [item.metadata!.name!];
      };
      const adding = informer.addIndexersInTurns({ byName }).then((wider) => {
        isDone = true;
        return wider;
      });
      source.modify("item-2999");
      await counter.until(() => {
        const names = Object.keys(informer.indexer.getIndexers());
        assert.equal(names.includes("byName"), isDone);
        return isDone;
      }, "the index");
      const { indexer } = await adding;
      assert.equal(indexer.listIndexFuncValues("byName").length, MANY);
      assert.ok(counter.most <= MOST_PER_TURN, `${counter.most} in one turn`);
    });
  }
});

describe("SharedIndexInformer.addIndexersInTurns", () => {
  it("are not added where a name is taken, one throws, or the informer stops", async () => {
    const { counter, informer } = newRig();
    const running = informer.start();
    await counter.until(() => informer.hasSynced(), "the list");
    await assert.rejects(informer.addIndexersInTurns({ byNode: () => [] }), { code: "IndexerConflict" });
    const throwing = informer.addIndexersInTurns({
      broken: ({ metadata }) => {
        if (metadata?.name === "item-2500") throw new Error("no");
        return [];
      },
    });
    await assert.rejects(throwing, { code: "IndexFunc" });
    const late = informer.addIndexersInTurns({ byName: ({ metadata }) => [metadata!.name!] });
    const stopping = running.stop();
    await assert.rejects(late, { code: "InformerState" });
    await stopping;
    await assert.rejects(informer.addIndexersInTurns({ other: () => [] }), { code: "InformerState" });
    assert.deepEqual(Object.keys(informer.indexer.getIndexers()), ["byNode"]);
  });
});

describe("Processor.prepareList", () => {
  it("is handed out as it is where a list that was to be merged with it cannot be", async () => {
    const clock = new FakeClock();
    let isBroken = false;
    const processor = new Processor<Item>({
      holding: new ObjectHolding((object) => {
        if (isBroken && metaNamespaceKey(object) === "item-2") throw new Error("no key any more");
        return metaNamespaceKey(object);
      }),
      resyncCheckPeriodMs: 0,
      clock,
      logger: silentLogger,
      name: "items",
    });
    const handler = new Handler(true);
    processor.add(handler, { resyncPeriodMs: 0, mailbox: { limit: 1 } }, []);
    const all = items(1, 5);
    processor.distributeList(new ListNotifications({ isInInitialList: true }, all));
    await clock.advance(0);
    assert.equal(handler.calls, 1);
    isBroken = true;
    const again = new ListNotifications<Item>({ isInInitialList: false });
    for (const item of all) again.push(item, item);
    assert.throws(() => finish(processor.prepareList(again, 1)), /no key any more/);
    processor.dropPrepared();
    handler.release();
    await clock.advance(0);
    assert.equal(handler.calls, 5);
    await processor.stop();
  });
});

describe("Processor.add", () => {
  it("makes a handler that leaves turns of the event loop to others between its calls", async () => {
    const clock = new FakeClock();
    const processor = new Processor<Item>({
      holding: new ObjectHolding(metaNamespaceKey),
      resyncCheckPeriodMs: 0,
      clock,
      logger: silentLogger,
      name: "items",
    });
    let calls = 0;
    processor.add({ onAdd: () => void calls++ }, { resyncPeriodMs: 0 }, items(1));
    const first = nextTurn().then(() => calls);
    for (let i = 0; i < 10 && calls < MANY; i++) await clock.advance(0);
    assert.equal(calls, MANY);
    assert.ok(await first < MANY);
    await processor.stop();
  });
});
