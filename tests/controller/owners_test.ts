import type { KubernetesObject } from "@listwatch/cache";
import { defineController, ownedBy } from "@listwatch/cache/controller";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Rig, startRig, widget } from "./rig.ts";
import { WIDGETS } from "../widgets.ts";

const MAPS = "v1/configmaps";

/** A manager of one resource that owns ConfigMaps, and the keys that it reconciled. */
function startWith(resource: string): { readonly rig: Rig; readonly keys: string[] } {
  const keys: string[] = [];
  const rig = startRig((cluster) =>
    defineController({
      name: "owners",
      for: cluster.resource<KubernetesObject>(resource as "v1/nodes"),
      owns: { maps: cluster.resource<KubernetesObject>(MAPS) },
      reconcile: (_, { key }) => void keys.push(key),
    })
  );
  return { rig, keys };
}

describe("ControllerOptions.owns", () => {
  it("reconciles an owner that is in no namespace", async () => {
    const { rig, keys } = startWith("v1/nodes");
    await using _ = rig;
    const owner = rig.server.create("v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "n1" } });
    await rig.until(() => keys.length === 1);
    rig.server.create(MAPS, { metadata: { name: "m", namespace: "shop", ...ownedBy(owner) } });
    await rig.until(() => keys.length === 2, 1_000);
    rig.server.delete(MAPS, "shop/m");
    await rig.until(() => keys.length === 3, 1_000);
    assert.deepEqual(keys, ["n1", "n1", "n1"]);
  });

  it("reconciles no other object that has the owner's name, and no owner that is not the controller", async () => {
    const { rig, keys } = startWith(WIDGETS);
    await using _ = rig;
    const owner = rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => keys.length === 1);
    const [reference] = ownedBy(owner).ownerReferences;
    const strangers = [{ ...reference, uid: "another" }, { ...reference, controller: false }];
    for (const [i, stranger] of strangers.entries()) {
      rig.server.create(MAPS, {
        metadata: { name: `m${i}`, namespace: "shop", ownerReferences: [stranger] },
      });
    }
    await rig.clock.advance(1_000);
    assert.deepEqual(keys, ["shop/a"]);
    rig.server.create(MAPS, { metadata: { name: "own", namespace: "shop", ownerReferences: [reference] } });
    await rig.until(() => keys.length === 2, 1_000);
  });
});

describe("CachedReader.owned", () => {
  it("has what the object controls, and nothing of which it is one more owner", async () => {
    const owned: string[][] = [];
    await using rig = startRig((cluster) =>
      defineController({
        name: "owners",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        owns: { maps: cluster.resource<KubernetesObject>(MAPS) },
        async reconcile(_, { maps }) {
          owned.push((await maps.owned()).map(({ metadata }) => metadata?.name ?? ""));
        },
      })
    );
    const [reference] = ownedBy(rig.server.create(WIDGETS, widget("a", "red"))).ownerReferences;
    for (const controller of [false, true]) {
      const ownerReferences = [{ ...reference, controller }];
      rig.server.create(MAPS, { metadata: { name: `m-${controller}`, namespace: "shop", ownerReferences } });
    }
    await rig.clock.advance(1_000);
    assert.deepEqual(owned.at(-1), ["m-true"]);
  });
});

describe("ownedBy", () => {
  const owner = { apiVersion: "v1", kind: "Node", metadata: { name: "n1", uid: "u1" } };

  it("is the controlling owner, as a server has it", () => {
    assert.deepEqual(ownedBy(owner).ownerReferences, [
      { apiVersion: "v1", kind: "Node", name: "n1", uid: "u1", controller: true, blockOwnerDeletion: true },
    ]);
  });

  it("refuses an object that was not read: any of its four fields may be missing", () => {
    const wrong: KubernetesObject[] = [
      { ...owner, apiVersion: "" },
      { kind: owner.kind, metadata: owner.metadata },
      { apiVersion: owner.apiVersion, metadata: owner.metadata },
      { ...owner, metadata: { uid: "u1" } },
      { ...owner, metadata: { name: "n1" } },
      {},
    ];
    for (const object of wrong) assert.throws(() => ownedBy(object), TypeError, JSON.stringify(object));
    assert.throws(() => ownedBy({ metadata: { name: "a\n" } }), {
      message: /^Cannot make "a\\n" an owner: /,
    });
    assert.throws(() => ownedBy({}), { message: /^Cannot make "" an owner: / });
  });
});
