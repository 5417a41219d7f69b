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
});
