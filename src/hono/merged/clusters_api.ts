/**
 * One read API over many clusters.
 * @module
 */

import { Hono } from "hono";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { UserInfo } from "../access/authorization.ts";
import { type ReadApi, readApi } from "../read_api.ts";
import type { ReadApiOptions, RemoteFetch } from "../read_api_options.ts";
import { mergedResource, type MergedResourceOptions } from "./merged_resource.ts";

/**
 * A cluster behind {@linkcode clustersApi}.
 *
 * @category HTTP adapter
 */
export interface MergedCluster {
  /** A label: lower-case letters, digits and hyphens. It is in the paths and in the names of the merged view. */
  readonly name: string;
  /** Answers requests for the cluster's objects without credentials: a cache of it that no reader reaches by another way. */
  readonly fetch: RemoteFetch;
  /** What it serves, if that differs from {@linkcode ClustersApiOptions.resources}. */
  readonly resources?: readonly (string | ApiResource)[];
}

/**
 * Options of {@linkcode clustersApi}: those of `readApi` count for every cluster and for the merged view.
 *
 * @category HTTP adapter
 */
export interface ClustersApiOptions
  extends
    Omit<ReadApiOptions, "resources" | "passThrough" | "openApi">,
    Pick<MergedResourceOptions, "timeoutMs" | "awayMs"> {
  readonly clusters: readonly MergedCluster[];
  /** What is served of each cluster, and merged: `v1/pods` for what Kubernetes brings, descriptions for custom resources. */
  readonly resources: readonly (string | ApiResource)[];
}

/**
 * What {@linkcode clustersApi} makes: a hono app, and a hold on its watches.
 *
 * @category HTTP adapter
 */
export interface ClustersApi extends Hono {
  /** As {@linkcode ReadApi.endWatches}, of all clusters and of the merged view. */
  endWatches(which?: (user: UserInfo | undefined) => boolean): number;
}

/**
 * Makes one read API over many clusters.
 *
 * - `/clusters/{name}/api/v1/pods` is the API of one cluster, as it is: `kubectl --server https://cache/clusters/eu-1`.
 * - `/api/v1/pods` is the merged view of all clusters ({@linkcode mergedResource} with `by: "cluster"`): each object is named after its
 *   cluster (`eu-1.web-1`), and has the annotation `listwatch.dev/cluster`. So the same name in two clusters is two objects, for
 *   kubectl and for informers; a get of `eu-1.web-1` goes to that cluster alone. References between objects (owners, nodes) keep
 *   the names that they have in the cluster.
 *
 * The hooks decide on every request, of a cluster and of the merged view; `c.req.path` says which of them it is for.
 *
 * All is answered from the caches behind it, and nothing is kept for a reader but its stream. To keep one copy for many
 * readers of the merged view, put an informer and a `readApi` of its own behind it: watches then cost the clusters nothing.
 *
 * @throws What `readApi` and `mergedResource` throw for wrong options.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { clustersApi, readApi } from "@listwatch/cache/hono";
 * import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
 *
 * const clusters = await Promise.all(["eu-1", "us-1"].map(async (name) => {
 *   const server = new InMemoryApiServer();
 *   server.create("v1/pods", pod("web", { namespace: "shop" }));
 *   const informer = new SharedIndexInformer(newCluster({ server: "http://x", fetch: server.fetch }).resource("v1/pods"));
 *   const running = informer.start();
 *   await informer.synced();
 *   const cache = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
 *   return { name, fetch: (request: Request) => cache.fetch(request), running, server };
 * }));
 * const api = clustersApi({ clusters, resources: ["v1/pods"], allowAnonymous: true });
 * const { items } = await (await api.request("/api/v1/pods")).json();
 * console.log(items.map((pod: { metadata: { name: string } }) => pod.metadata.name)); // [ "eu-1.web", "us-1.web" ]
 * console.log((await api.request("/clusters/us-1/api/v1/namespaces/shop/pods/web")).status); // 200
 * for (const { running, server } of clusters) {
 *   await running.stop();
 *   server.close();
 * }
 * ```
 *
 * @category HTTP adapter
 */
export function clustersApi(options: ClustersApiOptions): ClustersApi {
  const { clusters, resources, timeoutMs, awayMs, ...common } = options;
  const { clock, logger } = options;
  const merged = resources.map((resource) =>
    mergedResource({
      resource,
      by: "cluster",
      shards: clusters.map(({ name, fetch }) => ({ name, fetch })),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(awayMs !== undefined && { awayMs }),
      ...(clock && { clock }),
      ...(logger && { logger }),
    })
  );
  const described = new Map(merged.map(({ resource }, i) => [resources[i], resource]));
  const app = new Hono();
  const apis: ReadApi[] = [];
  const mount = (path: string, api: ReadApi) => {
    apis.push(api);
    app.route(path, api);
  };
  for (const { name, fetch, resources: own = resources } of clusters) {
    const remotes = own.map((resource) => ({
      resource: described.get(resource) ?? resource,
      fetch,
      ...(timeoutMs !== undefined && { timeoutMs }),
    }));
    mount(`/clusters/${name}`, readApi({ ...common, resources: remotes }));
  }
  mount("/", readApi({ ...common, resources: merged }));
  return Object.assign(app, {
    endWatches: (which?: (user: UserInfo | undefined) => boolean) =>
      apis.reduce((ended, api) => ended + api.endWatches(which), 0),
  });
}
