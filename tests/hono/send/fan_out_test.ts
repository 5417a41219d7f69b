import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey, silentLogger } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import {
  FanOut,
  type LogReader,
  MOST_GATHER_MS,
  type Recipient,
  SLICE_UNITS,
  Watchers,
} from "../../../src/hono/send/fan_out.ts";
import { Content } from "../../../src/hono/content/content.ts";
import type { LogEntry } from "../../../src/hono/content/log_history.ts";
import { newObjectView } from "../../../src/hono/send/view_text.ts";
import { newSelection, type Selection } from "../../../src/hono/content/selection.ts";
import { EntryViews, WatchGroups } from "../../../src/hono/send/watch_groups.ts";
import { parseLabelSelector } from "../../../src/meta/labels.ts";
import { newStatus, StatusError } from "../../../src/meta/status.ts";
import { parseResource } from "../../../src/meta/resource.ts";
import { ObjectHolding } from "../../../src/store/holding.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { nextTurn, settle } from "../../../src/util/clock.ts";
import { type ByteSink, PushedBody, type SinkUser } from "../../../src/protocol/server_sockets.ts";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import type { Json } from "../reading.ts";
import { readApi } from "../read_api.ts";

const PODS = "/api/v1/pods";
const WRITE_UNITS = 500;

/** A log whose watches each have `entries` to send, one by one. */
function sourceOf(fanOut: FanOut, count: number) {
  const log = { entries: 0, delivered: 0, passes: 0 };
  const recipients = Array.from({ length: count }, (): Recipient & { sent: number } => ({
    sent: 0,
    isQueued: false,
    deliver() {
      if (this.sent === log.entries) return false;
      this.sent = log.entries;
      log.delivered++;
      fanOut.units += WRITE_UNITS;
      return false;
    },
  }));
  const source = { recipients, passEnds: () => void log.passes++ };
  const grow = () => {
    log.entries++;
    fanOut.grown(source);
  };
  return { log, recipients, source, grow };
}

