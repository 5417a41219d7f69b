/**
 * Managers of several clusters.
 * @module
 */

import { type Cluster, newCluster } from "@listwatch/cache";
import { defineController, Manager, type ManagerOptions } from "@listwatch/cache/controller";
import { FakeClock, InMemoryApiServer, refuseConnection } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ConfigMap, type Widget, widget, widgetController } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

class Clusters implements AsyncDisposable {
  readonly clock = new FakeClock(Date.UTC(2026, 0, 1));
  readonly servers: Record<string, InMemoryApiServer> = {};
  readonly clusters: Record<string, Cluster> = {};
  readonly lines: string[] = [];
  #manager: Manager | undefined;

  constructor(...names: readonly string[]) {
    for (const name of names) {
      const server = new InMemoryApiServer({ clock: this.clock, customResources: [WIDGET_RESOURCE] });
      this.servers[name] = server;
      this.clusters[name] = newCluster({ server: `http://${name}`, fetch: server.fetch, clock: this.clock });
    }
  }

  run(
    define: (cluster: Cluster) => ReturnType<typeof widgetController>,
    options: Partial<ManagerOptions> = {},
  ): Manager {
    const { clusters, clock } = this;
    const [first] = Object.values(clusters);
    const log = (message: string) => void this.lines.push(message);
    const manager = this.#manager = new Manager(first, {
      controllers: [define(first)],
      clusters,
      clock,
      random: () => 0.5,
      logger: { debug: () => {}, info: log, warn: log, error: log },
      ...options,
    });
    manager.run().catch((error) => this.lines.push(String(error)));
    return manager;
  }

  async until(isSo: () => boolean, withinMs = 60_000): Promise<void> {
    for (let ms = 0; ms < withinMs && !isSo(); ms += 5) await this.clock.advance(5);
    assert.ok(isSo(), `not within ${withinMs} ms: ${isSo}\n${this.lines.join("\n")}`);
  }

  /** The ConfigMaps of a cluster. */
  maps(name: string): string[] {
    return this.servers[name].list("v1/configmaps").items.map(({ metadata }) => metadata!.name!);
  }

  async [Symbol.asyncDispose]() {
    const stopped = this.#manager?.stop();
    await this.clock.advance(30_000);
    await stopped;
    for (const server of Object.values(this.servers)) server.close();
  }
}

