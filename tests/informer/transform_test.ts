/**
 * A transform runs once on an object, also where the known state stands in for one that was refused.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import { newInformer } from "@listwatch/cache/informer";
import { DeltaFIFO, RealFIFO } from "@listwatch/cache/queue";
import { FakeClock } from "@listwatch/cache/testing";

interface Item extends KubernetesObject {
  readonly seen: number;
}

const item = (name: string, version: number): Item => ({
  metadata: { name, uid: name, resourceVersion: String(version) },
  seen: 0,
});

/** Not idempotent: counts how often it saw an object. */
function counting(object: Item): Item {
  if (object.metadata?.labels?.bad) throw new Error("a transform that throws");
  return { ...object, seen: object.seen + 1 };
}

const bad = (object: Item): Item => ({ ...object, metadata: { ...object.metadata, labels: { bad: "yes" } } });

/** Who refuses an object of the second and the third list. */
type Refuser = "transform" | "source";

/** Three lists: in the second and the third an object is refused. The watch between them ends at once. */
function newSource(refuser: Refuser) {
  const lists = [
    [item("a", 1), item("b", 2)],
    [bad(item("a", 3)), item("b", 2)],
    [bad(item("a", 4)), item("b", 5)],
  ];
  let listed = 0;
  return {
    list: () => {
      const items = structuredClone(lists[Math.min(listed, 2)]);
      const metadata = { resourceVersion: String(10 * ++listed) };
      if (refuser === "transform" || listed === 1) return Promise.resolve({ metadata, items });
      const quarantined = [{ key: "a", reason: "it is bad", path: "" }];
      return Promise.resolve({ metadata, items: items.slice(1), quarantined });
    },
    watch: (options: { sendInitialEvents?: boolean }) => {
      if (options.sendInitialEvents) return Promise.reject(new Error("not here"));
      return Promise.resolve((async function* () {
        if (listed > 2) await new Promise(() => {});
        yield [
          {
            type: "ERROR",
            object: { kind: "Status", status: "Failure", code: 410, reason: "Expired" },
          } as never,
        ];
      })());
    },
    get listed() {
      return listed;
    },
  };
}

type Options = SharedIndexInformerOptions<Item>;

describe("SharedIndexInformerOptions.transform that is not idempotent", () => {
  const queues: Record<string, Options> = {
    "the usual queue": {},
    "objects encoded": { storage: shortTexts() },
    "a DeltaFIFO": { queue: (context) => new DeltaFIFO<Item>({ ...context, emitDeltaTypeReplaced: true }) },
    "a RealFIFO that is not atomic": { queue: (context) => new RealFIFO<Item>(context) },
    "turns of one object": { turnObjects: 1 },
  };
  const cases = Object.entries(queues).flatMap(([name, options]) =>
    (["transform", "source"] as const).map((refuser) => ({ name, options, refuser }))
  );
  for (const { name, options, refuser } of cases) {
    it(`is not run again on the known state where the ${refuser} refuses an object: ${name}`, async () => {
      const clock = new FakeClock();
      const source = newSource(refuser);
      const informer = new SharedIndexInformer<Item>(source, {
        ...options,
        clock,
        logger: silentLogger,
        transform: counting,
        reflector: { random: () => 0 },
      });
      await using _running = informer.start();
      await clock.advance(0);
      while (source.listed < 3) await clock.advance(1_000);
      await clock.advance(1_000);
      const seen = (name: string) => {
        const { seen, metadata } = informer.indexer.getByKey(name)!;
        return [seen, metadata!.resourceVersion];
      };
      assert.deepEqual([seen("a"), seen("b")], [[1, "1"], [1, "5"]]);
    });
  }

  it("is not run again in a plain informer either", async () => {
    const clock = new FakeClock();
    const source = newSource("source");
    const [store, controller] = newInformer<Item>({
      listerWatcher: source,
      handler: {},
      transform: counting,
      reflector: { clock, logger: silentLogger, random: () => 0 },
    });
    const stop = new AbortController();
    const done = controller.run(stop.signal);
    await clock.advance(0);
    while (source.listed < 3) await clock.advance(1_000);
    await clock.advance(1_000);
    assert.deepEqual([store.getByKey("a")?.seen, store.getByKey("b")?.seen], [1, 1]);
    stop.abort();
    await done;
  });
});