describe("FanOut", () => {
  it("lets the event loop turn after a slice, however many watches there are, so that ingest never waits longer", async () => {
    const clock = new FakeClock();
    const fanOut = new FanOut(clock);
    const { log, recipients, grow } = sourceOf(fanOut, 2_000);
    let most = 0;
    // The upstream: events in every turn, as a socket brings them; and a watch that opens.
    for (let event = 0; event < 200; event++) {
      const before = log.delivered;
      grow();
      grow();
      fanOut.ready({ isQueued: false, deliver: () => false });
      await nextTurn();
      most = Math.max(most, log.delivered - before);
      if (event % 10 === 0) void clock.advance(1);
    }
    assert.ok(most > 0 && most <= SLICE_UNITS / WRITE_UNITS + 1, `${most} writes in one turn`);
    await clock.advance(MOST_GATHER_MS);
    await settle();
    await clock.advance(MOST_GATHER_MS);
    assert.ok(recipients.every(({ sent }) => sent === 400));
    assert.equal(clock.pendingTimers, 0);
  });

  it("sends the first event after a quiet time in its turn, and gathers those of the rest after a large pass", async () => {
    const clock = new FakeClock();
    const { log, grow } = sourceOf(new FanOut(clock), 250);
    grow();
    await Promise.resolve();
    assert.equal(log.delivered, 250);
    assert.equal(clock.pendingTimers, 0, "no timer while nothing comes");
    grow();
    grow();
    await settle();
    assert.equal(log.delivered, 250);
    assert.equal(clock.pendingTimers, 1);
    // Twice the cost of the pass: 250 writes of 10 us.
    await clock.advance(5);
    assert.equal(log.delivered, 500, "both events at once");
    assert.equal(clock.pendingTimers, 0);
    await clock.advance(5);
    grow();
    await Promise.resolve();
    assert.equal(log.delivered, 750);
  });

  it("gathers for 25 ms at most, and not at all for few watches", async () => {
    const clock = new FakeClock();
    const many = sourceOf(new FanOut(clock), 20_000);
    many.grow();
    await settle();
    many.grow();
    await clock.advance(MOST_GATHER_MS);
    await settle();
    assert.equal(many.log.delivered, 40_000);
    const few = sourceOf(new FanOut(clock), 10);
    for (let i = 1; i <= 5; i++) {
      few.grow();
      await Promise.resolve();
      assert.equal(few.log.delivered, 10 * i);
    }
    assert.equal(clock.pendingTimers, 0);
  });

  it("lets a watch that continues on its own take turns with a pass, and forgets a log without watches", async () => {
    const clock = new FakeClock();
    const fanOut = new FanOut(clock);
    const { log, source, grow } = sourceOf(fanOut, 1_000);
    let pieces = 0;
    let passed = 0;
    const replay: Recipient = {
      isQueued: false,
      deliver() {
        fanOut.units += WRITE_UNITS;
        if (++pieces === 500) passed = log.delivered;
        return pieces < 500;
      },
    };
    grow();
    fanOut.ready(replay);
    fanOut.ready(replay);
    await settle();
    assert.equal(pieces, 500);
    assert.ok(Math.abs(passed - 500) <= 1, `${passed} watches of the pass meanwhile`);
    assert.equal(log.delivered, 1_000);
    grow();
    assert.equal(clock.pendingTimers, 1);
    fanOut.forget(source);
    assert.equal(clock.pendingTimers, 0);
  });

  it("lets the event loop turn four times between slices while each turn brings entries, and once otherwise", async () => {
    const turnsOf = async (isBusy: boolean) => {
      const { log, grow } = sourceOf(new FanOut(new FakeClock()), 3_000);
      grow();
      let turns = 0;
      for (; log.delivered < 3_000; turns++) {
        if (isBusy) grow();
        await nextTurn();
      }
      return turns;
    };
    const [quiet, busy] = [await turnsOf(false), await turnsOf(true)];
    assert.ok(busy > 3 * quiet && busy < 5 * quiet, `${busy} turns instead of ${quiet}`);
  });

  it("gathers what comes during a pass until it has rested, whatever else is sent meanwhile", async () => {
    const clock = new FakeClock();
    const fanOut = new FanOut(clock);
    const { log, grow } = sourceOf(fanOut, 1_000);
    let opened = 0;
    const open = () => {
      const deliver = () => {
        opened++;
        return false;
      };
      fanOut.ready({ isQueued: false, deliver });
    };
    let pieces = 0;
    const replay = () => {
      fanOut.units += WRITE_UNITS;
      return ++pieces < 2_000;
    };
    grow();
    await Promise.resolve();
    grow();
    open();
    fanOut.ready({ isQueued: false, deliver: replay });
    for (let turn = 0; pieces < 2_000 && turn < 10_000; turn++) await nextTurn();
    await settle();
    assert.deepEqual([log.delivered, log.passes, opened, clock.pendingTimers], [1_000, 1, 1, 1]);
    await clock.advance(19);
    open();
    await settle();
    assert.deepEqual([log.delivered, opened], [1_000, 2]);
    await clock.advance(1);
    await settle();
    assert.equal(log.delivered, 1_300, "those that had sent before the second entry came");
    await clock.advance(6);
    open();
    await settle();
    grow();
    await settle();
    assert.equal(log.delivered, 2_300, "other work makes no rest longer");
  });

  it("sends what comes before a small pass has ended, though nothing else comes", async () => {
    const fanOut = new FanOut(new FakeClock());
    const { log, grow } = sourceOf(fanOut, 2);
    const deliver = () => {
      fanOut.units += SLICE_UNITS;
      return false;
    };
    grow();
    fanOut.ready({ isQueued: false, deliver });
    await Promise.resolve();
    assert.equal(log.delivered, 1);
    grow();
    await settle();
    assert.equal(log.delivered, 3);
  });

  it("says of each log whether it has grown during a pass, whatever others have", async () => {
    const fanOut = new FanOut(new FakeClock());
    const { grow } = sourceOf(fanOut, 1);
    const grown: boolean[] = [];
    const deliver = () => {
      grow();
      return false;
    };
    const passEnds = (hasGrown: boolean) => void grown.push(hasGrown);
    fanOut.grown({ recipients: [{ isQueued: false, deliver }], passEnds });
    await settle();
    assert.deepEqual(grown, [false]);
  });

  it("continues a watch that has much to send, where no log grows", async () => {
    const fanOut = new FanOut(new FakeClock());
    let pieces = 0;
    const deliver = () => {
      fanOut.units += WRITE_UNITS;
      return ++pieces < 1_000;
    };
    fanOut.ready({ isQueued: false, deliver });
    await settle();
    assert.equal(pieces, 1_000);
  });
});

describe("FanOut.forget", () => {
  it("leaves the entries of other logs to be sent, and those of the same one that come later", async () => {
    const clock = new FakeClock();
    const fanOut = new FanOut(clock);
    const [one, other] = [sourceOf(fanOut, 250), sourceOf(fanOut, 250)];
    one.grow();
    await settle();
    one.grow();
    other.grow();
    fanOut.forget(one.source);
    await clock.advance(5);
    assert.deepEqual([one.log.delivered, other.log.delivered], [250, 250]);
    await clock.advance(5);
    one.grow();
    await settle();
    one.grow();
    fanOut.forget(one.source);
    one.grow();
    await clock.advance(5);
    assert.equal(one.log.delivered, 750);
  });
});

