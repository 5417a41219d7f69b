import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type KubernetesObject, newCluster } from "@listwatch/cache";
import { serve, type Served, type ServeStep } from "@listwatch/cache/cli";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { defineWidgets, newWidget } from "./widgets.ts";

interface List {
  readonly items: readonly KubernetesObject[];
}

describe("ServeOptions.snapshot on a real API server", { skip: skipWithoutOwnServer }, () => {
  let connection: OwnConnection;
  let namespace: string;
  let group: string;
  let folder: string;
  before(async () => {
    connection = await startOwn();
    [namespace] = await connection.createNamespaces("kept");
    group = `${connection.uniqueName("kept")}.example.com`;
    folder = await mkdtemp(join(tmpdir(), "listwatch-kept-"));
    const widgets = await defineWidgets(connection, group);
    for (let i = 0; i < 5; i++) {
      await configMaps().create({ metadata: { name: `item-${i}`, namespace, labels: connection.labels } });
      await widgets.create(newWidget(group, `widget-${i}`, { namespace, size: i }));
    }
  });
  after(async () => {
    await connection?.[Symbol.asyncDispose]();
    if (folder) await rm(folder, { recursive: true });
  });

  function configMaps() {
    return connection.cluster.resource<KubernetesObject>("v1/configmaps", { namespace, keep: "everything" });
  }

  async function start(steps: ServeStep[] = []): Promise<Served> {
    return await serve({
      source: { kind: "kubeconfig", path: connection.kubeconfigPath },
      resources: ["configmaps", `widgets.${group}`],
      namespace,
      port: 0,
      snapshot: join(folder, "snapshots"),
      onStep: (step) => steps.push(step),
    });
  }

  async function listed(served: Served, path: string): Promise<List> {
    return await newCluster({ server: served.url }).request(path) as List;
  }

  it(
    "starts while the API server is down, and catches up when it is back",
    { timeout: 120_000 },
    async () => {
      const paths = [
        `/api/v1/namespaces/${namespace}/configmaps`,
        `/apis/${group}/v1/namespaces/${namespace}/widgets`,
      ];
      const first = await start();
      await first.synced(AbortSignal.timeout(30_000));
      const known = await Promise.all(paths.map((path) => listed(first, path)));
      await first.stop();

      await connection.server.kill();
      const steps: ServeStep[] = [];
      await using served = await start(steps);
      assert.equal(steps[0].type, "away");
      await eventually(async () => {
        for (const [i, path] of paths.entries()) {
          assert.deepEqual((await listed(served, path)).items, known[i].items);
        }
      });
      const response = await fetch(served.url + paths[0]);
      assert.equal(response.headers.get("Cache-Synced"), "false");
      await response.body?.cancel();

      await connection.server.restart();
      await configMaps().delete("item-0");
      await configMaps().create({ metadata: { name: "late", namespace, labels: connection.labels } });
      await served.synced(AbortSignal.timeout(60_000));
      await eventually(async () => {
        for (const path of paths) {
          const { items } = await connection.cluster.request(path) as List;
          assert.deepEqual((await listed(served, path)).items, items);
        }
      });
    },
  );
});
