/**
 * What the workers of `serve --workers` read: the cache of their parent, on loopback.
 * @module
 */

import { Hono } from "hono";
import type { Cluster } from "../client/cluster.ts";
import { readApi } from "../hono/read_api.ts";
import { newStatus, StatusError } from "../meta/status.ts";
import { copyHeaders } from "../util/copy_headers.ts";
import { silentLogger } from "../util/logger.ts";
import type { Clock } from "../util/clock.ts";
import { authenticateByToken } from "./reader_token.ts";
import type { ServedContent } from "./serve_readers.ts";
import type { ServeOptions } from "./serve_options.ts";

/** Where workers find what is no part of the read API. */
export const METRICS_PATH = "/workers/metrics";
export const UPSTREAM_PATH = "/workers/upstream";
/** Below it, reads fail that cannot be proven fresh. */
export const CONSISTENT_PATH = "/workers/consistent";
const REVIEWS = [
  "/apis/authentication.k8s.io/v1/tokenreviews",
  "/apis/authorization.k8s.io/v1/subjectaccessreviews",
];

/** Options of {@linkcode newWorkerSource}. */
export interface WorkerSourceOptions {
  /** What workers must present. */
  readonly token: string;
  /** The cluster that reviews and OpenAPI documents come from. */
  readonly cluster: Pick<Cluster, "open">;
  readonly serve: Pick<ServeOptions, "allowSecrets" | "clusterRbac">;
  /** The measurements of all processes. */
  readonly metricsText: () => Promise<string>;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Makes the app. Without the token it answers nothing. */
export function newWorkerSource(content: ServedContent, options: WorkerSourceOptions): Hono {
  const { cluster, serve, signal, clock } = options;
  const app = new Hono();
  const authenticate = authenticateByToken(options.token);
  app.use("*", async (c, next) => {
    if (await authenticate(c) === undefined) return c.text("Unauthorized\n", 401);
    return await next();
  });
  app.get(METRICS_PATH, async (c) => c.text(await options.metricsText()));
  app.get(`${UPSTREAM_PATH}/openapi/*`, async (c) => {
    const { pathname, search } = new URL(c.req.url);
    const [accept, tag] = [c.req.header("Accept"), c.req.header("If-None-Match")];
    return await relayed(cluster, pathname.slice(UPSTREAM_PATH.length) + search, {
      headers: { ...(accept && { Accept: accept }), ...(tag && { "If-None-Match": tag }) },
      signal: c.req.raw.signal,
    });
  });
  if (serve.clusterRbac) {
    for (const path of REVIEWS) {
      app.post(path, async (c) =>
        await relayed(cluster, path, {
          method: "POST",
          body: await c.req.json(),
          signal: c.req.raw.signal,
        }));
    }
  }
  const api = readApi({
    resources: content.inDiscoveryOrder.map(({ informer, resource }) => ({ informer, resource })),
    allowAnonymous: true, // the token was checked above
    ...(serve.allowSecrets && { allowSecrets: true }),
    // A worker that begins during an outage needs what there is.
    freshness: "stale-if-error",
    // Each worker has a few watches for each resource, which last.
    maxReadersPerClient: Infinity,
    watchLifetimeMs: Infinity,
    signal,
    clock,
    logger: silentLogger,
  });
  // A worker decides itself what an API server without an answer means for its readers.
  app.get(`${CONSISTENT_PATH}/*`, async (c) => {
    const url = new URL(c.req.url);
    url.pathname = url.pathname.slice(CONSISTENT_PATH.length);
    const { headers, signal } = c.req.raw;
    const response = await api.fetch(new Request(url, { headers, signal }), c.env);
    if (!response.headers.has("Warning")) return response;
    await response.body?.cancel();
    return Response.json(newStatus(504, "Timeout", "the API server does not answer"), { status: 504 });
  });
  app.route("/", api);
  return app;
}

/** The cluster's answer to a request with the cluster's credentials. */
async function relayed(
  cluster: Pick<Cluster, "open">,
  path: string,
  init: Parameters<Cluster["open"]>[1],
): Promise<Response> {
  try {
    const { status, headers, body } = await cluster.open(path, init);
    return new Response(body, { status, headers: kept(headers) });
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return Response.json(error.status, { status: error.status.code ?? 500 });
  }
}

/** Not the length: the body may have been decoded. */
function kept(headers: Headers): Headers {
  const result = new Headers();
  copyHeaders(headers, result, ["Content-Type", "ETag"]);
  return result;
}
