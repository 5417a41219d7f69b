// The cache over HTTP: Kubernetes' read API for `kubectl` and other informers, and a page of one's own beside it.
// Beside `kubectl proxy`: deno run --allow-net examples/serve_with_hono.ts
// and then: kubectl --server http://127.0.0.1:8000 get pods -A --watch
import {
  type Cluster,
  type KubernetesObject,
  metaNamespaceIndex,
  newCluster,
  SharedIndexInformer,
} from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { Hono } from "hono";

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string };
}

/** One watch on the API server, however many readers there are. Ends with the signal. */
export function newApp(cluster: Cluster, signal: AbortSignal): Hono {
  const pods = new SharedIndexInformer(cluster.resource<Pod>("v1/pods"), {
    indexers: { namespace: metaNamespaceIndex, byNode: (pod: Pod) => [pod.spec?.nodeName ?? ""] },
  });
  pods.start(signal);

  const app = new Hono();
  // What the cache is good for: answers from memory, by any index.
  app.get("/nodes/:node/pods", (c) => {
    if (!pods.hasSynced()) return c.text("not synced yet", 503);
    const names = pods.indexer.indexKeys("byNode", c.req.param("node"));
    return c.json({ names, at: pods.indexer.lastStoreSyncResourceVersion() });
  });
  // What other Kubernetes clients read. Who may read what is for you to say: a cache does not know.
  app.route(
    "/",
    readApi({
      resources: [{ informer: pods, resource: "v1/pods" }],
      authorize: ({ namespace }) => namespace !== "kube-system" || "kube-system is not for you",
      signal,
    }),
  );
  return app;
}

if (import.meta.main) {
  const app = newApp(newCluster({ server: "http://127.0.0.1:8001" }), AbortSignal.timeout(3_600_000));
  Deno.serve({ port: 8000 }, app.fetch); // Bun.serve(app), or serve(app) of @hono/node-server
}
