/**
 * The objects of the fan-out benchmark, in the API server.
 *
 * @module
 */

import type { TestCluster } from "../../scripts/lib/cluster.ts";
import { podJson, populationOf } from "../server/pods.ts";

/** Where the ConfigMaps are. */
export const NAMESPACE = "fanout";

// How many pods are created at a time.
const CONNECTIONS = 16;

/** Where so many pods are. */
export function podsNamespace(pods: number): string {
  return `${NAMESPACE}-${pods}`;
}

const clients = new WeakMap<TestCluster, Deno.HttpClient>();

/** Sends a request to the API server. */
export async function request(
  cluster: TestCluster,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  const client = clients.get(cluster) ?? Deno.createHttpClient({ caCerts: [cluster.caData] });
  clients.set(cluster, client);
  const response = await fetch(cluster.server + path, {
    client,
    method,
    headers: { Authorization: `Bearer ${cluster.token}`, "Content-Type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response;
}

/** Creates the namespaces, and a namespace with pods for each number. */
export async function createPods(
  cluster: TestCluster,
  sizes: readonly number[],
  log: (line: string) => void,
): Promise<void> {
  const create = async (path: string, object: unknown) =>
    void await (await request(cluster, "POST", path, object)).body?.cancel();
  const createNamespace = (name: string) => create("/api/v1/namespaces", { metadata: { name } });
  await createNamespace(NAMESPACE);
  for (const pods of sizes) {
    log(`creating ${pods} pods ...`);
    const namespace = podsNamespace(pods);
    await createNamespace(namespace);
    let next = 0;
    await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
      for (let i = next++; i < pods; i = next++) {
        await create(`/api/v1/namespaces/${namespace}/pods`, newPod(pods, i, namespace));
      }
    }));
  }
}

/** A pod as a client creates it: without what the server sets. */
function newPod(pods: number, index: number, namespace: string): unknown {
  const version = { resourceVersion: "1", revision: 0, isTyped: true };
  const { metadata, status: _, ...pod } = JSON.parse(podJson(populationOf(pods), index, version));
  const { name, labels, annotations } = metadata;
  return { ...pod, metadata: { name: `${name}-${index}`, namespace, labels, annotations } };
}
