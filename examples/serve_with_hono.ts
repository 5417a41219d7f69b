// The cache over HTTP: Kubernetes' read API for `kubectl` and other informers, and a route of your own.
// Beside `kubectl proxy`: deno run --allow-net examples/serve_with_hono.ts
// and then: kubectl --server http://127.0.0.1:8000 get pods -n shop --watch
import {
  type Cluster,
  type KubernetesObject,
  metaNamespaceIndex,
  newCluster,
  SharedIndexInformer,
} from "@listwatch/cache";
import { allowNamespaces, readApi } from "@listwatch/cache/hono";
import { Hono } from "hono";

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string };
}

const NAMESPACE = "shop";

/** One watch on the API server for any number of readers. Ends with the signal. */
export function newApp(cluster: Cluster, signal: AbortSignal): Hono {
  const pods = new SharedIndexInformer(cluster.resource<Pod>("v1/pods"), {
    indexers: { namespace: metaNamespaceIndex, byNode: (pod: Pod) => [pod.spec?.nodeName ?? ""] },
  });
  pods.start(signal);

  const app = new Hono();
  // Responses from memory, by any index. You decide what they may contain, too.
  app.get("/nodes/:node/pods", (c) => {
    if (!pods.hasSynced()) return c.text("not synced yet", 503);
    const onNode = pods.indexer.byIndices({ namespace: NAMESPACE, byNode: c.req.param("node") });
    const names = onNode.map((pod) => pod.metadata?.name);
    return c.json({ names, at: pods.indexer.lastStoreSyncResourceVersion() });
  });
  // The API for Kubernetes clients. You decide who may read what: a cache does not know.
  // This rule lists what may be read; one that lists what may not (`namespace !==
  // "kube-system"`) allows requests for all namespaces.
  app.route(
    "/",
    readApi({
      resources: [{ informer: pods, resource: "v1/pods" }],
      authorize: allowNamespaces([NAMESPACE]),
      signal,
    }),
  );
  return app;
}

if (import.meta.main) {
  const app = newApp(newCluster({ server: "http://127.0.0.1:8001" }), AbortSignal.timeout(3_600_000));
  // On this machine only. Bun.serve({ hostname, fetch }), or serve({ hostname, fetch }) of @hono/node-server.
  Deno.serve({ hostname: "127.0.0.1", port: 8000 }, app.fetch);
}
