/**
 * Asking an API server.
 * @module
 */

export { type Cluster, newCluster, type Query, type RequestOptions } from "./cluster.ts";
export type { PartialObjectMetadata } from "./metadata_only.ts";
export type {
  DeleteOptions,
  ObjectRequestOptions,
  ResourceClient,
  ResourceOptions,
} from "./resource_client.ts";
export type { FetchFunction, Impersonation, RestConfig, TokenSource } from "./rest_config.ts";