/** The watchers of a content, and watches that record what they are called for. */
function newWatchers() {
  const clock = new FakeClock();
  const informer = FakeInformer.with([], 1_000);
  const content = new Content<KubernetesObject>(informer, { clock, capacity: 100, capacityBytes: 1e6 });
  const watchers = new Watchers(content, { clock, fanOut: new FanOut(clock), heartbeatMs: 60_000 });
  const calls: string[] = [];
  const watch = (name: string, how: Partial<LogReader> = {}): LogReader => {
    const record = (what: string) => () => void calls.push(`${name} ${what}`);
    return {
      cursor: 0,
      wantsHeartbeat: false,
      endsAtRelist: false,
      isQueued: false,
      deliver: () => false,
      heartbeat: record("beats"),
      flush: record("flushes"),
      cut: record("is cut"),
      end: record("ends"),
      ...how,
    };
  };
  return { clock, informer, content, watchers, watch, called: () => calls.splice(0) };
}

describe("Watchers", () => {
  it("give a heartbeat to each watch that wants it, at the same time, and leave no timer after the last", async () => {
    const { clock, watchers, watch, called } = newWatchers();
    const [a, b, c] = [true, false, true].map((wantsHeartbeat, i) => watch("abc"[i], { wantsHeartbeat }));
    watchers.attach(a);
    watchers.attach(b);
    await clock.advance(30_000);
    watchers.attach(c);
    await clock.advance(30_000);
    assert.deepEqual(called(), ["a beats", "c beats"]);
    watchers.detach(a);
    watchers.detach(a);
    watchers.detach(b);
    await clock.advance(60_000);
    assert.deepEqual([called(), watchers.size], [["c beats"], 1]);
    watchers.detach(c);
    assert.equal(clock.pendingTimers, 0);
    watchers.attach(a);
    await clock.advance(60_000);
    assert.deepEqual(called(), ["a beats"]);
    watchers.detach(a);
  });

  it("have one timer where a heartbeat ends a watch, and another one begins", async () => {
    const { clock, watchers, watch } = newWatchers();
    const next = watch("next", { wantsHeartbeat: true });
    const replace = () => {
      watchers.detach(first);
      watchers.attach(next);
    };
    const first = watch("first", { wantsHeartbeat: true, heartbeat: replace });
    watchers.attach(first);
    await clock.advance(60_000);
    assert.equal(clock.pendingTimers, 1);
    watchers.detach(next);
    assert.equal(clock.pendingTimers, 0);
  });

  it("call caches above at once at news of the API server, every five seconds at most", async () => {
    const { clock, informer, watchers, watch, called } = newWatchers();
    const strict = { wantsHeartbeat: true, endsAtRelist: true };
    const all = [
      watch("cache", strict),
      watch("client", { wantsHeartbeat: true }),
      watch("strict client", { endsAtRelist: true }),
    ];
    informer.bookmark(1_001);
    for (const one of all) watchers.attach(one);
    informer.bookmark(1_002);
    informer.bookmark(1_002);
    assert.deepEqual(called(), ["cache beats"]);
    await clock.advance(4_999);
    informer.bookmark(1_003);
    assert.deepEqual(called(), []);
    await clock.advance(1);
    informer.bookmark(1_004);
    assert.deepEqual(called(), ["cache beats"]);
    for (const one of all) watchers.detach(one);
  });

  it("keep entries up to the end of the pass in which they came, and no longer", () => {
    const { informer, content, watchers, watch } = newWatchers();
    const one = watch("one");
    watchers.attach(one);
    const kept = () => content.log.window.entries.length;
    for (let i = 1; i <= 300; i++) informer.put(object("shop/web", 1_000 + i));
    watchers.passEnds(true);
    assert.equal(kept(), 300);
    for (let i = 1; i <= 50; i++) informer.put(object("shop/web", 2_000 + i));
    watchers.passEnds(true);
    assert.equal(kept(), 100);
    for (let i = 1; i <= 300; i++) informer.put(object("shop/web", 3_000 + i));
    watchers.passEnds(true);
    assert.equal(kept(), 300);
    watchers.passEnds(false);
    assert.equal(kept(), 100);
    watchers.detach(one);
    assert.deepEqual([watchers.recipients.size, watchers.isSending], [0, false]);
  });

  it("cut off what has not sent the entries that are dropped, and at a list what needs each event", () => {
    const { content, informer, watchers, watch, called } = newWatchers();
    const all = [watch("slow", { cursor: 4 }), watch("quick", { cursor: 5, endsAtRelist: true })];
    for (const one of all) watchers.attach(one);
    watchers.trimmed(5);
    assert.deepEqual(called(), ["slow is cut"]);
    informer.relist([], 1_001);
    assert.deepEqual(called(), ["quick flushes", "quick is cut"]);
    informer.relist([], 7); // a restored server
    assert.deepEqual(called(), ["slow flushes", "quick flushes", "slow is cut", "quick is cut"]);
    const leaving = watch("leaving", { flush: () => watchers.detach(leaving) });
    watchers.attach(leaving);
    informer.relist([], 3);
    assert.deepEqual(called().filter((call) => call.startsWith("leaving")), []);
    content.log.close();
    assert.deepEqual(called(), ["slow ends", "quick ends"]);
    watchers.attach(watch("late"));
    assert.deepEqual([called(), watchers.size], [["late ends"], 2]);
  });
});

