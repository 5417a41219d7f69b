import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Content } from "../../../src/hono/content/content.ts";
import { blocksOf } from "../../../src/hono/content/states.ts";
import type { FollowedObjects } from "../../../src/hono/screens/followed_objects.ts";
import { RowsState } from "../../../src/hono/screens/row_changes.ts";
import { WindowFeed, Windows } from "../../../src/hono/send/windows.ts";
import type { KubernetesObject } from "../../../src/meta/object.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { Pacer } from "../../../src/util/turns.ts";
import { FakeInformer, object } from "../fake_informer.ts";

describe("Windows", () => {
  it("look on where the rows of one of them cannot be read, whose readers receive why", async () => {
    const clock = new FakeClock();
    const informer = FakeInformer.with([object("a/1", 1)], 1_000);
    const content = new Content<KubernetesObject>(informer, { clock, capacity: 600, capacityBytes: 1e9 });
    const windows = new Windows(content, clock);
    const failing = new Set<string>();
    const woken: string[] = [];
    /** A reader of a window whose one row is the content's version. */
    const open = (name: string) => {
      const present = () => {
        if (failing.has(name)) throw new Error(`${name} cannot be read`);
        const { resourceVersion } = content.log;
        return new RowsState(blocksOf(["row"], () => resourceVersion), resourceVersion);
      };
      const fake = { windows: 0, isBehind: false, present, takeUnits: () => 0 };
      const followed = fake as unknown as FollowedObjects<KubernetesObject>;
      const window = windows.join({
        source: {
          followed,
          name,
          itemsField: "items",
          first: undefined,
          offset: () => 0,
          row: (value) => ({ id: "row", json: JSON.stringify(value) }),
          list: (metadata) => ({ metadata }),
          bookmark: (metadata) => ({ metadata }),
        },
        place: "",
        limit: 1,
        pacer: new Pacer({ units: 1_000 }),
        takeRows: () => true,
      });
      const feed = new WindowFeed(window, { ageMs: 0 });
      feed.opened({ wake: () => woken.push(name) });
      assert.ok(feed.next().bytes);
      return feed;
    };
    content.log.along.add({ grown: () => windows.grown() });
    const [one, other] = [open("one"), open("other")];
    failing.add("one");
    for (let version = 1_001; version < 1_004; version++) {
      await clock.advance(2_000);
      informer.put(object("a/1", version));
      await clock.advance(2_000);
      assert.deepEqual(woken.splice(0), version === 1_001 ? ["one", "other"] : ["other"]);
      assert.match(new TextDecoder().decode(other.next().bytes), new RegExp(`"${version}"`));
    }
    assert.equal(one.hasNext, true);
    assert.equal(one.next().isCut, true);
    assert.deepEqual([one.lost().code, one.lost().message], [500, "one cannot be read"]);
    for (const feed of [one, other]) feed.close();
    assert.equal(windows.size, 0);
  });
});
