// A read API that is warm from its first request, and while the API server is away: its content is kept in
// Deno KV. Beside `kubectl proxy`: deno run --allow-net --unstable-kv examples/serve_from_deno_kv.ts and
// then: curl -i http://127.0.0.1:8000/api/v1/namespaces/shop/services
import { type Cluster, type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
import { allowNamespaces, readApi } from "@listwatch/cache/hono";
import { type DenoKv, denoKvSnapshot } from "@listwatch/cache/snapshots";

/**
 * Follows the services of a cluster until the signal; saves them in the KV, and begins with what is there.
 */
export function newApp(cluster: Cluster, kv: DenoKv, signal: AbortSignal): {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Resolves when everything is saved. */
  readonly finished: Promise<void>;
} {
  const services = new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/services"), {
    snapshot: denoKvSnapshot(kv, { prefix: ["listwatch", "services"] }),
  });
  // Until the API server has confirmed what was saved, answers have
  // `Cache-Synced: false`, `Age` and a `Warning`.
  const app = readApi({
    resources: [{ informer: services, resource: "v1/services" }],
    freshness: "stale-if-error",
    authorize: allowNamespaces(["shop"]),
    signal,
  });
  return { fetch: app.fetch, finished: services.run(signal) };
}

if (import.meta.main) {
  const kv = await Deno.openKv();
  const stop = new AbortController();
  Deno.addSignalListener("SIGTERM", () => stop.abort());
  const app = newApp(newCluster({ server: "http://127.0.0.1:8001" }), kv, stop.signal);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 8000, signal: stop.signal }, app.fetch);
  await Promise.all([app.finished, server.finished]);
  kv.close();
}
