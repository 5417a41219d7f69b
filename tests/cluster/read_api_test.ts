import { type KubernetesObject, newCluster, parseResource } from "@listwatch/cache";
import { serveFetch } from "@listwatch/cache/node";
import { seededRandom } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Cached, startCached } from "./cached.ts";
import { connect, type TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { assertAllReceived, Reflected } from "./reflected.ts";
import { type DataObject, newSeed, runWriters, WriteLog } from "./writers.ts";

const RESOURCES = ["v1/namespaces", "v1/configmaps", "v1/pods", "apps/v1/deployments"];

describe("readApi in front of a real API server", () => {
  let connection: TestConnection;
  let namespaces: string[];
  let url: string;
  const log = new WriteLog();
  const random = seededRandom(newSeed());
  const stopping = new AbortController();
  let cached: Cached;
  let stopped: Promise<unknown>;

  before(async () => {
    connection = await connect();
    const { cluster, labelSelector } = connection;
    namespaces = await connection.createNamespaces("north", "south");
    await createObjects();
    await write(20);
    cached = await startCached(cluster, RESOURCES, { labelSelector });
    const server = await serveFetch(cached.api.fetch, { signal: stopping.signal });
    url = server.url;
    stopped = server.finished;
  });
  after(async () => {
    stopping.abort();
    await stopped;
    await cached?.[Symbol.asyncDispose]();
    await connection?.[Symbol.asyncDispose]();
  });

  it("lists whole objects, in the server's order", { timeout: 60_000 }, async () => {
    await write(50);
    for (const resource of RESOURCES) {
      const path = collectionPath(resource);
      const query = { labelSelector: connection.labelSelector };
      const expected = await connection.cluster.request(path, { query }) as List;
      assert.ok(expected.items.length > 0, resource);
      const served = newCluster({ server: url });
      await eventually(async () => {
        const actual = await served.request(path) as List;
        assert.deepEqual([actual.apiVersion, actual.kind], [expected.apiVersion, expected.kind]);
        assert.deepEqual(actual.items.map(withoutType), expected.items.map(withoutType));
      });
      const some = await served.request(path, { query: { limit: 2, labelSelector: "team=red" } }) as List;
      const red = expected.items.filter(({ metadata }) => metadata?.labels?.team === "red");
      assert.deepEqual(some.items.map(withoutType), red.slice(0, 2).map(withoutType), resource);
      const { name, namespace } = expected.items[0].metadata!;
      const one = await connection.cluster.resource(parseResource(resource)).get(name!, { namespace });
      assert.deepEqual(
        await newCluster({ server: url }).resource(parseResource(resource)).get(name!, { namespace }),
        one,
      );
    }
  });

  it("serves informers that receive every version", { timeout: 60_000 }, async () => {
    const source = newCluster({ server: url }).resource<DataObject>("v1/configmaps");
    const client = connection.cluster.resource<DataObject>("v1/configmaps", {
      labelSelector: connection.labelSelector,
    });
    // The earlier writes must be stored first, so that their deletes are not received.
    await using direct = new Reflected(client, { name: "the informer before the API" });
    await direct.synced();
    await direct.equalsServer(client);
    await eventually(async () => {
      const { items } = await source.list();
      assert.deepEqual(
        items.map(({ metadata }) => metadata?.uid),
        (await client.list()).items.map(({ metadata }) => metadata?.uid),
      );
    });
    const deletedUids = log.deletedUids();
    await using streamed = new Reflected(source, { name: "the streaming reader" });
    await using listed = new Reflected(source, {
      name: "the listing reader",
      reflector: { useWatchList: false },
    });
    await streamed.synced();
    await listed.synced();
    await write(100);
    for (const reader of [direct, streamed, listed]) {
      await reader.equalsServer(client);
      assertAllReceived(reader, log, deletedUids);
      assert.deepEqual(reader.errors, []);
    }
  });

  async function write(writes: number): Promise<void> {
    const { cluster, labels } = connection;
    const options = { cluster, resource: "v1/configmaps", namespaces, labels, names: 20, log, random };
    assert.ok(await runWriters(options, { writers: 4, writes }));
  }

  async function createObjects(): Promise<void> {
    const { cluster } = connection;
    const deployments = cluster.resource<KubernetesObject & { spec: unknown }>("apps/v1/deployments");
    for (const namespace of namespaces) {
      for (let i = 0; i < 4; i++) {
        await cluster.resource<KubernetesObject>("v1/pods").create(newPod(`web-${i}`, namespace));
      }
      const pods = { app: "web", ...connection.labels };
      const template = { metadata: { labels: pods }, spec: newPod("", namespace).spec };
      const metadata = { name: "web", namespace, labels: { ...connection.labels, team: "red" } };
      // Without replicas, so that no controller adds pods.
      await deployments.create({
        metadata,
        spec: { replicas: 0, selector: { matchLabels: pods }, template },
      });
    }
  }

  function newPod(name: string, namespace: string): KubernetesObject & { spec: unknown } {
    const labels = { ...connection.labels, app: "web", team: name.endsWith("1") ? "blue" : "red" };
    // No node has that label: where there is a scheduler, the pod stays pending, too.
    const nodeSelector = { [connection.uniqueName("nowhere")]: "x" };
    const containers = [{ name: "web", image: "registry.invalid/web:1" }];
    return { metadata: { name, namespace, labels }, spec: { nodeSelector, containers } };
  }
});

interface List {
  readonly apiVersion: string;
  readonly kind: string;
  readonly items: KubernetesObject[];
}

function withoutType({ apiVersion: _, kind: __, ...rest }: KubernetesObject): KubernetesObject {
  return rest;
}

function collectionPath(resource: string): string {
  return resource.startsWith("v1/") ? `/api/${resource}` : `/apis/${resource}`;
}
