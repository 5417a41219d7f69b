import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Content } from "../../../src/hono/content/content.ts";
import { Readers } from "../../../src/hono/request/readers.ts";
import { type HasRoom, KeptFollowers } from "../../../src/hono/screens/followed_objects.ts";
import { Order } from "../../../src/hono/screens/orders.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import type { KubernetesObject } from "../../../src/meta/object.ts";
import { nextTurn } from "../../../src/util/clock.ts";
import { Pacer } from "../../../src/util/turns.ts";
import { FakeInformer, object } from "../fake_informer.ts";

const MINUTE_MS = 60_000;
const MOST_BYTES = 1e9;

/** Orders of a few objects, by the number in their names; how often all objects are read for them. */
function kept() {
  const clock = new FakeClock();
  const informer = FakeInformer.with([object("a/1", 1), object("a/3", 2)], 1_000);
  const content = new Content<KubernetesObject>(informer, { clock, capacity: 600, capacityBytes: 1e9 });
  const places = { maxRequests: 9, maxWatches: 9, maxWatchesPerClient: 9 };
  const readers = new Readers({ ...places, maxReaderBytes: MOST_BYTES, clock });
  const followers = new KeptFollowers({ readers, clock });
  let reads = 0;
  const refused = new Set<string | undefined>();
  const order = async (name: string, pacer: Pacer = new Pacer({ units: 1_000 })) => {
    const spec = {
      name,
      reads: undefined,
      textOf: ({ metadata }: KubernetesObject) => {
        if (refused.has(metadata!.name)) throw new Error(`${metadata!.name} cannot be read`);
        return `${metadata!.labels?.text ?? metadata!.name}\0`;
      },
    };
    const make = (hasRoom: HasRoom) =>
      new Order<KubernetesObject>(content, spec, { selection: undefined, hasRoom });
    const found = followers.get<Order<KubernetesObject>>(content, { name, selection: undefined, make });
    if (found.isBehind) reads++;
    await found.ready(pacer);
    return found;
  };
  return { clock, informer, content, readers, followers, order, refused, reads: () => reads };
}

