/**
 * Controllers over a set of namespaces.
 * @module
 */

import { NamespaceSet } from "@listwatch/cache";
import { type CachedClient, defineController, ownedBy } from "@listwatch/cache/controller";
import { FakeClock, hang, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ConfigMap, startRig, type Widget, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

function newServer() {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  return { clock, server: new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] }) };
}

/** Makes a ConfigMap for each Widget, and reads it in the next reconcile. */
function define(namespaces: NamespaceSet, reconciled: string[] = []) {
  return (cluster: Parameters<Parameters<typeof startRig>[0]>[0]) =>
    defineController({
      name: "widgets",
      for: cluster.resource<Widget>(WIDGETS, { namespaces }),
      owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps", { namespaces }) },
      async reconcile(object, { key, configMaps }) {
        reconciled.push(key);
        const name = `widget-${object.metadata?.name}`;
        const present = await configMaps.get(name);
        if (present === undefined) await configMaps.create({ metadata: { name, ...ownedBy(object) } });
        return present === undefined ? { requeueAfterMs: 0 } : { status: { ready: true } };
      },
    });
}

describe("Manager with controllers over a set of namespaces", () => {
  it("reconciles what is in them, reads its own writes, and follows the set", async () => {
    const shared = newServer();
    const { server } = shared;
    for (const namespace of ["a", "b", "c"]) server.create(WIDGETS, widget("one", "red", { namespace }));
    const namespaces = new NamespaceSet(["a", "b"]);
    await using rig = startRig(define(namespaces), {}, shared);
    const maps = () => server.list("v1/configmaps").items.map(({ metadata }) => metadata?.namespace).sort();
    await rig.until(() => maps().length === 2 && rig.manager.pending === 0);
    assert.deepEqual(maps(), ["a", "b"]);
    assert.equal(rig.writes().filter((write) => write.startsWith("POST")).length, 2);
    namespaces.set(["b", "c"]);
    await rig.until(() => maps().length === 3 && rig.manager.pending === 0);
    server.delete("v1/configmaps", "b/widget-one");
    await rig.until(() => maps().length === 3, 5_000); // its owner was reconciled, and made it again
    server.delete("v1/configmaps", "a/widget-one");
    await rig.until(() => rig.manager.pending === 0);
    assert.deepEqual(maps(), ["b", "c"]);
  });

  it("waits for the namespace that it wrote to, and for no quiet one", async () => {
    const shared = newServer();
    const { server, clock } = shared;
    const namespaces = new NamespaceSet(["a", "quiet"]);
    await using rig = startRig(define(namespaces), {}, shared);
    await rig.until(() => rig.manager.status().isLeading);
    server.create(WIDGETS, widget("one", "red", { namespace: "a" }));
    const startMs = clock.monotonicNow();
    await rig.until(() => server.get<Widget>(WIDGETS, "a/one")?.status?.ready === true, 1_000);
    assert.ok(clock.monotonicNow() - startMs < 1_000);
    assert.deepEqual(rig.lines.filter((line) => line.startsWith("warn")), []);
  });

  it("says which namespace keeps it from being ready", async () => {
    const shared = newServer();
    shared.server.intercept(
      () => new Response(JSON.stringify({ kind: "Status", code: 403, reason: "Forbidden" }), { status: 403 }),
      { match: ({ path }) => path.includes("/namespaces/secret/") },
    );
    await using rig = startRig(define(new NamespaceSet(["a", "secret"])), {}, shared);
    await rig.until(() => rig.manager.caches.every(({ informer }) => informer.failure() !== undefined));
    const answer = await rig.manager.fetch(new Request("http://localhost/readyz"));
    assert.equal(answer.status, 500);
    assert.match(await answer.text(), /widgets in 2 namespaces is not complete: .* in "secret"/);
  });

  it("is not ready while a namespace that has joined was not listed", async () => {
    const shared = newServer();
    shared.server.intercept(hang(), { match: ({ path }) => path.includes("/namespaces/slow/") });
    const namespaces = new NamespaceSet(["a"]);
    await using rig = startRig(define(namespaces), {}, shared);
    await rig.until(() => rig.manager.status().isLeading);
    namespaces.set(["a", "slow"]);
    await rig.clock.advance(100);
    assert.match(
      rig.manager.status().problems[0],
      /^the cache of .*widgets in 1 namespaces is not complete$/,
    );
  });
});

describe("CachedClient, of a resource in one namespace,", () => {
  /** A controller whose ConfigMaps are those of `shop`. */
  const reads = (reconcile: (configMaps: CachedClient<ConfigMap, never>) => Promise<unknown>) => {
    const shared = newServer();
    shared.server.create(WIDGETS, widget("one", "red"));
    const rig = startRig(
      (cluster) =>
        defineController({
          name: "reads",
          for: cluster.resource<Widget>(WIDGETS),
          owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps", { namespace: "shop" }) },
          reconcile: async (_, { configMaps }) => void await reconcile(configMaps),
        }),
      {},
      shared,
    );
    return rig;
  };

  it("reads what is in another one from the server", async () => {
    const found: unknown[] = [];
    await using rig = reads(async (configMaps) => {
      const name = (object?: ConfigMap) => object?.metadata?.name;
      found.push(name(await configMaps.get("there", { namespace: "other" })));
      found.push((await configMaps.list({ namespace: "other" })).map(name));
      found.push(await configMaps.get("there", { namespace: "shop" }));
    });
    rig.server.create("v1/configmaps", { metadata: { name: "there", namespace: "other" } });
    await rig.until(() => found.length === 3);
    assert.deepEqual(found, ["there", ["there"], undefined]);
  });

  it("reads what is in its own one from the cache, and asks the server for nothing", async () => {
    const found: unknown[] = [];
    await using rig = reads(async (configMaps) => {
      found.push((await configMaps.list({ namespace: "shop" })).map(({ metadata }) => metadata?.name));
      found.push((await configMaps.get("own"))?.metadata?.name);
    });
    rig.server.create("v1/configmaps", { metadata: { name: "own", namespace: "shop" } });
    await rig.until(() => found.length === 2);
    assert.deepEqual(found, [["own"], "own"]);
    const asked = rig.server.requests.filter(({ path, isWatch }) => path.includes("/configmaps") && !isWatch);
    assert.deepEqual(asked.map(({ path }) => path), []);
  });

  it("does not wait for what it wrote to another one", async () => {
    const found: unknown[] = [];
    const metadata = { name: "made", namespace: "other" };
    await using rig = reads(async (configMaps) => {
      const made = await configMaps.get("made", { namespace: "other" });
      found.push(made?.metadata?.name);
      if (made !== undefined) return;
      await configMaps.create({ metadata });
      throw new Error("again");
    });
    await rig.until(() => found.length === 2, 1_000);
    assert.deepEqual(found, [undefined, "made"]);
  });

  it("fails where a page of that follows itself", async () => {
    let pages = 0;
    await using rig = reads((configMaps) => configMaps.list({ namespace: "other" }));
    const metadata = { resourceVersion: "5", continue: "again" };
    rig.server.intercept(() => Response.json({ metadata: pages++ < 100 ? metadata : {}, items: [] }), {
      match: ({ path }) => path === "/api/v1/namespaces/other/configmaps",
    });
    await rig.until(() => rig.lines.some((line) => line.includes("Cannot list: a page follows itself")));
    assert.ok(pages < 10);
  });
});
