/**
 * The cache over HTTP: a hono app that serves informers' stores in Kubernetes' own protocol.
 *
 * @example
 * ```ts
 * import { Hono } from "hono";
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { readApi } from "@listwatch/cache/hono";
 *
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = new SharedIndexInformer(cluster.resource("v1/pods"));
 * const app = new Hono();
 * app.route("/", readApi({ resources: [{ informer: pods, resource: "v1/pods" }], allowAnonymous: true }));
 * console.log((await app.request("/readyz")).status); // 503
 * ```
 *
 * @module
 */

export {
  type ReviewCluster,
  type ReviewOptions,
  subjectAccessReview,
  tokenReview,
  type TokenReviewOptions,
} from "./request/access_review.ts";
export { allOf, allowNamespaces, type AllowNamespacesOptions } from "./request/allow_namespaces.ts";
export type { Authenticate, Authorize, RequestAttributes, UserInfo } from "./request/gate.ts";
export { type BearerToken, bearerTokens } from "./request/bearer_tokens.ts";
export type { CorsOptions } from "./request/cors.ts";
export type { FetchOpenApi } from "./upstream/open_api.ts";
export type { PassThroughOptions } from "./upstream/pass_through.ts";
export { type ReadApi, readApi } from "./read_api.ts";
export type {
  Freshness,
  ReadApiForward,
  ReadApiInformer,
  ReadApiOptions,
  ReadApiResource,
  VersionInfo,
} from "./read_api_options.ts";
export type { NamedInformer, ServedInformer, ServedStore } from "./content/served_informer.ts";
export { MergedInformer, type MergedInformerOptions } from "./content/merged_informer.ts";
export type { AcceptedWebSocket, ServerWebSocket, UpgradeWebSocket } from "../protocol/server_sockets.ts";
export type { ApiResource, PrinterColumn } from "../protocol/api_resource.ts";