describe("Manager of several clusters", () => {
  it("runs a controller in each, with that one's clients, and keys that name it", async () => {
    await using rig = new Clusters("eu-1", "us-1");
    rig.servers["eu-1"].create(WIDGETS, widget("one", "red"));
    rig.servers["us-1"].create(WIDGETS, widget("one", "blue"));
    const keys: string[] = [];
    const manager = rig.run((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps") },
        async reconcile({ spec }, { key, cluster, configMaps }) {
          keys.push(key);
          await configMaps.apply({ metadata: { name: `of-${cluster}` }, data: { color: spec?.color ?? "" } });
          return { status: { ready: true } };
        },
      }), { leader: { lease: "widgets" } });
    await rig.until(() => rig.maps("eu-1").length === 1 && rig.maps("us-1").length === 1);
    await rig.until(() => manager.pending === 0);
    assert.deepEqual([...new Set(keys)].sort(), ["eu-1:shop/one", "us-1:shop/one"]);
    const of = (name: string) => rig.servers[name].get<ConfigMap>("v1/configmaps", `shop/of-${name}`)?.data;
    assert.deepEqual([of("eu-1"), of("us-1")], [{ color: "red" }, { color: "blue" }]);
    assert.equal(rig.servers["us-1"].get<Widget>(WIDGETS, "shop/one")?.status?.ready, true);
    // One lease, in the first one.
    assert.equal(rig.servers["eu-1"].list("coordination.k8s.io/v1/leases").items.length, 1);
    assert.equal(rig.servers["us-1"].list("coordination.k8s.io/v1/leases").items.length, 0);
  });

  it("is not held up by a cluster that is away, says which, and takes it in when it is back", async () => {
    await using rig = new Clusters("eu-1", "us-1");
    for (const server of Object.values(rig.servers)) server.create(WIDGETS, widget("one", "red"));
    const comeBack = rig.servers["us-1"].intercept(refuseConnection());
    const manager = rig.run(widgetController);
    await rig.until(() => rig.maps("eu-1").length === 1);
    const { clusters, hasSynced, isLeading } = manager.status();
    assert.deepEqual([hasSynced, isLeading], [false, true]);
    assert.deepEqual([clusters!["eu-1"].isReconciling, clusters!["us-1"].isReconciling], [true, false]);
    assert.deepEqual(clusters!["eu-1"].problems, []);
    const ready = await manager.fetch(new Request("http://localhost/readyz"));
    assert.equal(ready.status, 200);
    assert.match(await ready.text(), /^ok\nthe cache of us-1: example.com\/v1\/widgets is not complete: /);
    assert.deepEqual(rig.lines.filter((line) => line.includes("Cannot confirm")), []);
    comeBack();
    await rig.until(() => rig.maps("us-1").length === 1);
    await rig.until(() => manager.status().problems.length === 0);
    const reconciling = () =>
      Object.values(manager.status().clusters!).map(({ isReconciling }) => isReconciling);
    assert.deepEqual(reconciling(), [true, true]);
    const stopped = manager.stop();
    await rig.clock.advance(5_000);
    await stopped;
    assert.deepEqual(reconciling(), [false, false]);
  });

  it("lets what runs end at a stop, also while another cluster is away", async () => {
    await using rig = new Clusters("eu-1", "us-1");
    rig.servers["eu-1"].create(WIDGETS, widget("one", "red"));
    rig.servers["us-1"].intercept(refuseConnection());
    let end: (() => void) | undefined;
    const manager = rig.run((cluster) =>
      defineController({
        name: "slow",
        for: cluster.resource<Widget>(WIDGETS),
        reconcile: () => new Promise<void>((resolve) => void (end = resolve)),
      })
    );
    await rig.until(() => end !== undefined);
    let hasEnded = false;
    const stopped = manager.stop().then(() => hasEnded = true);
    await rig.clock.advance(5_000);
    assert.equal(hasEnded, false);
    end!();
    await rig.clock.advance(1_100);
    await stopped;
    assert.deepEqual(rig.lines.filter((line) => /error|failed|aborted/i.test(line)), []);
  });

  it("is not ready while all clusters are away", async () => {
    await using rig = new Clusters("eu-1");
    rig.servers["eu-1"].intercept(refuseConnection());
    const manager = rig.run(widgetController);
    await rig.clock.advance(1_000);
    assert.equal((await manager.fetch(new Request("http://localhost/readyz"))).status, 500);
  });

  it("is not ready once it has ended, whatever the clusters are", async () => {
    await using rig = new Clusters("eu-1", "us-1");
    const manager = rig.run(widgetController);
    await rig.until(() => manager.status().problems.length === 0);
    const ready = async () => (await manager.fetch(new Request("http://localhost/readyz"))).status;
    assert.equal(await ready(), 200);
    const stopped = manager.stop();
    await rig.clock.advance(30_000);
    await stopped;
    assert.equal(await ready(), 500);
  });

  it("writes to other clusters, reads there what it wrote, and reconciles by their changes", async () => {
    await using rig = new Clusters("hub", "member");
    const { hub, member } = rig.servers;
    hub.create(WIDGETS, widget("one", "red"));
    let creations = 0;
    const manager = rig.run((cluster) =>
      defineController({
        name: "copies",
        for: cluster.resource<Widget>(WIDGETS),
        watches: {
          copies: {
            resource: cluster.resource<ConfigMap>("v1/configmaps"),
            keys: ({ metadata }) => [`hub:${metadata?.namespace}/${metadata?.name}`],
          },
        },
        async reconcile({ metadata }, { cluster, clusters }) {
          if (cluster !== "hub") return {};
          const name = metadata?.name ?? "";
          const copy = await clusters.member.self.get(name);
          if (copy !== undefined) return {};
          creations++;
          await clusters.member.self.create({ metadata: { name }, spec: { color: "copied" } });
          return { requeueAfterMs: 0 };
        },
      })
    );
    await rig.until(() => member.get(WIDGETS, "shop/one") !== undefined);
    await rig.until(() => manager.pending === 0);
    assert.equal(creations, 1);
    member.delete(WIDGETS, "shop/one");
    member.create("v1/configmaps", { metadata: { namespace: "shop", name: "one" } });
    await rig.until(() => creations === 2);
    assert.deepEqual(member.get<Widget>(WIDGETS, "shop/one")?.spec, { color: "copied" });
  });

  it("reads another cluster from its server until its cache is complete, and tries again while it is away", async () => {
    await using rig = new Clusters("hub", "member");
    const { hub, member } = rig.servers;
    hub.create(WIDGETS, widget("one", "red"));
    const comeBack = member.intercept(refuseConnection());
    const found: boolean[] = [];
    rig.run((cluster) =>
      defineController({
        name: "looks",
        for: cluster.resource<Widget>(WIDGETS),
        async reconcile({ metadata }, { cluster, clusters }) {
          if (cluster !== "hub") return;
          found.push(await clusters.member.self.get(metadata?.name ?? "") !== undefined);
        },
      })
    );
    await rig.until(() => rig.lines.some((line) => line.startsWith("Cannot reconcile hub:shop/one")));
    assert.deepEqual(found, []); // "there is none" would be a stale read
    member.create(WIDGETS, widget("one", "blue"));
    comeBack();
    await rig.until(() => found.length > 0);
    assert.equal(found[0], true);
  });

  it("ends when what runs in each cluster has, though another one has not started or has nothing to do", async () => {
    for (const isAway of [true, false]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using rig = new Clusters("eu-1", "us-1");
      rig.servers["eu-1"].create(WIDGETS, widget("one", "red"));
      if (isAway) rig.servers["us-1"].intercept(refuseConnection());
      const ends: (() => void)[] = [];
      const manager = rig.run((cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource<Widget>(WIDGETS),
          reconcile: () => new Promise<void>((end) => void ends.push(end)),
        })
      );
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => ends.length === 1);
      let hasEnded = false;
      void manager.stop().then(() => hasEnded = true);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(3_000);
      assert.deepEqual([hasEnded, manager.status().isLeading], [false, true]);
      ends[0]();
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(2_000);
      assert.equal(hasEnded, true);
      assert.deepEqual(rig.lines.filter((line) => line.includes("still run")), []);
    }
  });

  it("measures each cluster by its name, and names it in keys", async () => {
    await using rig = new Clusters("eu-1", "us-1");
    rig.servers["us-1"].create(WIDGETS, widget("one", "red"));
    const [queues, measured, keys]: string[][] = [[], [], []];
    const note = (name: string, _: number, labels: Readonly<Record<string, string>> = {}) => {
      if (name === "controller_runtime_reconcile_total" || name === "seen") {
        measured.push(JSON.stringify(labels));
      }
    };
    const metrics = {
      count: note,
      gauge: note,
      observe: note,
      queueMetrics: (name: string) => (queues.push(name), undefined as never),
    };
    const manager = rig.run(
      (cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource<Widget>(WIDGETS),
          reconcile(_, { key, cluster, clusters, metrics }) {
            metrics.count("seen");
            keys.push(`${key} ${cluster} ${Object.keys(clusters)}`);
          },
        }),
      { metrics },
    );
    await rig.until(() => keys.length === 1 && manager.pending === 0);
    assert.deepEqual(keys, ["us-1:shop/one us-1 eu-1,us-1"]);
    assert.deepEqual(queues.sort(), ["widgets@eu-1", "widgets@us-1"]);
    const labels = { controller: "widgets", cluster: "us-1" };
    assert.deepEqual(
      measured,
      [labels, { ...labels, result: "success" }].map((each) => JSON.stringify(each)),
    );
  });

  it("takes a key without the name of a cluster for one of its own, and waits for a cluster that is away", async () => {
    await using rig = new Clusters("eu-1", "us-1");
    for (const server of Object.values(rig.servers)) server.create(WIDGETS, widget("one", "red"));
    const comeBack = rig.servers["us-1"].intercept(refuseConnection());
    const keys: string[] = [];
    const manager = rig.run((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        watches: {
          maps: {
            resource: cluster.resource<ConfigMap>("v1/configmaps"),
            keys: ({ data }) => Object.values(data ?? {}),
          },
        },
        reconcile: (_, { key }) => void keys.push(key),
      })
    );
    const after = async (cluster: string, key: string) => {
      await rig.clock.advance(3_000);
      keys.length = 0;
      rig.servers[cluster].create("v1/configmaps", {
        metadata: { generateName: "m-", namespace: "shop" },
        data: { key },
      });
      await rig.clock.advance(3_000);
      return [...keys];
    };
    await rig.until(() => keys.length === 1);
    assert.deepEqual(await after("eu-1", "shop/one"), ["eu-1:shop/one"]);
    assert.deepEqual(await after("eu-1", "eu-1:shop/one"), ["eu-1:shop/one"]);
    assert.deepEqual(await after("eu-1", "us-1:shop/one"), []);
    assert.deepEqual(await after("eu-1", "other:shop/one"), []);
    assert.equal(manager.pending, 0);
    comeBack();
    await rig.until(() => keys.includes("us-1:shop/one"));
    assert.deepEqual(await after("eu-1", "us-1:shop/one"), ["us-1:shop/one"]);
    assert.deepEqual(await after("us-1", "shop/one"), ["us-1:shop/one"]);
    assert.deepEqual(rig.lines.filter((line) => line.includes("cannot map")), []);
  });

  it("refuses no clusters, and a name that is no label", () => {
    const cluster = newCluster({ server: "http://127.0.0.1:8001" });
    const controllers = [widgetController(cluster)];
    assert.throws(() => new Manager(cluster, { controllers, clusters: {} }), /it has no clusters/);
    assert.throws(
      () => new Manager(cluster, { controllers, clusters: { "a:b": cluster } }),
      /of a cluster of the name "a:b"/,
    );
  });
});
