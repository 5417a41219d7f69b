import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import type { ChangeFeed } from "../../../src/cli/dashboard/change_feed.ts";
import type {
  DashboardMessage,
  DashboardState,
  FeedEntry,
} from "../../../src/cli/dashboard/dashboard_message.ts";
import { type Permission, unauthorized } from "../../../src/hono/request/gate.ts";
import { Readers } from "../../../src/hono/request/readers.ts";
import { HEARTBEAT_MS, type PageWatch, StateStream } from "../../../src/cli/dashboard/state_stream.ts";

/** A stream of a feed and a state that the test writes. */
function newStream() {
  const clock = new FakeClock(1_000_000);
  const entries: FeedEntry[] = [];
  const feed: Pick<ChangeFeed, "since" | "lastSeq"> = {
    since: (seq) => entries.filter((entry) => entry.seq > seq),
    get lastSeq() {
      return entries.length;
    },
  };
  const counts = { states: 0, isBroken: false, errors: 0 };
  const stream = new StateStream({
    state: () => {
      if (counts.isBroken) throw new TypeError("object is not iterable");
      return { nowMs: clock.now(), count: ++counts.states } as unknown as DashboardState;
    },
    onError: () => void counts.errors++,
    feed: feed as ChangeFeed,
    clock,
  });
  const readers = new Readers({
    maxRequests: 100,
    maxWatches: 100,
    maxWatchesPerClient: 100,
    maxReaderBytes: 1e6,
  });
  const permission: Permission = { user: undefined, renew: () => Promise.resolve(permission) };
  /** Opens a stream as the answer to a request, which has ended then. */
  const open = (watch: Partial<PageWatch> = {}): ReadableStream<Uint8Array> => {
    const reader = readers.enter(undefined)!;
    const body = stream.open({
      permission,
      reader,
      readers,
      limitMs: Infinity,
      recheckMs: Infinity,
      ...watch,
    });
    reader.release();
    return body;
  };
  const endAll = (): void => Array.from(readers.watches).forEach((watch) => watch.stop());
  const add = (key: string): void => {
    entries.push({ seq: entries.length + 1, timeMs: clock.now(), type: "added", resource: "pods", key });
    stream.changed();
  };
  return { clock, stream, open, readers, endAll, add, counts };
}

class Reader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #text = "";
  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }
  /** The next message, or `undefined` at the end. */
  async next(): Promise<DashboardMessage | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end >= 0) {
        const event = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        if (event.startsWith("data: ")) return JSON.parse(event.slice(6));
        continue;
      }
      const { done, value } = await this.#reader.read();
      if (done) return undefined;
      this.#text += new TextDecoder().decode(value);
    }
  }
  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

function keys(message: DashboardMessage | undefined): string[] | undefined {
  return message?.changes.map(({ key }) => key);
}

