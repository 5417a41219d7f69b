import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { metaNamespaceKey } from "@listwatch/cache";
import { ObjectHolding } from "../../../src/store/holding.ts";
import { EventFeed, type EventFeedOptions } from "../../../src/hono/send/event_feed.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { type Json, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";

/** The feed of a watch of a log that is at version 10 and whose group has one chunk, which leads to 12. */
function feedOf(
  options: Partial<EventFeedOptions<TestObject>> = {},
  { mayLackEvents = false }: { readonly mayLackEvents?: boolean } = {},
) {
  const chunk = { bytes: new Uint8Array(1), units: 7, isTooLong: false, to: 2, resourceVersion: "12" };
  const lengths: number[] = [];
  const group = {
    kind: { allowBookmarks: true, ...options },
    chunk: (_: number, { length }: { readonly length: number }) => {
      lengths.push(length);
      return chunk;
    },
    bookmark: (resourceVersion: string) => new TextEncoder().encode(resourceVersion),
  };
  const log = {
    window: { tail: 0, entries: { length: 2 }, resourceVersion: "10" },
    mayLackEvents: () => mayLackEvents,
    oldestResourceVersion: "9",
    eventsThrough: "10",
  };
  const content = { log, ageMs: 0, holding: new ObjectHolding<TestObject>(metaNamespaceKey) };
  const groups = { join: () => group, leave() {} };
  const common = { cursor: 0, resourceVersion: "10", endsAtRelist: false };
  const make = () =>
    new EventFeed<TestObject>(
      { content, groups } as unknown as ConstructorParameters<typeof EventFeed<TestObject>>[0],
      {
        ...common,
        reader: { readers: { watchPieceLength: 100 } },
        ...group.kind,
      } as unknown as EventFeedOptions<TestObject>,
    );
  return { make, lengths };
}

const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

describe("EventFeed", () => {
  it("ends the wait for a version from the future when its reader leaves", () => {
    const signals: AbortSignal[] = [];
    const isLost = (signal: AbortSignal) => {
      signals.push(signal);
      return Promise.resolve(false);
    };
    const feed = feedOf({ resourceVersion: "11", isLost }).make();
    feed.opened({ cut() {} });
    assert.deepEqual(signals.map(({ aborted }) => aborted), [false]);
    feed.close();
    assert.deepEqual(signals.map(({ aborted }) => aborted), [true]);
  });

  it("is at the version of its last event: what is lost is lost from there on, and heartbeats show it", () => {
    const feed = feedOf().make();
    assert.equal(text(feed.heartbeat()), "10");
    feed.next(false);
    assert.match(feed.lost().message!, /12 \(9\)/);
    assert.equal(text(feed.heartbeat()), "12");
  });

  it("has its reader list again at a relist only until events have come that none is missing before", () => {
    const feed = feedOf({}, { mayLackEvents: true }).make();
    assert.equal(feed.endsAtRelist, true);
    feed.next(false);
    assert.equal(feed.endsAtRelist, false);
  });

  it("has large pieces where they cost no memory, and counts the work of shared events once", () => {
    const { make, lengths } = feedOf();
    assert.deepEqual([make().next(true).units, make().next(false).units], [7, 0]);
    assert.ok(lengths[0] > lengths[1] && lengths[1] === 100, String(lengths));
  });

  it("gives way among initial events that cost much to select", () => {
    const objects = ["a", "b", "c"].map((name) => object(name, 5));
    const selection = { units: 30_000, mayHave: () => false, hasFieldsBesides: () => undefined };
    const initial = { length: 3, key: (i: number) => "abc"[i], object: (i: number) => objects[i] };
    const view = { bookmark: (metadata: unknown) => ({ metadata }) };
    const options = { view, selection, initial } as unknown as EventFeedOptions<TestObject>;
    const feed = feedOf(options).make();
    const first = feed.next(false);
    assert.deepEqual([first.bytes, first.units, first.hasMore], [undefined, 60_000, true]);
    assert.match(text(feed.next(false).bytes), /^\{"type":"BOOKMARK"/);
  });
});

describe("openWatch at a relist", () => {
  it("ends with 410 where the changes are more than one watch receives at once", async () => {
    const informer = FakeInformer.with([object("shop/a", 5)], 10);
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    const path = "/api/v1/pods?watch=1&resourceVersion=10&allowWatchBookmarks=true";
    const watch = await WatchReader.open(api, path);
    const spec = "x".repeat(1024 * 1024);
    informer.relist(Array.from("bcdefg", (name) => object(`shop/${name}`, 11, { spec })), 20);
    const [{ type, object: status }]: Json[] = await watch.events(1);
    assert.deepEqual([type, status.code], ["ERROR", 410]);
  });
});
