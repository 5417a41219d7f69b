import assert from "node:assert/strict";
import type { KubernetesObject, SharedIndexInformerOptions } from "@listwatch/cache";
import { DeltaFIFO, RealFIFO } from "@listwatch/cache/queue";
import type { ListerWatcher, WatchItem } from "@listwatch/cache/reflector";
import { startObserved } from "./rig.ts";
import { describe, it } from "./storages.ts";

type Item = WatchItem<KubernetesObject>;

function at(name: string, resourceVersion: string, label?: string): KubernetesObject {
  return { metadata: { name, resourceVersion, ...(label && { labels: { is: label } }) } };
}

interface Result {
  readonly calls: readonly string[];
  readonly keys: readonly string[];
  /** The store's resourceVersion. */
  readonly version: string;
  /** The reflector's resourceVersion. */
  readonly lastSync: string;
  readonly observed: readonly string[];
  readonly quarantined: number;
}

/** An informer whose watch has sent these items, all in one batch. */
async function after(
  items: readonly Item[],
  options: SharedIndexInformerOptions<KubernetesObject, "byLabel"> = {},
): Promise<Result> {
  const never = Promise.withResolvers<void>();
  const source: ListerWatcher<KubernetesObject> = {
    list: () => Promise.resolve({ metadata: { resourceVersion: "10" }, items: [at("old", "9")] }),
    watch: (_, { signal }) => {
      signal.addEventListener("abort", () => never.reject(signal.reason));
      return Promise.resolve((async function* () {
        yield items;
        await never.promise;
      })());
    },
  };
  const { informer, recorder, observed, stop } = await startObserved(source, options);
  const { quarantined } = informer.status();
  const result = {
    calls: recorder.calls.slice(1),
    keys: informer.indexer.listKeys(),
    version: informer.indexer.lastStoreSyncResourceVersion(),
    lastSync: informer.lastSyncResourceVersion(),
    observed: observed.slice(1),
    quarantined,
  };
  await stop();
  return result;
}

function refuseBad(object: KubernetesObject): KubernetesObject {
  if (object.metadata?.labels?.is === "bad") throw new Error("bad");
  return object;
}

const indexers = {
  byLabel: (object: KubernetesObject) => [refuseBad(object).metadata?.labels?.is ?? ""],
};

describe("SharedIndexInformer: a delete that cannot be accepted as it is", () => {
  it("deletes by its key where the source refused its object", async () => {
    const quarantined = {
      reason: "no text",
      path: "object.metadata.labels",
      key: "old",
      resourceVersion: "11",
      eventType: "DELETED",
    };
    const result = await after([{ type: "QUARANTINED", quarantined }]);
    assert.deepEqual(result.calls, ["tombstone old@9"]);
    assert.deepEqual(result.keys, []);
    assert.deepEqual([result.version, result.lastSync], ["11", "11"]);
    assert.equal(result.quarantined, 1);
  });

  it("brings the last state that was seen, also if that still waits in the queue", async () => {
    const quarantined = {
      reason: "no text",
      path: "",
      key: "old",
      resourceVersion: "12",
      eventType: "DELETED",
    };
    const queues: SharedIndexInformerOptions<KubernetesObject, "byLabel">["queue"][] = [
      undefined,
      (context) => new DeltaFIFO(context),
      ({ onTransformFailure: _, transform: __, ...context }) => new RealFIFO(context),
    ];
    for (const queue of queues) {
      const result = await after([
        { type: "MODIFIED", object: at("old", "11") },
        { type: "QUARANTINED", quarantined },
      ], queue === undefined ? {} : { queue });
      assert.deepEqual(result.calls, ["update old@9>11", "tombstone old@11"]);
    }
  });

  for (const queue of ["RealFIFO", "DeltaFIFO"] as const) {
    it(`deletes by its key where the transform throws for its object (${queue})`, async () => {
      const result = await after([{ type: "DELETED", object: at("old", "11", "bad") }], {
        transform: refuseBad,
        ...(queue === "DeltaFIFO" && { queue: (context) => new DeltaFIFO(context) }),
      });
      assert.deepEqual(result.calls, ["tombstone old@9"]);
      assert.deepEqual(result.keys, []);
      assert.equal(result.quarantined, 1);
    });
  }
});

describe("SharedIndexInformer: the delete of an object that was quarantined", () => {
  const items: readonly Item[] = [
    { type: "ADDED", object: at("new", "11", "bad") },
    { type: "DELETED", object: at("new", "12") },
  ];

  it("notifies no handler if the transform threw for it", async () => {
    const result = await after(items, { transform: refuseBad });
    assert.deepEqual(result.calls, []);
    assert.deepEqual(result.keys, ["old"]);
    assert.deepEqual(result.observed, ["bookmark"]);
    assert.equal(result.version, "12");
  });

  it("notifies no handler if an index function threw for it", async () => {
    const result = await after(items, { indexers });
    assert.deepEqual(result.calls, []);
    assert.deepEqual(result.observed, ["bookmark"]);
    assert.equal(result.version, "12");
  });

  it("notifies all if a later state of it was accepted", async () => {
    const [added, deleted] = items;
    const accepted: Item = { type: "MODIFIED", object: at("new", "11") };
    for (const options of [{ transform: refuseBad }, { indexers }]) {
      const result = await after([added, accepted, deleted], options);
      assert.deepEqual(result.calls, ["add new@11", "delete new@12"]);
      assert.deepEqual(result.keys, ["old"]);
    }
  });

  it("notifies no handler where a later one of its name came while the list was being stored", async () => {
    const never = Promise.withResolvers<void>();
    const isRefused = Promise.withResolvers<void>();
    const names = Array.from({ length: 20 }, (_, i) => `old-${i}`);
    const source: ListerWatcher<KubernetesObject> = {
      list: () => {
        const items = [at("new", "9", "bad"), ...names.map((name) => at(name, "9"))];
        return Promise.resolve({ metadata: { resourceVersion: "10" }, items });
      },
      watch: (_, { signal }) => {
        signal.addEventListener("abort", () => never.reject(signal.reason));
        return Promise.resolve((async function* (): AsyncGenerator<Item[]> {
          yield [{ type: "DELETED", object: at("new", "11") }];
          await isRefused.promise;
          yield [{ type: "ADDED", object: at("new", "12") }];
          await never.promise;
        })());
      },
    };
    const { informer, recorder, stop } = await startObserved(source, {
      turnObjects: 1,
      indexers: {
        byLabel: (object) => {
          if (object.metadata?.labels?.is === "bad") isRefused.resolve();
          return [refuseBad(object).metadata?.labels?.is ?? ""];
        },
      },
    });
    await informer.waitForVersion("12");
    assert.deepEqual(recorder.calls.slice(names.length), ["add new@12"]);
    await stop();
  });

  it("is still one of an unknown object, if nothing was quarantined", async () => {
    const result = await after([{ type: "DELETED", object: at("unknown", "12") }]);
    assert.deepEqual(result.calls, ["delete unknown@12"]);
  });
});
