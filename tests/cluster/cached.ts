/** A cache of an API server, in the test's own process. */

import { type Cluster, type KubernetesObject, parseResource, SharedIndexInformer } from "@listwatch/cache";
import { type ReadApi, readApi, type ReadApiOptions } from "@listwatch/cache/hono";

/** A running cache. */
export interface Cached extends AsyncDisposable {
  readonly api: ReadApi;
}

/** Caches resources with all fields, for anonymous readers. Resolves when all have synced. */
export async function startCached(
  cluster: Cluster,
  resources: readonly ReadApiOptions["resources"][number]["resource"][],
  options: { readonly labelSelector?: string } = {},
): Promise<Cached> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const served = resources.map((resource) => ({
    resource,
    informer: new SharedIndexInformer(
      cluster.resource<KubernetesObject>(
        typeof resource === "string" ? parseResource(resource) : resource,
        { ...options, keep: "everything" },
      ),
    ),
  }));
  const api = readApi({ resources: served, allowAnonymous: true, allowSecrets: true, signal });
  const stopped = Promise.all(served.map(({ informer }) => informer.run(signal)));
  const stop = async () => {
    stopping.abort();
    await stopped;
  };
  try {
    await Promise.all(served.map(({ informer }) => informer.synced(AbortSignal.timeout(30_000))));
  } catch (error) {
    await stop();
    throw error;
  }
  return { api, [Symbol.asyncDispose]: stop };
}
