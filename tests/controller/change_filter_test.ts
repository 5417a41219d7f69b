import type { Cluster } from "@listwatch/cache";
import { type ChangeFilter, type ControllerDefinition, defineController } from "@listwatch/cache/controller";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ConfigMap, type Rig, startRig, type Widget, widget } from "./rig.ts";
import { WIDGETS } from "../widgets.ts";

const MAPS = "v1/configmaps";

/** Changes of one object, each with what it changes. */
const CHANGES: Readonly<Record<string, object>> = {
  spec: { spec: { color: "blue" } },
  status: { status: { ready: true } },
  labels: { metadata: { labels: { team: "shop" } } },
  annotations: { metadata: { annotations: { note: "1" } } },
  finalizers: { metadata: { finalizers: ["example.com/other"] } },
};

/** A controller that counts its reconciles. */
function counting(
  options: (cluster: Cluster) => Partial<Parameters<typeof defineController<Widget>>[0]>,
): { readonly define: (cluster: Cluster) => ControllerDefinition; readonly keys: string[] } {
  const keys: string[] = [];
  const define = (cluster: Cluster) =>
    defineController<Widget>({
      name: "widgets",
      for: cluster.resource<Widget>(WIDGETS),
      reconcile: (_object, { key }) => void keys.push(key),
      ...options(cluster),
    });
  return { define, keys };
}

async function keysAfter(rig: Rig, keys: string[], act: () => void): Promise<string[]> {
  await rig.clock.advance(1_000);
  keys.length = 0;
  act();
  await rig.clock.advance(1_000);
  return [...keys];
}

describe("ControllerOptions.when", () => {
  const cases: [ChangeFilter<Widget>, readonly string[]][] = [
    ["generation", ["spec"]],
    ["labels", ["labels"]],
    ["metadata", ["labels", "annotations", "finalizers"]],
    ["generationOrMetadata", ["spec", "labels", "annotations", "finalizers"]],
    [(before, after) => before.status?.ready !== after.status?.ready, ["status"]],
  ];
  for (const [when, expected] of cases) {
    it(`lets ${typeof when === "string" ? when : "a function's changes"} through`, async () => {
      const { define, keys } = counting(() => ({ when }));
      await using rig = startRig(define);
      rig.server.create(WIDGETS, widget("a", "red"));
      const counted: string[] = [];
      for (const [name, patch] of Object.entries(CHANGES)) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        const after = await keysAfter(rig, keys, () => rig.server.patch(WIDGETS, "shop/a", { ...patch }));
        if (after.length > 0) counted.push(name);
      }
      assert.deepEqual(counted, expected);
    });
  }

  it("lets every resync through", async () => {
    const { define, keys } = counting(() => ({ when: () => false, resyncPeriodMs: 10_000 }));
    await using rig = startRig(define);
    rig.server.create(WIDGETS, widget("a", "red", { finalizers: ["example.com/other"] }));
    await rig.clock.advance(1_000);
    assert.deepEqual(keys, ["shop/a"]);
    await rig.clock.advance(20_000);
    assert.deepEqual(keys, ["shop/a", "shop/a", "shop/a"]);
  });

  it("refuses a name that it does not know", () => {
    assert.throws(
      () => startRig(counting(() => ({ when: "spec" as never })).define),
      /Cannot filter changes by "spec": write one of generation, labels, metadata/,
    );
  });
});

describe("Watched.when", () => {
  const mapsBy = (when: ChangeFilter<ConfigMap>) =>
    counting((cluster) => ({
      watches: {
        maps: { resource: cluster.resource<ConfigMap>(MAPS), keys: () => ["shop/a"], when },
      } as never,
    }));

  it("may be a name, too", async () => {
    const { define, keys } = mapsBy("labels");
    await using rig = startRig(define);
    rig.server.create(WIDGETS, widget("a", "red"));
    rig.server.create<ConfigMap>(MAPS, { metadata: { namespace: "shop", name: "m" } });
    const patch = (change: object) => () => void rig.server.patch(MAPS, "shop/m", { ...change });
    assert.deepEqual(await keysAfter(rig, keys, patch({ data: { color: "red" } })), []);
    assert.deepEqual(await keysAfter(rig, keys, patch(CHANGES.labels)), ["shop/a"]);
    assert.deepEqual(rig.lines, []);
  });

  it("lets the beginning of a deletion through", async () => {
    const { define, keys } = mapsBy(() => false);
    await using rig = startRig(define);
    rig.server.create(WIDGETS, widget("a", "red"));
    const metadata = { namespace: "shop", name: "m", finalizers: ["example.com/other"] };
    rig.server.create<ConfigMap>(MAPS, { metadata });
    assert.deepEqual(await keysAfter(rig, keys, () => rig.server.delete(MAPS, "shop/m")), ["shop/a"]);
  });
});

describe("ControllerOptions.owns", () => {
  it("reconciles an owner once for a change, and both owners of an object that moves", async () => {
    const { define, keys } = counting((cluster) => ({
      owns: { maps: cluster.resource<ConfigMap>(MAPS) } as never,
    }));
    await using rig = startRig(define);
    const refs = ["a", "b"].map((name) => {
      const { metadata: { uid = "" } = {} } = rig.server.create(WIDGETS, widget(name, "red"));
      return { apiVersion: "example.com/v1", kind: "Widget", name, uid, controller: true };
    });
    rig.server.create<ConfigMap>(MAPS, {
      metadata: { namespace: "shop", name: "m", ownerReferences: [refs[0]] },
    });
    const patch = (change: object) => () => void rig.server.patch(MAPS, "shop/m", { ...change });
    assert.deepEqual(await keysAfter(rig, keys, patch({ data: { color: "blue" } })), ["shop/a"]);
    const moved = patch({ metadata: { ownerReferences: [refs[1]] } });
    assert.deepEqual(await keysAfter(rig, keys, moved), ["shop/a", "shop/b"]);
  });
});
