import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type KubernetesObject, newCluster } from "@listwatch/cache";
import { serve, type ServeStep } from "@listwatch/cache/cli";
import { connect, type OwnConnection, skipWithoutOwnServer, type TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { defineWidgets, newWidget } from "./widgets.ts";

describe("listwatch serve on a real API server", () => {
  let connection: TestConnection;
  let namespace: string;
  let group: string;
  before(async () => {
    connection = await connect();
    [namespace] = await connection.createNamespaces("served");
    group = `${connection.uniqueName("served")}.example.com`;
    const widgets = await defineWidgets(connection, group);
    const configMaps = connection.cluster.resource<KubernetesObject>("v1/configmaps");
    const { labels } = connection;
    for (let i = 0; i < 5; i++) {
      await configMaps.create({ metadata: { name: `item-${i}`, namespace, labels } });
      await widgets.create(newWidget(group, `widget-${i}`, { namespace, size: i }));
    }
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it("serves the objects of a kubeconfig's cluster, custom resources too", { timeout: 60_000 }, async () => {
    const steps: ServeStep[] = [];
    await using served = await serveNamespace((step) => steps.push(step));
    await served.synced(AbortSignal.timeout(30_000));
    for (const path of paths()) await eventually(() => assertServed(served.url, path));
    assert.deepEqual(steps.slice(0, 2).map(({ type }) => type), ["connected", "listening"]);
    const { gitVersion } = await connection.cluster.request("/version") as Version;
    assert.equal(
      (await newCluster({ server: served.url }).request("/version") as Version).gitVersion,
      gitVersion,
    );
  });

  it("serves the copy while the API server is down, and catches up when it is back", {
    skip: skipWithoutOwnServer,
    timeout: 120_000,
  }, async () => {
    const { server } = connection as OwnConnection;
    const client = newConfigMaps();
    await using served = await serveNamespace();
    await served.synced(AbortSignal.timeout(30_000));
    const path = paths()[0];
    const known = await newCluster({ server: served.url }).request(path) as List;
    await server.kill();
    assert.deepEqual((await newCluster({ server: served.url }).request(path) as List).items, known.items);

    await server.restart();
    await client.delete("item-0");
    await client.create({ metadata: { name: "late", namespace, labels: connection.labels } });
    await eventually(() => assertServed(served.url, path));
  });

  it(
    "shows each reader what the cluster's RBAC permits, and the page only to readers who may list everything",
    {
      timeout: 60_000,
    },
    async () => {
      const { cluster } = connection;
      const name = connection.uniqueName("reader");
      await cluster.resource("v1/serviceaccounts").create({ metadata: { name, namespace } });
      const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
      const tokenPath = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
      const answer = await cluster.request(tokenPath, { method: "POST", body });
      const { token } = (answer as { status: { token: string } }).status;
      await cluster.resource<KubernetesObject & { rules: unknown }>("rbac.authorization.k8s.io/v1/roles")
        .create({
          metadata: { name, namespace },
          rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"] }],
        });
      await cluster.resource<KubernetesObject & { roleRef: unknown; subjects: unknown }>(
        "rbac.authorization.k8s.io/v1/rolebindings",
      ).create({
        metadata: { name, namespace },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name },
        subjects: [{ kind: "ServiceAccount", name, namespace }],
      });
      await using served = await serve({
        source: { kind: "kubeconfig", path: connection.kubeconfigPath },
        resources: ["cm", "pods"],
        clusterRbac: true,
        port: 0,
      });
      await served.synced(AbortSignal.timeout(30_000));
      const status = async (path: string, presented?: string): Promise<number> => {
        const headers: Record<string, string> = presented === undefined
          ? {}
          : { Authorization: `Bearer ${presented}` };
        const response = await fetch(served.url + path, { headers });
        await response.body?.cancel();
        return response.status;
      };
      const [configMaps] = paths();
      await eventually(async () => assert.equal(await status(configMaps, token), 200));
      assert.equal(await status("/api/v1/configmaps", token), 403);
      assert.equal(await status(`/api/v1/namespaces/${namespace}/pods`, token), 403);
      assert.equal(await status("/", token), 403);
      assert.equal(await status(configMaps, `${token}x`), 401);
      assert.equal(await status(configMaps), 401);
      assert.equal(await status("/"), 401);
    },
  );

  function serveNamespace(onStep: (step: ServeStep) => void = () => {}): ReturnType<typeof serve> {
    const source = { kind: "kubeconfig", path: connection.kubeconfigPath } as const;
    return serve({ source, resources: ["cm", "pods", `widgets.${group}`], namespace, port: 0, onStep });
  }

  function newConfigMaps() {
    return connection.cluster.resource<KubernetesObject>("v1/configmaps", { namespace });
  }

  function paths(): string[] {
    return [
      `/api/v1/namespaces/${namespace}/configmaps`,
      `/apis/${group}/v1/namespaces/${namespace}/widgets`,
    ];
  }

  async function assertServed(url: string, path: string): Promise<void> {
    const expected = await connection.cluster.request(path) as List;
    const actual = await newCluster({ server: url }).request(path) as List;
    assert.equal(actual.kind, expected.kind);
    assert.ok(expected.items.length >= 5);
    assert.deepEqual(actual.items.map(identity), expected.items.map(identity));
  }
});

interface Version {
  readonly gitVersion: string;
}

interface List {
  readonly kind: string;
  readonly items: KubernetesObject[];
}

function identity({ metadata }: KubernetesObject): unknown {
  return [metadata?.name, metadata?.uid, metadata?.resourceVersion];
}
