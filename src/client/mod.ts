/**
 * The parts of the client: requests to an API server, names and paths of resources, and the decoders and
 * validators for a transport of your own. `newCluster` itself is in `@listwatch/cache`.
 *
 * @module
 */

export type {
  ApplyOptions,
  ClientSource,
  DeleteOptions,
  ObjectRequestOptions,
  Query,
  RequestOptions,
  ResourceDescription,
  TypedResourceOptions,
} from "./resource_client.ts";
export { CredentialsError, type FetchFunction, type Impersonation, type TokenSource } from "./rest_config.ts";
export { DecodeError, type NetworkFailure } from "../meta/request.ts";
export {
  formatResource,
  groupVersion,
  type GroupVersionKind,
  type GroupVersionResource,
  type ResourceName,
  type ResourceOf,
  resourcePath,
} from "../meta/resource.ts";
export {
  isBadRequest,
  isInternalError,
  isResourceVersionTooLarge,
  isServiceUnavailable,
  isTimeout,
  newStatus,
  type StatusCause,
  type StatusDetails,
  statusErrorOf,
} from "../meta/status.ts";
export { discover, type DiscoveredResource, type Discovery, findResource } from "./discovery.ts";
export type { LooseList } from "../schema/kubernetes_schemas.ts";
export type { Schema, SchemaIssue, SchemaProperties, SchemaResult } from "../schema/schema.ts";
export type { ValidatorOptions } from "../schema/checks.ts";
export { newEventValidator, newObjectValidator, validateList } from "../schema/validator.ts";
export {
  decodeWatch,
  type DecodeWatchOptions,
  DEFAULT_MAX_FRAME_BYTES,
  type ValidateFrame,
} from "../watch/decode_watch.ts";
export { decodeList, type DecodeListOptions, type ListEnvelope } from "../watch/list_decoder.ts";
export type { Dropped, FieldPath, FieldPaths, Kept, Projected } from "../text/field_path.ts";
export { Projection, type ProjectionOptions } from "../text/field_tree.ts";