describe("KeptFollowers", () => {
  it("read along while they have no readers, also when more comes than the log keeps", async () => {
    const { informer, content, order, reads } = kept();
    await order("a");
    for (let i = 0; i < 2_000; i++) informer.put(object(i % 2 === 0 ? "a/2" : `b/${i}`, 1_001 + i));
    assert.ok(content.log.window.tail > 1_000);
    const state = (await order("a")).present();
    assert.deepEqual([reads(), state.length, state.resourceVersion], [1, 1_003, "3000"]);
    const names = Array.from({ length: 4 }, (_, i) => content.holding.head(state.value(i)).key);
    assert.deepEqual(names, ["a/1", "b/1", "b/1001", "b/1003"]);
  });

  it("are read no further once all callers have left, where no window shows them", async () => {
    const { informer, order } = kept();
    informer.relist(Array.from({ length: 5_000 }, (_, i) => object(`c/${i}`, 2_001 + i)), 9_000);
    let left = false;
    const leaving = new Pacer({ units: 1_000, hasLeft: () => left });
    const reading = order("a", leaving);
    await nextTurn();
    left = true;
    const found = await reading;
    assert.deepEqual([found.isBehind, found.isReading, found.bytes], [true, false, 0]);
    await assert.rejects(() => order("a", leaving), /the client has left/);
    // Who has read them before does not wait for them now.
    left = false;
    await order("a");
    informer.relist(Array.from({ length: 5_000 }, (_, i) => object(`c/${i}`, 9_001 + i)), 15_000);
    const again = order("a", leaving);
    await nextTurn();
    left = true;
    assert.equal((await again).isBehind, true);
    left = false;
    const both = [order("a", leaving), order("a")];
    left = true;
    await Promise.all(both);
    assert.deepEqual([found.isBehind, found.present().length], [false, 5_000]);
    informer.relist([object("d/1", 15_001)], 20_000);
    found.windows = 1;
    await order("a", leaving);
    assert.equal(found.present().length, 1);
  });

  it("are read in one turn at last, where more comes in each turn than the log keeps", async () => {
    const { informer, order } = kept();
    informer.relist(Array.from({ length: 3_000 }, (_, i) => object(`c/${i}`, 2_001 + i)), 6_000);
    let turns = 0;
    let version = 6_001;
    const next = () => {
      if (++turns > 300) return Promise.reject(new Error("it is read again and again"));
      for (let i = 0; i < 601; i++) informer.put(object("c/0", version++));
      return Promise.resolve();
    };
    const { length } = await order("a", new Pacer({ units: 1_000, turns: { isBusy: false, next } }));
    assert.equal(length, 3_000);
    assert.ok(turns > 0);
  });

  it("have what has come, changed and left while they were read", async () => {
    const { informer, content, order } = kept();
    informer.relist(Array.from({ length: 3_000 }, (_, i) => object(`c/${i}`, 2_001 + i)), 6_000);
    let turns = 0;
    const next = () => {
      if (turns++ === 0) {
        informer.put(object("c/0", 6_001, { labels: { text: "0" } }));
        informer.put(object("c/x", 6_002, { labels: { text: "00" } }));
        informer.remove("c/1", 6_003);
      }
      return Promise.resolve();
    };
    const state = (await order("a", new Pacer({ units: 1_000, turns: { isBusy: false, next } }))).present();
    assert.deepEqual([state.length, state.resourceVersion], [3_000, "6003"]);
    const keys = [0, 1, 2].map((i) => content.holding.head(state.value(i)).key);
    assert.deepEqual(keys, ["c/0", "c/x", "c/10"]);
    assert.ok(turns > 0);
  });

  it("are behind until all is read, whatever comes before", async () => {
    const { informer, order } = kept();
    await assert.rejects(order("a", new Pacer({ units: 1_000, hasLeft: () => true })), /has left/);
    informer.put(object("a/2", 1_001));
    assert.equal((await order("a")).present().length, 3);
  });

  it("count the work of following a change once, not for each reader", async () => {
    const { informer, order } = kept();
    const followed = await order("a");
    followed.takeUnits();
    informer.put(object("a/2", 1_001));
    followed.present();
    assert.ok(followed.takeUnits() > 0);
    assert.equal(followed.takeUnits(), 0);
  });

  it("are read again where too much comes at once", async () => {
    const { informer, order, reads } = kept();
    await order("a");
    const list = Array.from({ length: 3_000 }, (_, i) => object(`c/${i}`, 2_001 + i));
    informer.relist(list, 9_000);
    assert.equal((await order("a")).present().length, 3_000);
    assert.equal(reads(), 2);
  });

  it("keep what windows show, whatever else needs room, and count what is kept", async () => {
    const { clock, informer, readers, followers, order } = kept();
    const names = () => Array.from(followers.kept, ({ name }) => JSON.parse(name)[0]);
    const shown = await order("shown");
    shown.windows = 1;
    await order("other");
    readers.dropUnused();
    const most = MOST_BYTES - shown.bytes;
    assert.ok(readers.keep(most));
    assert.deepEqual(names(), ["shown"]);
    assert.equal(readers.keep(1), false);
    readers.unkeep(most);
    await clock.advance(60 * MINUTE_MS);
    readers.dropUnused();
    assert.deepEqual(names(), ["shown"]);
    shown.windows = 0;
    // The rows grow, and there is no room but their own.
    assert.ok(readers.keep(most));
    for (const name of ["a/5", "a/6"]) informer.put(object(name, 1_001));
    shown.present();
    readers.dropUnused();
    assert.deepEqual(names(), []);
    readers.unkeep(most);
    assert.equal(readers.keepSpare(MOST_BYTES + 1), false);
    assert.ok(readers.keepSpare(MOST_BYTES));
  });

  it("wait for room until others were read, and may be dropped", async () => {
    const { readers, followers, order } = kept();
    assert.ok(readers.keep(MOST_BYTES - 500));
    // Each has 210 bytes.
    const all = await Promise.all(["a", "b", "c", "d"].map((name) => order(name)));
    assert.deepEqual(all.map(({ length }) => length), [2, 2, 2, 2]);
    readers.dropUnused();
    assert.ok(followers.kept.size <= 3);
  });

  it("are not dropped while they are read, whatever needs room", async () => {
    const { informer, readers, followers, order } = kept();
    informer.relist(Array.from({ length: 3_000 }, (_, i) => object(`c/${i}`, 2_001 + i)), 6_000);
    const hadRoom: boolean[] = [];
    const next = async () => {
      await nextTurn();
      hadRoom.push(readers.keep(MOST_BYTES - 1_000));
    };
    await order("a", new Pacer({ units: 1_000, turns: { isBusy: false, next } }));
    assert.ok(hadRoom.length > 0 && !hadRoom.includes(true), String(hadRoom));
    assert.equal(followers.kept.size, 1);
  });

  it("do not wait for each other where both are half read and there is no more room", async () => {
    const { informer, readers, order } = kept();
    informer.relist(Array.from({ length: 3_000 }, (_, i) => object(`c/${i}`, 2_001 + i)), 6_000);
    assert.ok(readers.keep(MOST_BYTES - 300_000)); // either of them takes more than that
    const both = await Promise.all(["a", "b"].map((name) => order(name)));
    assert.deepEqual(both.map(({ length }) => length), [3_000, 3_000]);
  });

  it("count what is in them, whatever has come, changed and left", async () => {
    const { informer, order } = kept();
    const followed = await order("followed");
    const atFirst = followed.bytes;
    let version = 1_001;
    const put = (textOf: (i: number) => string) => {
      for (let i = 0; i < 300; i++) {
        informer.put(object(`b/${i}`, version++, { labels: { text: textOf(i) } }));
      }
      followed.present();
    };
    put(() => "short");
    const short = followed.bytes;
    put((i) => "x".repeat(5 + i));
    assert.equal(followed.bytes - short, (299 * 300) / 2);
    put((i) => "\u540d".repeat(5 + i)); // the characters of all places take two bytes then
    assert.ok(followed.bytes - short > (299 * 300) / 2 + 300 * 10);
    assert.equal(followed.bytes, (await order("read now")).bytes);
    for (let i = 0; i < 300; i++) informer.remove(`b/${i}`, version++);
    followed.present();
    assert.equal(followed.bytes, atFirst);
  });

  it("give back what has left them, while windows show them", async () => {
    const { informer, readers, order } = kept();
    const followed = await order("followed");
    followed.windows = 1;
    for (let i = 0; i < 10; i++) informer.put(object(`b/${i}`, 1_001 + i));
    followed.present();
    readers.dropUnused();
    const most = MOST_BYTES - followed.bytes;
    assert.equal(readers.keepSpare(most + 1), false);
    for (let i = 0; i < 10; i++) informer.remove(`b/${i}`, 1_101 + i);
    followed.present();
    readers.dropUnused();
    assert.equal(readers.keepSpare(most + 1), true);
  });

  it("leave no more than one that there was no room for", async () => {
    const { readers, followers, order } = kept();
    const most = MOST_BYTES - 100;
    assert.ok(readers.keep(most));
    for (const name of ["a", "b"]) assert.equal((await order(name)).length, 2);
    assert.deepEqual(Array.from(followers.kept, ({ name }) => JSON.parse(name)[0]), ["b"]);
    const shown = await order("b");
    shown.windows = 1;
    await assert.rejects(order("c"), { reason: "TooManyRequests" });
    shown.windows = 0;
    assert.equal((await order("c")).length, 2);
    assert.equal(followers.kept.size, 1);
    readers.unkeep(most);
    readers.dropUnused();
    assert.ok(readers.keepSpare(MOST_BYTES - 210));
  });

  it("do not read along where many follow: each is read again, in turns", async () => {
    const { informer, order, reads } = kept();
    for (let i = 0; i < 17; i++) await order(`${i}`);
    for (let i = 0; i < 2_000; i++) informer.put(object("a/2", 1_001 + i));
    assert.equal((await order("16")).present().length, 3);
    assert.equal(reads(), 18);
  });

  it("drop what was used least recently where readers need room", async () => {
    const { readers, followers, order } = kept();
    for (const name of ["a", "b", "a"]) await order(name);
    readers.dropUnused(); // it counts their bytes
    assert.ok(readers.keep(MOST_BYTES - 300)); // there is room for one of them
    assert.deepEqual(Array.from(followers.kept, ({ name }) => JSON.parse(name)[0]), ["a"]);
  });

  it("are made again once they were dropped, so that nothing keeps those in memory", async () => {
    const { content, readers, order } = kept();
    const first = await order("a");
    readers.dropUnused();
    assert.ok(readers.keep(MOST_BYTES));
    readers.unkeep(MOST_BYTES);
    assert.equal(content.log.along.size, 0);
    assert.notEqual(await order("a"), first);
    assert.equal(content.log.along.size, 1);
  });

  for (const count of [1, 600]) {
    it(`have what could not be read among ${count} changes once it can be`, async () => {
      const { informer, content, order, refused } = kept();
      await order("a");
      let woken = 0;
      content.log.along.add({ grown: () => woken++ });
      refused.add("2");
      for (let i = 0; i < count - 1; i++) informer.put(object(`b/${i + 10}`, 1_001 + i));
      informer.put(object("a/2", 2_000));
      informer.put(object("a/4", 2_001));
      assert.equal(woken, count + 1);
      const failing = async () => (await order("a")).present();
      await assert.rejects(failing, /cannot be read/);
      await assert.rejects(failing, /cannot be read/);
      refused.clear();
      const state = await failing();
      assert.deepEqual([state.length, state.resourceVersion], [count + 3, "2001"]);
      const keys = Array.from({ length: state.length }, (_, i) => content.holding.head(state.value(i)).key);
      assert.deepEqual(keys.filter((key) => key.startsWith("a/")), ["a/1", "a/2", "a/3", "a/4"]);
    });
  }

  it("keep the last sixty-four that no window shows, however many searches come within a minute", async () => {
    const { clock, content, readers, followers, order } = kept();
    const shown = await order("shown");
    shown.windows = 1;
    for (let i = 0; i < 200; i++) await order(`search ${i}`);
    await clock.advance(1_000);
    readers.dropUnused();
    assert.deepEqual([followers.kept.size, content.log.along.size], [65, 65]);
    const names = Array.from(followers.kept, ({ name }) => JSON.parse(name)[0]);
    assert.deepEqual([names[0], names[1], names[64]], ["shown", "search 136", "search 199"]);
  });

  it("drop what was not read for a quarter of an hour, and all but the last four after a minute", async () => {
    const { clock, content, readers, followers, order } = kept();
    for (let i = 0; i < 12; i++) await order(`order ${i}`);
    await clock.advance(MINUTE_MS);
    readers.dropUnused();
    assert.deepEqual([followers.kept.size, content.log.along.size], [4, 4]);
    assert.deepEqual(
      Array.from(followers.kept, ({ name }) => JSON.parse(name)[0]),
      [8, 9, 10, 11].map((i) => `order ${i}`),
    );
    await clock.advance(10 * MINUTE_MS);
    await order("order 9");
    await clock.advance(4 * MINUTE_MS);
    readers.dropUnused();
    assert.deepEqual([followers.kept.size, content.log.along.size], [1, 1]);
    await clock.advance(11 * MINUTE_MS);
    readers.dropUnused();
    assert.deepEqual([followers.kept.size, content.log.along.size], [0, 0]);
    // What was read within the minute is none of the four.
    for (const minutes of [1, 0]) {
      for (let i = 0; i < 4; i++) await order(`order ${minutes} ${i}`);
      await clock.advance(minutes * MINUTE_MS);
    }
    readers.dropUnused();
    assert.equal(followers.kept.size, 8);
    await clock.advance(60 * MINUTE_MS);
    // The time begins when the last window that shows them is closed.
    const shown = await order("shown");
    shown.windows = 1;
    await clock.advance(60 * MINUTE_MS);
    readers.dropUnused();
    shown.windows = 0;
    await clock.advance(14 * MINUTE_MS);
    readers.dropUnused();
    assert.equal(followers.kept.size, 1);
  });
});

