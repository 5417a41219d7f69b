import assert from "node:assert/strict";
import type { KubernetesObject } from "@listwatch/cache";
import { DeltaFIFO } from "@listwatch/cache/queue";
import { named, newRig, type RigOptions, text } from "./rig.ts";
import { describe, it } from "./storages.ts";

/** Throws for the next object that it sees, when it is set to. */
function newDoubter() {
  const doubter = {
    throwsNext: false,
    check<T>(value: T): T {
      if (!doubter.throwsNext) return value;
      doubter.throwsNext = false;
      throw new Error("not this time");
    },
  };
  return doubter;
}

const queues: Readonly<Record<string, RigOptions<"byTeam">>> = {
  "the ordered queue": {},
  "a DeltaFIFO": { queue: (context) => new DeltaFIFO(context) },
};

for (const [queue, options] of Object.entries(queues)) {
  describe(`a change that was refused once, with ${queue},`, () => {
    for (const by of ["an index function", "the transform"]) {
      for (const change of ["an update", "an add"]) {
        it(`is listed after a minute, though nothing changes again: ${change}, by ${by}`, async () => {
          const doubter = newDoubter();
          await using rig = newRig<"byTeam">({
            ...options,
            ...(by === "the transform" && { transform: (object: KubernetesObject) => doubter.check(object) }),
            indexers: {
              byTeam: ({ metadata }) => {
                if (by === "an index function") doubter.check(undefined);
                return [metadata?.labels?.team ?? ""];
              },
            },
          });
          rig.source.add(named("a", { team: "one" }));
          const { recorder } = rig.record();
          await rig.start();
          recorder.take();
          doubter.throwsNext = true;
          if (change === "an update") rig.source.modify(named("a", { team: "two" }));
          else rig.source.add(named("b", { team: "two" }));
          await rig.settle();
          assert.deepEqual(recorder.take(), []);
          assert.deepEqual(rig.informer.indexer.byIndex("byTeam", "two"), []);
          assert.equal(rig.informer.status().quarantined, 1);
          await rig.clock.advance(59_999);
          assert.deepEqual(rig.informer.indexer.byIndex("byTeam", "two"), []);
          await rig.clock.advance(1);
          const [found] = rig.informer.indexer.byIndex("byTeam", "two").map(text);
          assert.equal(found, change === "an update" ? "a@2" : "b@2");
          assert.ok(recorder.take().includes(change === "an update" ? "update a@1>2" : "add b@2"));
        });
      }
    }
  });
}
