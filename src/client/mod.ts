/**
 * Asking an API server.
 * @module
 */

export { type Cluster, newCluster, type Query, type RequestOptions } from "./cluster.ts";
export { CredentialsError } from "./credentials.ts";
export type { PartialObjectMetadata } from "./metadata_only.ts";
export type { ResourceClient } from "./resource_client.ts";
export {
  DEFAULT_DROP,
  type DeleteOptions,
  type ObjectRequestOptions,
  type ResourceOptions,
} from "./resource_options.ts";
export type { FetchFunction, Impersonation, RestConfig, TokenSource } from "./rest_config.ts";