describe("Watchers.detach", () => {
  it("leaves no timer for entries that gather, once the last watch has left", async () => {
    const clock = new FakeClock();
    const fanOut = new FanOut(clock);
    const informer = FakeInformer.with([], 1_000);
    const content = new Content<KubernetesObject>(informer, { clock, capacity: 100, capacityBytes: 1e6 });
    const watchers = new Watchers(content, { clock, fanOut, heartbeatMs: 60_000 });
    let delivered = 0;
    const reader: LogReader = {
      cursor: 0,
      wantsHeartbeat: false,
      endsAtRelist: false,
      isQueued: false,
      deliver: () => {
        delivered++;
        fanOut.units += SLICE_UNITS; // so much that the fan-out rests after it
        return false;
      },
      heartbeat: () => {},
      flush: () => {},
      cut: () => {},
      end: () => {},
    };
    watchers.attach(reader);
    informer.put(object("shop/a", 1_001));
    await settle();
    informer.put(object("shop/a", 1_002));
    await settle();
    assert.deepEqual([delivered, clock.pendingTimers], [1, 1]);
    watchers.detach(reader);
    assert.equal(clock.pendingTimers, 0);
  });
});

function apiOf(objects: readonly TestObject[], options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const informer = FakeInformer.with(objects, 1_000);
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    allowAnonymous: true,
    logger: silentLogger,
    clock,
    ...options,
  });
  return { api, informer, clock };
}

/** A server's response that takes shared pieces. */
class Sink implements ByteSink {
  text = "";
  ended = false;
  queuedBytes = 0;
  isSlow = false;
  readonly pieces: Uint8Array[] = [];
  readonly user: SinkUser;

  constructor(response: Response) {
    const { body } = response;
    assert.ok(body instanceof PushedBody);
    this.user = body.pushTo(this);
  }

  write(piece: Uint8Array): boolean {
    assert.ok(!this.ended);
    this.pieces.push(piece);
    this.text += new TextDecoder().decode(piece);
    if (this.isSlow) this.queuedBytes += piece.byteLength;
    return !this.isSlow;
  }

  drain(): void {
    this.queuedBytes = 0;
    this.user.onDrained();
  }

  end(): void {
    this.ended = true;
  }

  destroy(): void {
    this.ended = true;
  }

  get events(): Json[] {
    return this.text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
  }
}

