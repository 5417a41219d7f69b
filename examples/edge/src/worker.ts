/**
 * A cluster's pods at the edge: one Durable Object keeps the copy, and Workers near the readers serve it.
 *
 * @module
 */

import { type KubernetesObject, newCluster } from "@listwatch/cache";
import { allowNamespaces, bearerTokens, type ReadApi, readApi } from "@listwatch/cache/hono";
import { ReflectorObject, type ReflectorSettings, upgradeInWorkers } from "@listwatch/cache/workers";

/** `wrangler.jsonc` has the bindings and variables, `.dev.vars` or `wrangler secret put` the secrets. */
interface Env {
  readonly PODS: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
  /** The API server, such as `https://k8s.example.com`. */
  readonly API_SERVER: string;
  /** The token of a service account that may list and watch pods. */
  readonly API_TOKEN?: string;
  /** What readers present: 16 characters or more. */
  readonly READER_TOKEN: string;
  /** The namespaces that readers may read, with commas between them. */
  readonly READER_NAMESPACES: string;
}

/** Keeps the copy: one list-watch, in SQLite. It continues by a watch after a restart. */
export class Pods extends ReflectorObject<Env> {
  protected override settings({ API_SERVER, API_TOKEN }: Env): ReflectorSettings {
    const cluster = newCluster({ server: API_SERVER, ...(API_TOKEN && { token: API_TOKEN }) });
    return { source: cluster.resource<KubernetesObject>("v1/pods"), resource: "v1/pods" };
  }
}

let api: ReadApi | undefined;

/** Decides who may read, and sends permitted requests on to the object. */
function newReader({ PODS, READER_TOKEN, READER_NAMESPACES }: Env): ReadApi {
  return readApi({
    resources: [{
      resource: "v1/pods",
      fetch: (request) => PODS.getByName("production").fetch(request),
      takesScreens: true,
    }],
    authenticate: bearerTokens([{ token: READER_TOKEN, user: { name: "reader" } }]),
    authorize: allowNamespaces(READER_NAMESPACES.split(",")),
    upgradeWebSocket: upgradeInWorkers,
  });
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    api ??= newReader(env);
    return await api.fetch(request);
  },
};
