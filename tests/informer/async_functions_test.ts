import assert from "node:assert/strict";
import { type IndexFunc, type KubernetesObject, metaNamespaceKey, newCluster } from "@listwatch/cache";
import type { SharedIndexInformerOptions } from "@listwatch/cache";
import { indexFuncToKeyFunc, newIndexer } from "@listwatch/cache/store";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { newRig, startObserved } from "./rig.ts";
import { describe, it } from "./storages.ts";

const rejects = () => Promise.reject(new Error("it is async"));

/** What programs without types return from an index function, and what the error says. */
const WRONG: Readonly<Record<string, [indexFunc: (pod: KubernetesObject) => unknown, says: RegExp]>> = {
  "a promise": [async ({ metadata }) => [await metadata?.name], /it must return no promise/],
  "a promise that rejects": [rejects, /it must return no promise/],
  "a list with a promise that rejects": [() => [rejects()], /it must return no promise/],
  "a text": [({ metadata }) => metadata?.name, /must return an array of strings, not string/],
  "nothing": [() => undefined, /must return an array of strings, not undefined/],
  "a list of numbers": [() => [1], /must return an array of strings, but value 0 is of type number/],
};

/** As many as it takes until informers look at what an index function reads. */
const MANY = 1_100;

describe("IndexFunc", () => {
  for (const [name, [wrong, says]] of Object.entries(WRONG)) {
    const byWrong = wrong as IndexFunc<KubernetesObject>;

    it(`that returns ${name} quarantines the objects with an error that says so, and the program lives on`, async () => {
      using server = new InMemoryApiServer();
      for (let i = 0; i < MANY; i++) server.create("v1/pods", pod(`web-${i}`));
      const reasons = new Set<string>();
      const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
      const options: SharedIndexInformerOptions<KubernetesObject, "byWrong"> = {
        indexers: { byWrong },
        reflector: { onQuarantined: ({ reason }) => reasons.add(reason) },
      };
      const { clock, informer, stop } = await startObserved(pods, options);
      await clock.until(() => informer.hasSynced());
      assert.equal(informer.status().quarantined, MANY);
      assert.deepEqual(informer.indexer.listKeys(), []);
      assert.equal(reasons.size, MANY);
      for (const reason of reasons) assert.match(reason, says);
      await stop();
    });

    it(`that returns ${name} is an error of a store, of a lookup, and as a key function`, () => {
      const store = newIndexer<KubernetesObject, "byWrong">(metaNamespaceKey, { byWrong });
      assert.throws(() => store.add(pod("web-1")), { name: "IndexFuncError", message: says });
      assert.throws(() => store.index("byWrong", pod("web-1")), says);
      assert.throws(() => indexFuncToKeyFunc(byWrong)(pod("web-1")), says);
    });
  }
});

describe("TransformFunc", () => {
  it("that is async quarantines the objects with an error that says so, and the program lives on", async () => {
    const reasons: string[] = [];
    await using rig = newRig({
      transform: rejects as unknown as (object: KubernetesObject) => KubernetesObject,
      reflector: { onQuarantined: ({ reason }) => reasons.push(reason) },
    });
    rig.source.add(pod("listed"));
    await rig.start();
    rig.source.add(pod("watched"));
    await rig.settle();
    assert.deepEqual(rig.informer.indexer.listKeys(), []);
    assert.equal(reasons.length, 2);
    for (const reason of reasons) assert.match(reason, /it must return no promise/);
  });
});

describe("KeyFunc", () => {
  it("that is async is an error that says so, and the program lives on", () => {
    const store = newIndexer<KubernetesObject>(rejects as unknown as typeof metaNamespaceKey, {});
    assert.throws(() => store.add(pod("web-1")), /it must return no promise/);
  });
});
