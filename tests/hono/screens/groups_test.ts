import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Content } from "../../../src/hono/content/content.ts";
import { Groups } from "../../../src/hono/screens/groups.ts";
import type { KubernetesObject } from "../../../src/meta/object.ts";
import { readPaths } from "../../../src/protocol/screen_syntax.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { Pacer } from "../../../src/util/turns.ts";
import { FakeInformer, object } from "../fake_informer.ts";

describe("Groups", () => {
  it("are put in order in many turns, however many there are", async () => {
    const objects = Array.from({ length: 5_000 }, (_, i) => object(`a/${(i * 7_919) % 5_000}`, i + 1));
    const informer = FakeInformer.with(objects, 9_000);
    const clock = new FakeClock();
    const content = new Content<KubernetesObject>(informer, { clock, capacity: 600, capacityBytes: 1e9 });
    const groups = new Groups(content, {
      groupBy: readPaths("metadata.name", 1),
      sum: [],
      selection: undefined,
      hasRoom: () => true,
    });
    let turns = 0;
    const next = () => {
      turns++;
      return Promise.resolve();
    };
    await groups.ready(new Pacer({ units: 1_000, turns: { isBusy: false, next } }));
    const { length, value } = groups.present();
    assert.equal(length, 5_000);
    const names = Array.from({ length }, (_, i) => value(i).group["metadata.name"]);
    assert.deepEqual(names, Array.from({ length }, (_, i) => `${i}`));
    // Five batches are read, and twenty runs are made and merged.
    assert.ok(turns > 40, `${turns} turns`);
  });

  it("show no group that has become empty while an object could not be read", async () => {
    const informer = FakeInformer.with([object("a/1", 1)], 9_000);
    const clock = new FakeClock();
    const content = new Content<KubernetesObject>(informer, { clock, capacity: 600, capacityBytes: 1e9 });
    const groupBy = readPaths("spec.node", 1);
    const groups = new Groups(content, { groupBy, sum: [], selection: undefined, hasRoom: () => true });
    const counted = async () => {
      await groups.ready(new Pacer({ units: 1_000 }));
      const { length, value } = groups.present();
      return Array.from({ length }, (_, i) => [value(i).group["spec.node"], value(i).count]);
    };
    assert.deepEqual(await counted(), [[null, 1]]);
    informer.put(object("a/1", 9_001, { spec: { node: "n" } }));
    informer.put(object("a/3", 9_002, { spec: { node: "n" } }));
    const { holding } = content;
    const { peek } = holding;
    holding.peek = (held) => {
      if (content.holding.head(held).key === "a/3") throw new Error("it cannot be read");
      return peek.call(holding, held);
    };
    await assert.rejects(counted, /cannot be read/);
    holding.peek = peek;
    assert.deepEqual(await counted(), [["n", 2]]);
  });

  it("count the values of groups, while there are such objects", async () => {
    const informer = FakeInformer.with([object("a/1", 1)], 9_000);
    const clock = new FakeClock();
    const content = new Content<KubernetesObject>(informer, { clock, capacity: 600, capacityBytes: 1e9 });
    const groupBy = readPaths("metadata.labels.text", 1);
    const options = { groupBy, sum: [], selection: undefined, hasRoom: () => true };
    const groups = new Groups(content, options);
    await groups.ready(new Pacer({ units: 1_000 }));
    const { bytes } = groups;
    informer.put(object("a/2", 9_001, { labels: { text: "x".repeat(100_000) } }));
    groups.present();
    assert.ok(groups.bytes - bytes > 300_000, `${groups.bytes}`);
    informer.put(object("a/2", 9_002));
    groups.present();
    assert.equal(groups.bytes - bytes, 250, "one more object of a group that is there");
    informer.remove("a/2", 9_003);
    groups.present();
    assert.equal(groups.bytes, bytes);
    informer.put(object("a/2", 9_004, { labels: { text: "x".repeat(100_000) } }));
    groups.present();
    informer.relist([object("a/1", 1)], 8_000); // another history: all is read again
    await groups.ready(new Pacer({ units: 1_000 }));
    assert.equal(groups.bytes, bytes);
  });
});