type Taking = Order<KubernetesObject> & { bytes: number };

/** Followed objects that take so many bytes, in a window or not. */
function taking({ followers, content }: ReturnType<typeof kept>, bytes: number) {
  const name = `${followers.kept.size}`;
  const made = { bytes, windows: 0, isReading: false, grown() {} } as unknown as Taking;
  followers.get<Taking>(content, { name, selection: undefined, make: () => made });
  return made;
}

describe("KeptFollowers.mayShow", () => {
  it("lets a client have what it opens first, what others show, and as much more as is free", () => {
    const all = kept();
    const { followers } = all;
    const [shown, small, large] = [460e6, 200e6, 300e6].map((bytes) => taking(all, bytes));
    assert.equal(followers.mayShow(shown, "a"), true);
    shown.windows = 1;
    assert.equal(followers.mayShow(small, "a"), false, "with what it has, it is more than is free");
    assert.equal(followers.mayShow(small, "b"), true);
    small.windows = 1;
    large.bytes = 900e6;
    assert.equal(followers.mayShow(large, "c"), true, "its first ones may be more than is free");
    assert.equal(followers.mayShow(large, "b"), false);
    assert.equal(followers.mayShow(shown, "b"), true, "others show it");
    assert.equal(followers.mayShow(large, undefined), true);
    small.windows = 0;
    assert.equal(followers.mayShow(large, "b"), true, "it shows nothing now");
    assert.equal(followers.mayShow(large, undefined), true);
    [large.windows, small.bytes] = [1, 900e6];
    assert.equal(followers.mayShow(small, undefined), true, "clients that are not known are several");
    const dropped = taking(kept(), 1);
    assert.equal(followers.mayShow(dropped, "d"), false);
  });
});

