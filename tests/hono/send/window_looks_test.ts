import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Content } from "../../../src/hono/content/content.ts";
import { blocksOf } from "../../../src/hono/content/states.ts";
import type { FollowedObjects } from "../../../src/hono/screens/followed_objects.ts";
import { RowsState } from "../../../src/hono/screens/row_changes.ts";
import { WindowFeed, Windows } from "../../../src/hono/send/windows.ts";
import type { KubernetesObject } from "../../../src/meta/object.ts";
import { tooManyRequests } from "../../../src/hono/request/refusals.ts";
import { StatusError } from "../../../src/meta/status.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { Pacer } from "../../../src/util/turns.ts";
import { FakeInformer, object } from "../fake_informer.ts";

/** Windows of a content, each of which has one row: the content's version. */
function newWindows() {
  const clock = new FakeClock();
  const informer = FakeInformer.with([object("a/1", 1)], 1_000);
  const content = new Content<KubernetesObject>(informer, { clock, capacity: 600, capacityBytes: 1e9 });
  const windows = new Windows(content, clock);
  const failing = new Set<string>();
  /** What has lost its place, and cannot be read again. */
  const behind = new Set<string>();
  const readings: string[] = [];
  const woken: string[] = [];
  const held = { bytes: 0 };
  const open = (name: string) => {
    const present = () => {
      if (failing.has(name)) throw new Error(`${name} cannot be read`);
      const { resourceVersion } = content.log;
      return new RowsState(blocksOf(["row"], () => resourceVersion), resourceVersion);
    };
    const fake = {
      windows: 0,
      get isBehind() {
        return behind.has(name);
      },
      present,
      takeUnits: () => 0,
      ready: () => {
        readings.push(name);
        return Promise.reject(new StatusError(tooManyRequests()));
      },
    };
    const followed = fake as unknown as FollowedObjects<KubernetesObject>;
    const window = windows.join({
      source: {
        followed,
        name,
        itemsField: "items",
        first: undefined,
        offset: () => 0,
        row: (value) => {
          if (failing.has(`row of ${name}`)) throw new Error(`the row of ${name} cannot be read`);
          return { id: "row", json: JSON.stringify(value) };
        },
        list: (metadata) => ({ metadata }),
        bookmark: (metadata) => ({ metadata }),
      },
      place: "",
      limit: 1,
      pacer: new Pacer({ units: 1_000 }),
      takeRows: (bytes) => {
        held.bytes += bytes;
        return true;
      },
    });
    const feed = new WindowFeed(window, { ageMs: 0 });
    feed.opened({ wake: () => woken.push(name) });
    assert.ok(feed.next().bytes);
    return feed;
  };
  content.log.along.add({ grown: () => windows.grown() });
  return { clock, informer, windows, failing, behind, readings, open, held, woken: () => woken.splice(0) };
}

describe("Windows", () => {
  it("look on where the rows of one of them cannot be read, whose readers receive why", async () => {
    const { clock, informer, windows, failing, open, woken } = newWindows();
    const [one, other] = [open("one"), open("other")];
    failing.add("one");
    for (let version = 1_001; version < 1_004; version++) {
      await clock.advance(2_000);
      informer.put(object("a/1", version));
      await clock.advance(2_000);
      assert.deepEqual(woken(), version === 1_001 ? ["one", "other"] : ["other"]);
      assert.match(new TextDecoder().decode(other.next().bytes), new RegExp(`"${version}"`));
    }
    assert.equal(one.hasNext, true);
    assert.equal(one.next().isCut, true);
    assert.deepEqual([one.lost().code, one.lost().message], [500, "one cannot be read"]);
    for (const feed of [one, other]) feed.close();
    assert.equal(windows.size, 0);
  });

  it("end one for whose rows there is no room when all are read again, and read them once", async () => {
    const { clock, informer, behind, readings, open, woken } = newWindows();
    const feed = open("one");
    behind.add("one");
    informer.put(object("a/1", 1_001));
    await clock.advance(0);
    assert.deepEqual(woken(), ["one"]);
    for (let reader = 0; reader < 2; reader++) assert.equal(feed.hasNext, false);
    await clock.advance(0);
    assert.deepEqual([woken(), feed.hasNext, readings], [["one"], true, ["one"]]);
    assert.deepEqual([feed.next().isCut, feed.lost().code], [true, 429]);
    feed.close();
  });

  it("end one of which a row cannot be made, and say why", async () => {
    const { clock, informer, failing, open, held } = newWindows();
    const [one, other] = [open("one"), open("other")];
    failing.add("row of one");
    informer.put(object("a/1", 1_001));
    await clock.advance(0);
    assert.deepEqual([one.next().isCut, one.lost().code], [true, 500]);
    assert.equal(one.lost().message, "the row of one cannot be read");
    assert.match(new TextDecoder().decode(other.next().bytes), /"1001"/);
    for (const feed of [one, other]) feed.close();
    assert.equal(held.bytes, 0);
  });

  it("count the bytes of their rows, and of the last four steps", async () => {
    const { clock, informer, open, held } = newWindows();
    const feed = open("one");
    const bytes = [held.bytes];
    for (let version = 1_001; version <= 1_006; version++) {
      informer.put(object("a/1", version));
      await clock.advance(2_000);
      feed.next();
      bytes.push(held.bytes);
    }
    const [rows, one] = bytes;
    const steps = bytes.map((each) => (each - rows) / (one - rows));
    assert.ok(one - rows > 100, `${one - rows}`);
    assert.deepEqual(steps, [0, 1, 2, 3, 4, 4, 4]);
    feed.close();
    assert.equal(held.bytes, 0);
  });

  it("look after their rest, whichever of them have ended meanwhile", async () => {
    const { clock, informer, open, woken, held } = newWindows();
    const [one, other] = [open("one"), open("other")];
    informer.put(object("a/1", 1_001));
    await clock.advance(0);
    assert.deepEqual(woken(), ["one", "other"]);
    other.next();
    informer.put(object("a/1", 1_002));
    one.close();
    await clock.advance(2_000);
    assert.deepEqual(woken(), ["other"]);
    other.next();
    informer.put(object("a/1", 1_003));
    await clock.advance(0);
    other.next();
    for (const version of [1_004, 1_005]) informer.put(object("a/1", version));
    assert.deepEqual([clock.pendingTimers, held.bytes > 0], [1, true]);
    other.close();
    assert.deepEqual([clock.pendingTimers, held.bytes], [0, 0]);
    const last = open("last");
    woken();
    informer.put(object("a/1", 1_006));
    await clock.advance(2_000);
    assert.deepEqual(woken(), ["last"]);
    last.close();
  });
});