describe("openWatch, many watches,", () => {
  it("share the bytes of one view, one selection and one place: made once, written to each", async () => {
    const { api, informer } = apiOf([]);
    let encoded = 0;
    const open = async (query = "") =>
      new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1000${query}`));
    const all = await Promise.all(Array.from({ length: 50 }, () => open()));
    const red = await Promise.all(Array.from({ length: 50 }, () => open("&labelSelector=color%3Dred")));
    const spec = { toJSON: () => ++encoded };
    informer.put(object("shop/a", 1_001, { labels: { color: "red" }, spec }));
    informer.put(object("shop/b", 1_002, { labels: { color: "blue" }, spec }));
    await settle();
    assert.equal(encoded, 2);
    for (const sinks of [all, red]) {
      const [{ pieces }] = sinks;
      assert.equal(pieces.length, 1);
      assert.ok(sinks.every((sink) => sink.pieces[0] === pieces[0]));
    }
    assert.deepEqual(all[0].events.map(({ object }) => object.metadata.name), ["a", "b"]);
    assert.deepEqual(red[0].events.map(({ object }) => object.metadata.name), ["a"]);
  });

  it("leave the others when they are slow, continue from their own place, and share again when they have caught up", async () => {
    const { api, informer, clock } = apiOf([], { watchBufferBytes: 1_000 });
    const open = async () => new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1000`));
    const [slow, quick, other] = [await open(), await open(), await open()];
    const put = async (version: number) => {
      informer.put(object("shop/a", version, { spec: "x".repeat(2_000) }));
      await clock.advance(MOST_GATHER_MS);
    };
    slow.isSlow = true;
    quick.queuedBytes = 5_000; // it takes more nevertheless
    for (let version = 1_001; version <= 1_005; version++) await put(version);
    assert.deepEqual([slow.pieces.length, quick.pieces.length], [1, 5]);
    slow.isSlow = false;
    slow.drain();
    await settle();
    assert.equal(slow.text, quick.text);
    assert.equal(slow.pieces.length, 2);
    await put(1_006);
    assert.equal(slow.pieces.at(-1), quick.pieces.at(-1));
    assert.equal(slow.text, other.text);
  });

  it("that a server writes to directly, are disconnected when they read nothing, and end with 410 when they read too late", async () => {
    const options = { watchBufferBytes: 1_000, writeTimeoutMs: 5_000, eventWindow: 10 };
    const { api, informer, clock } = apiOf([], options);
    const open = async () => new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1000`));
    const late = await open();
    late.isSlow = true;
    for (let version = 1_001; version <= 1_030; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(2_000) }));
      await settle();
    }
    assert.equal(late.events.at(-1).object.code, 410);
    assert.ok(late.ended);
    assert.equal(late.events.length, 2);
    const never = new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1030`));
    never.isSlow = true;
    for (let version = 1_031; version <= 1_033; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(2_000) }));
      await settle();
    }
    await clock.advance(5_000);
    assert.ok(never.ended);
    assert.equal(api.endWatches(), 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("stay open while their readers read a little, and are disconnected once they read nothing more", async () => {
    const { api, informer, clock } = apiOf([], { watchBufferBytes: 1_000, writeTimeoutMs: 5_000 });
    const sink = new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1000`));
    sink.isSlow = true;
    for (let version = 1_001; version <= 1_003; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(2_000) }));
      await settle();
    }
    for (let i = 0; i < 3; i++) {
      sink.queuedBytes -= 500;
      await clock.advance(5_000);
      assert.deepEqual(
        [sink.ended, clock.pendingTimers],
        [false, 2],
        "its life, and the wait for its reader",
      );
    }
    await clock.advance(5_000);
    assert.ok(sink.ended);
    assert.equal(clock.pendingTimers, 0);
  });

  it("that have caught up wait for nothing, and receive what comes next", async () => {
    const { api, informer, clock } = apiOf([], { watchBufferBytes: 1_000, writeTimeoutMs: 5_000 });
    const sink = new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1000`));
    sink.isSlow = true;
    const put = async (version: number) => {
      informer.put(object("shop/a", version, { spec: "x".repeat(2_000) }));
      await settle();
    };
    for (let version = 1_001; version <= 1_003; version++) await put(version);
    sink.isSlow = false;
    sink.drain();
    await clock.advance(20_000);
    await put(1_004);
    assert.deepEqual([sink.ended, sink.events.length], [false, 4]);
  });

  it("receive what comes during a long pass, also when it is more than the event window", async () => {
    const { api, informer, clock } = apiOf([], { eventWindow: 5 });
    const sinks: Sink[] = [];
    for (let i = 0; i < 1_000; i++) {
      sinks.push(new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1000`)));
    }
    let version = 1_000;
    for (let turn = 0; turn < 30; turn++) {
      for (let i = 0; i < 4; i++) informer.put(object("shop/a", ++version));
      await nextTurn();
    }
    await clock.advance(MOST_GATHER_MS);
    await settle();
    await clock.advance(MOST_GATHER_MS);
    for (const { text } of sinks) assert.equal(text, sinks[0].text);
    assert.deepEqual(
      sinks[0].events.map(({ object }) => Number(object.metadata.resourceVersion)),
      Array.from({ length: 120 }, (_, i) => 1_001 + i),
    );
    const old = await api.request(`${PODS}?watch=1&resourceVersion=1110`);
    assert.equal(JSON.parse(await old.text()).object.code, 410);
  });

  it("whose clients disconnect without a sign are found by their bookmarks, and late readers are not", async () => {
    const options = { bookmarkIntervalMs: 10_000, writeTimeoutMs: 15_000, watchLifetimeMs: Infinity };
    const { api, informer, clock } = apiOf([], options);
    const open = () => api.request(`${PODS}?watch=1&resourceVersion=1000&allowWatchBookmarks=1`);
    const lost = await open();
    const lives = (await open()).body!.getReader();
    const late = (await open()).body!.getReader();
    for (let i = 0; i < 6; i++) {
      informer.bookmark(1_001 + i);
      await clock.advance(10_000);
      await lives.read();
      if (i > 0) await late.read();
    }
    assert.equal(api.endWatches(), 2);
    await assert.rejects(lost.text(), /the client has read nothing of the watch for 15000 ms/);
    assert.equal(clock.pendingTimers, 0);
  });

  it("receive every event once and in order, at any speed, through any number of groups, relists and late joiners", async () => {
    const seed = Number(process.env.LISTWATCH_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`LISTWATCH_FUZZ_SEED=${seed}`);
    const random = seededRandom(seed);
    const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)];
    const colors = ["red", "blue", "green"];
    const { api, informer, clock } = apiOf([], { watchBufferBytes: 3_000, eventWindow: 100_000 });
    let version = 1_000;
    /** All changes, as a watch of everything receives them. */
    const changes: { key: string; before?: string; after?: string; version: number }[] = [];
    const known = new Map<string, string>();
    const change = (key: string, after: string | undefined) => {
      changes.push({ key, before: known.get(key), after, version: ++version });
      if (after === undefined) known.delete(key);
      else known.set(key, after);
    };
    const pod = (key: string, color: string) =>
      object(key, version, { labels: { color }, spec: "x".repeat(Math.floor(random() * 700)) });
    const expected = (from: number, namespace: string, color: string) =>
      changes.slice(from).flatMap(({ key, before, after, version }) => {
        const has = (value?: string) =>
          value !== undefined && (color === "" || value === color) && key.startsWith(namespace);
        if (!has(before) && !has(after)) return [];
        return [`${!has(before) ? "ADDED" : !has(after) ? "DELETED" : "MODIFIED"} ${key} ${version}`];
      });
    const watches: { sink: Sink; from: number; namespace: string; color: string; startMs: number }[] = [];
    const lines = ({ sink }: { sink: Sink }) =>
      sink.events.filter(({ type }) => type !== "BOOKMARK").map(({ type, object: { metadata } }) =>
        `${type} ${metadata.namespace}/${metadata.name} ${metadata.resourceVersion}`
      );
    try {
      for (let step = 0; step < 2_000; step++) {
        const kind = random();
        if (kind < 0.06 && watches.length < 60) {
          const [namespace, color] = [pick(["", "a", "b"]), pick(["", ...colors])];
          const path = namespace === "" ? PODS : `/api/v1/namespaces/${namespace}/pods`;
          const accept = pick([
            "application/json",
            "application/json;drop=metadata.managedFields",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
          ]);
          const selector = color === "" ? "" : `&labelSelector=color%3D${color}`;
          const query = `watch=1&resourceVersion=${version}${selector}${
            pick(["", "&allowWatchBookmarks=1"])
          }`;
          const from = changes.length;
          const response = await api.request(`${path}?${query}`, { headers: { Accept: accept } });
          watches.push({ sink: new Sink(response), from, namespace, color, startMs: clock.now() });
        } else if (kind < 0.2 && watches.length > 0) {
          const { sink } = pick(watches);
          sink.isSlow = !sink.isSlow;
          if (!sink.isSlow) sink.drain();
        } else if (kind < 0.35 && watches.length > 0) {
          pick(watches).sink.drain();
        } else if (kind < 0.4) {
          await clock.advance(random() * 40);
        } else if (kind < 0.5) {
          await nextTurn();
        } else {
          const key = `${pick(["a", "b"])}/${Math.floor(random() * 12)}`;
          if (known.has(key) && random() < 0.3) {
            change(key, undefined);
            informer.remove(key, version);
          } else {
            const color = pick(colors);
            change(key, color);
            informer.put(pod(key, color));
          }
        }
        // A client is never ahead of what has happened, and never out of order.
        if (step % 100 === 0) {
          for (const watch of watches) {
            const read = lines(watch);
            const all = expected(watch.from, watch.namespace, watch.color);
            assert.deepEqual(read, all.slice(0, read.length));
          }
        }
      }
      for (let i = 0; i < 400; i++) {
        for (const { sink } of watches) {
          sink.isSlow = false;
          sink.drain();
        }
        await clock.advance(1);
      }
      assert.ok(changes.length > 500 && watches.length > 30);
      for (const watch of watches) {
        assert.deepEqual(lines(watch), expected(watch.from, watch.namespace, watch.color));
      }
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  });
});

describe("openWatch, its response,", () => {
  const WATCH = `${PODS}?watch=1&resourceVersion=1000`;

  it("is sent and ended where a server takes it after the watch has ended", async () => {
    const { api, informer } = apiOf([]);
    const response = await api.request(WATCH);
    informer.put(object("shop/a", 1_001));
    await settle();
    assert.equal(api.endWatches(), 1);
    const sink = new Sink(response);
    assert.deepEqual([sink.events.length, sink.ended], [1, true]);
  });

  it("breaks off, and no other does, where an object cannot be read; with 410 where it never can", async () => {
    for (
      const error of [
        new Error("it cannot be read"),
        new StatusError(newStatus(410, "Expired", "it is not there")),
      ]
    ) {
      const { api, informer } = apiOf([]);
      const [all, red] = [
        new Sink(await api.request(WATCH)),
        new Sink(await api.request(`${WATCH}&labelSelector=color%3Dred`)),
      ];
      const unreadable = {
        toJSON: () => {
          throw error;
        },
      };
      informer.put(object("shop/a", 1_001, { unreadable }));
      informer.put(object("shop/b", 1_002, { labels: { color: "red" } }));
      await settle();
      assert.deepEqual([red.events.map(({ type }) => type), red.ended], [["ADDED"], false]);
      const codes = all.events.map(({ type, object }) => `${type} ${object.code}`);
      assert.deepEqual([codes, all.ended], [error instanceof StatusError ? ["ERROR 410"] : [], true]);
      assert.equal(api.endWatches(), 1);
    }
  });

  it("has all that waits at the end, in pieces of 64 KiB or of one chunk", async () => {
    const { api, informer } = apiOf([], { watchBufferBytes: 1_000_000 });
    const response = await api.request(WATCH);
    for (let version = 1_001; version <= 1_005; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(30_000) }));
      await settle();
    }
    informer.put(object("shop/a", 1_006, { spec: "x".repeat(100_000) }));
    await settle();
    assert.equal(api.endWatches(), 1);
    const lengths: number[] = [];
    for await (const piece of response.body!) lengths.push(Math.round(piece.byteLength / 10_000));
    assert.deepEqual(lengths, [6, 6, 3, 10]);
  });

  it("breaks off where its client has read once, and reads no more", async () => {
    const { api, informer, clock } = apiOf([], { watchBufferBytes: 1_000, writeTimeoutMs: 5_000 });
    const reader = (await api.request(WATCH)).body!.getReader();
    const read = reader.read();
    for (let version = 1_001; version <= 1_005; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(2_000) }));
      await settle();
    }
    assert.equal((await read).done, false);
    await clock.advance(5_000);
    await assert.rejects(reader.read(), /the client has read nothing of the watch for 5000 ms/);
  });

  it("ends for a reader that waits with a buffer of its own", async () => {
    const { api } = apiOf([]);
    const reader = (await api.request(WATCH)).body!.getReader({ mode: "byob" });
    const read = reader.read(new Uint8Array(100));
    await settle();
    assert.equal(api.endWatches(), 1);
    assert.equal((await read).done, true);
  });
});

describe("EventLog, its window,", () => {
  const large = (version: number) => object("shop/a", version, { spec: "x".repeat(50_000) });

  it("is bounded by eventWindowBytes, too: the oldest events go first, watches from before them get 410", async () => {
    const { api, informer } = apiOf([], { eventWindowBytes: 1_000_000 });
    const quick = new Sink(await api.request(`${PODS}?watch=1&resourceVersion=1000`));
    for (let version = 1_001; version <= 1_100; version++) {
      informer.put(large(version));
      if (version % 7 === 0) await settle();
    }
    await settle();
    assert.equal(quick.events.length, 100, "a watch that keeps up loses nothing");
    const first = async (version: number) =>
      new Sink(await api.request(`${PODS}?watch=1&resourceVersion=${version}`));
    const old = await api.request(`${PODS}?watch=1&resourceVersion=1079`);
    assert.equal(JSON.parse(await old.text()).object.code, 410);
    const recent = await first(1_085);
    await settle();
    assert.equal(recent.events[0].object.metadata.resourceVersion, "1086");
    assert.equal(recent.events.length, 15);
  });

  it("without watches is bounded at every event; small events are bounded by their number", async () => {
    const { api, informer } = apiOf([], { eventWindowBytes: 1_000_000, eventWindow: 50 });
    for (let version = 1_001; version <= 1_100; version++) informer.put(large(version));
    const status = async (version: number) =>
      (await (await api.request(`${PODS}?resourceVersion=${version}&resourceVersionMatch=Exact`)).json())
        .code;
    assert.deepEqual([await status(1_079), await status(1_085)], [410, undefined]);
    for (let version = 1_101; version <= 1_200; version++) informer.put(object("shop/b", version));
    assert.deepEqual([await status(1_149), await status(1_151)], [410, undefined]);
  });
});

describe("WatchGroup", () => {
  /** A group that sees ten entries, which are the ends of lists. */
  function newGroup({ isLate = false, selection }: { isLate?: boolean; selection?: Selection } = {}) {
    const entry = {
      type: "BOOKMARK",
      key: "",
      position: "11",
      isLate,
      object: undefined,
      oldObject: undefined,
      gapAfter: undefined,
      isPlaced: true,
      bytes: 0,
      atMs: 0,
      views: undefined,
    } as const;
    const views = new EntryViews(new ObjectHolding(metaNamespaceKey));
    const groups = new WatchGroups({
      log: { window: { tail: 0, entries: { length: 10, at: () => entry } } },
      ageMs: 0,
    }, views);
    const view = newObjectView({ ...parseResource("v1/pods"), kind: "Pod", namespaced: true });
    const group = groups.join({ view, allowBookmarks: true, selection });
    const at = (place: number, skipThrough = "") => group.chunk(place, { length: 10_000, skipThrough });
    return { groups, group, at };
  }

  it("has one chunk for all at one place, for the last four places, up to the end of a pass", () => {
    const { groups, at } = newGroup();
    const chunks = [0, 1, 2, 3].map((place) => at(place));
    assert.deepEqual([0, 1, 2, 3].map((place) => at(place) === chunks[place]), [true, true, true, true]);
    at(4);
    assert.deepEqual([3, 2, 1, 0].map((place) => at(place) === chunks[place]), [true, true, true, false]);
    groups.clear();
    assert.notEqual(at(3), chunks[3]);
  });

  it("has no chunk that takes a watch from the future back, to the end of a list that comes late", () => {
    for (const isLate of [false, true]) {
      const { bytes, resourceVersion, to } = newGroup({ isLate }).at(0, "20");
      assert.deepEqual([bytes, resourceVersion, to], [undefined, "", 10], `${isLate}`);
    }
  });

  it("ends a chunk where the selection has been work enough", () => {
    const selection = { name: "costly", units: 10_000 } as Selection;
    const { isFull, to } = newGroup({ selection }).at(0);
    assert.deepEqual([isFull, to], [true, 2]);
  });

  it("has a bookmark of its own for each version, and for those with annotations", () => {
    const { group } = newGroup();
    const read = (...of: Parameters<typeof group.bookmark>) =>
      JSON.parse(new TextDecoder().decode(group.bookmark(...of))).object.metadata;
    const plain = { resourceVersion: "11" };
    assert.deepEqual(read("11"), plain);
    assert.deepEqual(read("11", { age: "1" }), { ...plain, annotations: { age: "1" } });
    assert.deepEqual(read("11", { age: "2" }), { ...plain, annotations: { age: "2" } });
    assert.deepEqual(read("11"), plain);
    assert.equal(group.bookmark("11"), group.bookmark("11"));
    assert.deepEqual(read("12"), { resourceVersion: "12" });
  });
});

describe("EntryViews", () => {
  const holding = new ObjectHolding<TestObject>(metaNamespaceKey);
  const view = newObjectView({ ...parseResource("v1/pods"), kind: "Pod", namespaced: true });
  const entriesOf = (count: number, length: number): LogEntry<TestObject>[] =>
    Array.from({ length: count }, (_, i) => ({
      type: "ADDED",
      key: `shop/web-${i}`,
      position: "99",
      isLate: false,
      object: holding.hold(object(`shop/web-${i}`, 5, { text: "x".repeat(length) })),
      oldObject: undefined,
      gapAfter: undefined,
      isPlaced: false,
      bytes: length,
      atMs: 0,
      views: undefined,
    }));
  const kept = (entries: readonly LogEntry<TestObject>[]) =>
    entries.filter((entry) => entry.views !== undefined).length;

  it("keep 8 MiB and, but for a pass, 256 entries", () => {
    const views = new EntryViews(holding);
    views.isPass = true;
    const [large, small] = [entriesOf(20, 1024 * 1024), entriesOf(300, 10)];
    for (const entry of large) views.bytes(entry, "ADDED", view);
    assert.equal(kept(large), 7);
    assert.notEqual(large.at(-1)!.views, undefined);
    for (const entry of small) views.bytes(entry, "ADDED", view);
    assert.deepEqual([kept(large), kept(small)], [7, 300]);
    views.passEnds();
    assert.deepEqual([kept(large), kept(small)], [0, 256]);
  });

  it("show an event at its own version, and at the position of the log where that is wanted", () => {
    const views = new EntryViews(holding);
    const [entry] = entriesOf(1, 1);
    const versionOf = (showsPosition: boolean) =>
      JSON.parse(new TextDecoder().decode(views.bytes(entry, "ADDED", view, showsPosition))).object.metadata
        .resourceVersion;
    assert.deepEqual([false, true, false].map(versionOf), ["5", "99", "5"]);
  });

  it("show a delete no earlier than where a reader of it may resume: late ones at the position", () => {
    const views = new EntryViews(holding);
    const [entry] = entriesOf(1, 1);
    const versionOf = (isLate: boolean, gapAfter: string | undefined) => {
      const deleted = { ...entry, type: "DELETED", isPlaced: true, isLate, gapAfter } as const;
      return JSON.parse(new TextDecoder().decode(views.bytes(deleted, "DELETED", view))).object.metadata
        .resourceVersion;
    };
    assert.deepEqual([versionOf(false, "90"), versionOf(false, undefined)], ["90", "99"]);
    assert.deepEqual([versionOf(true, "90"), versionOf(true, undefined)], ["99", "99"]);
  });
});

describe("WatchGroups", () => {
  it("keeps a group as long as one watch is in it, and nothing of those that have ended", () => {
    const entries = { length: 0, at: () => undefined };
    const views = new EntryViews(new ObjectHolding(metaNamespaceKey));
    const groups = new WatchGroups({ log: { window: { tail: 0, entries } }, ageMs: 0 }, views);
    const view = newObjectView({ ...parseResource("v1/pods"), kind: "Pod", namespaced: true });
    const kind = (i: number) => ({
      view,
      allowBookmarks: true,
      selection: newSelection(parseResource("v1/pods"), {
        namespace: "",
        labels: parseLabelSelector(`app=a-${i}`),
        fields: undefined,
        shard: undefined,
        filter: undefined,
      }),
    });
    const joined = Array.from({ length: 100 }, (_, i) => groups.join(kind(i % 50)));
    for (const group of joined) group.chunk(0, { length: 1_000, skipThrough: "" });
    const kept = () => [groups.size, groups.used.size];
    assert.deepEqual(kept(), [50, 50]);
    for (const group of joined.slice(0, 50)) groups.leave(group);
    assert.deepEqual(kept(), [50, 50]);
    for (const group of joined.slice(50)) groups.leave(group);
    assert.deepEqual(kept(), [0, 0]);
  });
});