describe("KeptFollowers.takeRows", () => {
  it("counts the rows of windows, and refuses a client another window where less is free than it has", () => {
    const { followers, readers } = kept();
    const take = (bytes: number, client: string | undefined, isNew = true) =>
      followers.takeRows(bytes, { client, isNew });
    assert.equal(take(600e6, "a"), true);
    assert.equal(take(300e6, "a"), false);
    assert.equal(take(300e6, "a", false), true, "the rows of its window may grow");
    assert.equal(take(50e6, undefined), true);
    assert.equal(take(20e6, undefined), true);
    assert.equal(take(100e6, "b"), false, "there is no room");
    for (const bytes of [600e6, 300e6]) assert.equal(take(-bytes, "a", false), true);
    assert.equal(take(-70e6, undefined, false), true);
    assert.equal(readers.keepSpare(MOST_BYTES), true, "all was given back");
    readers.unkeep(MOST_BYTES);
    assert.equal(take(900e6, "a"), true, "it has nothing");
  });
});

describe("Order.first", () => {
  it("has as many rows as are wanted, whichever batches they are in", async () => {
    const { informer, content } = kept();
    informer.relist(Array.from({ length: 3_000 }, (_, i) => object(`c/${i}`, 2_001 + i)), 6_000);
    const spec = {
      name: "a",
      reads: undefined,
      textOf: ({ metadata }: KubernetesObject) => metadata!.name!.padStart(5, "0"),
    };
    const order = new Order<KubernetesObject>(content, spec, { selection: undefined, hasRoom: () => true });
    const rows = (await order.first(2_000, new Pacer({ units: 1_000 })))!;
    assert.equal(rows.length, 3_000);
    const keys = [0, 1, 1_998, 1_999].map((i) => content.holding.head(rows.value(i)).key);
    assert.deepEqual(keys, ["c/0", "c/1", "c/1998", "c/1999"]);
  });

  it("has no rows of two histories, where another one begins while they are read", async () => {
    const { informer, content } = kept();
    informer.relist(Array.from({ length: 3_000 }, (_, i) => object(`c/${i}`, 2_001 + i)), 6_000);
    const spec = { name: "a", reads: undefined, textOf: ({ metadata }: KubernetesObject) => metadata!.name! };
    const order = new Order<KubernetesObject>(content, spec, { selection: undefined, hasRoom: () => true });
    let turns = 0;
    const next = () => {
      if (turns++ === 0) informer.relist([object("d/1", 3)], 500);
      return Promise.resolve();
    };
    const pacer = new Pacer({ units: 1_000, turns: { isBusy: false, next } });
    assert.equal(await order.first(10, pacer), undefined);
    assert.deepEqual([order.present().length, order.present().resourceVersion], [1, "500"]);
    assert.ok(turns > 0);
  });
});
