import assert from "node:assert/strict";
import type { KubernetesObject } from "@listwatch/cache";
import type { QueueContext } from "@listwatch/cache/informer";
import { DeltaFIFO } from "@listwatch/cache/queue";
import { named, newRig, type RigOptions } from "./rig.ts";
import { describe, it } from "./storages.ts";

const queues: Readonly<Record<string, RigOptions<never>>> = {
  "the ordered queue": {},
  "a DeltaFIFO": {
    queue: (context: QueueContext<KubernetesObject>) =>
      new DeltaFIFO<KubernetesObject>({ ...context, emitDeltaTypeReplaced: true }),
  },
};

/** What a handler receives of a relist with two unchanged objects, one changed, one new, and one missing. */
async function toldOfRelist(options: RigOptions<never>): Promise<string[]> {
  await using rig = newRig(options);
  for (const name of ["a", "b", "c", "missing"]) rig.source.add(named(name));
  const { recorder } = rig.record();
  await rig.start();
  recorder.take();
  rig.source.modifyDropWatch(named("c"));
  rig.source.addDropWatch(named("d"));
  rig.source.deleteDropWatch(named("missing"));
  rig.source.resetWatch();
  await rig.retry();
  return recorder.take().sort();
}

for (const [queue, options] of Object.entries(queues)) {
  describe(`objects that did not change, with ${queue},`, () => {
    it("are updates in a relist, as upstream, unless notifyUnchanged is false", async () => {
      const changes = ["add d@6", "tombstone missing@4", "update c@3>5"];
      const unchanged = ["update a@1>1", "update b@2>2"];
      assert.deepEqual(await toldOfRelist(options), [...changes, ...unchanged].sort());
      assert.deepEqual(await toldOfRelist({ ...options, notifyUnchanged: false }), changes);
    });

    it("are updates in a resync nevertheless", async () => {
      await using rig = newRig({ ...options, resyncPeriodMs: 10_000, notifyUnchanged: false });
      rig.source.add(named("a"));
      const { recorder } = rig.record();
      await rig.start();
      recorder.take();
      await rig.clock.advance(10_000);
      assert.deepEqual(recorder.take(), ["update a@1>1"]);
    });

    it("are updates in a resync also where an index function refuses now what it has taken", async () => {
      let refuses = false;
      const indexers = {
        byName: (object: KubernetesObject) => {
          if (refuses) throw new Error("not now");
          return [object.metadata?.name ?? ""];
        },
      };
      await using rig = newRig({ ...options, resyncPeriodMs: 10_000, indexers });
      rig.source.add(named("a"));
      const { recorder } = rig.record();
      await rig.start();
      recorder.take();
      refuses = true;
      await rig.clock.advance(20_000);
      assert.deepEqual(recorder.take(), ["update a@1>1", "update a@1>1"]);
      assert.equal(rig.informer.status().quarantined, 0);
    });
  });
}

describe("SharedIndexInformer: an object that was deleted and created again between two lists", () => {
  it("has changed, even if its resourceVersion has not", async () => {
    await using rig = newRig({ notifyUnchanged: false });
    rig.source.add({ metadata: { name: "a", uid: "first" } });
    const { recorder } = rig.record();
    await rig.start();
    recorder.take();
    const [{ metadata }] = rig.informer.indexer.list();
    rig.source.list = () =>
      Promise.resolve({
        metadata: { resourceVersion: "5" },
        items: [{ metadata: { ...metadata, uid: "second" } }],
      });
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(recorder.take(), ["update a@1>1"]);
  });
});