describe("StateStream", () => {
  it("sends nothing while the state cannot be computed, and continues later", async () => {
    const { clock, add, open, endAll, counts } = newStream();
    counts.isBroken = true;
    const next = new Reader(open()).next();
    add("a");
    await clock.advance(500);
    assert.equal(counts.errors, 2);
    counts.isBroken = false;
    add("b");
    await clock.advance(500);
    assert.deepEqual(keys(await next), ["a", "b"]);
    endAll();
    assert.equal(clock.pendingTimers, 0);
  });

  it("sends everything first, then only the entries that a page does not have", async () => {
    const { stream, clock, add, open, endAll } = newStream();
    add("a");
    add("b");
    const first = new Reader(open());
    assert.deepEqual(keys(await first.next()), ["a", "b"]);
    add("c");
    await clock.advance(500);
    assert.deepEqual(keys(await first.next()), ["c"]);
    const second = new Reader(open());
    assert.deepEqual(keys(await second.next()), ["a", "b", "c"]);
    endAll();
    assert.equal(await first.next(), undefined);
    assert.equal(await second.next(), undefined);
    assert.equal(stream.size, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("sends many changes in one message, at most twice a second", async () => {
    const { clock, add, open, endAll, counts } = newStream();
    const reader = new Reader(open());
    await reader.next();
    await clock.advance(500);
    await reader.next();
    const before = counts.states;
    for (let i = 0; i < 10; i++) {
      add(`k${i}`);
      await clock.advance(50);
    }
    assert.equal(counts.states, before + 1);
    assert.equal((await reader.next())?.changes.length, 10);
    endAll();
  });

  it("sends heartbeats, so that a page detects a lost connection", async () => {
    const { clock, open, endAll, counts } = newStream();
    const reader = new Reader(open());
    await reader.next();
    await clock.advance(500);
    await reader.next();
    const before = counts.states;
    await clock.advance(HEARTBEAT_MS - 500);
    assert.equal(counts.states, before);
    await clock.advance(500);
    assert.deepEqual(keys(await reader.next()), []);
    endAll();
  });

  it("computes no state and sets no timer without an open page", async () => {
    const { stream, open, clock, add, counts } = newStream();
    add("a");
    await clock.advance(60_000);
    assert.equal(counts.states, 0);
    assert.equal(clock.pendingTimers, 0);
    const reader = new Reader(open());
    await reader.next();
    assert.equal(clock.pendingTimers, 1);
    await reader.cancel();
    assert.equal(stream.size, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  it("queues nothing for a page that does not read, sends it the latest state later, and closes it after a minute", async () => {
    const { stream, clock, add, open, endAll } = newStream();
    const slow = new Reader(open());
    for (let i = 0; i < 40; i++) {
      add(`k${i}`);
      await clock.advance(500);
    }
    const seen: string[] = [];
    // A few messages were queued, not 40; the next one has all missing entries.
    for (let messages = 0; messages < 6 && seen.length < 40; messages++) {
      await clock.advance(500);
      seen.push(...keys(await slow.next()) ?? []);
    }
    assert.deepEqual(seen, Array.from({ length: 40 }, (_, i) => `k${i}`));

    const stuck = open();
    for (let second = 0; second < 70; second++) {
      add(`s${second}`);
      await clock.advance(1_000);
    }
    assert.equal(stream.size, 0);
    await assert.rejects(stuck.cancel(), /the client has read nothing of the page for 60000 ms/);
    endAll();
  });

  it("is a watch of its reader: it is counted, ends with its time, and with all watches", async () => {
    const { open, readers, stream, clock } = newStream();
    const [first, second] = [new Reader(open({ limitMs: 60_000 })), new Reader(open())];
    assert.deepEqual([readers.count, readers.watches.size], [2, 2]);
    await clock.advance(60_000);
    assert.equal(stream.size, 1);
    while (await first.next() !== undefined);
    for (const watch of readers.watches) watch.stop();
    while (await second.next() !== undefined);
    assert.deepEqual([readers.count, readers.watches.size, stream.size, clock.pendingTimers], [0, 0, 0, 0]);
  });

  it("ends with the permission of its reader, and with the credential", async () => {
    const { open, readers, clock, add } = newStream();
    const user = { name: "ann", expiresAtMs: clock.now() + 90_000 };
    const permission: Permission = { user, renew: () => Promise.resolve(permission) };
    const refused: Permission = { user: undefined, renew: () => Promise.resolve(unauthorized()) };
    new Reader(open({ permission }));
    new Reader(open({ permission: refused, recheckMs: 30_000 }));
    await clock.advance(29_999);
    assert.equal(readers.watches.size, 2);
    await clock.advance(1);
    assert.deepEqual(Array.from(readers.watches, ({ user }) => user?.name), ["ann"]);
    for (let i = 0; i < 60; i++) {
      add(`k${i}`);
      await clock.advance(1_000);
    }
    assert.deepEqual([readers.count, readers.watches.size, clock.pendingTimers], [0, 0, 0]);
  });
});
