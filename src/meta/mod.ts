/**
 * What Kubernetes objects, resources and answers are.
 * @module
 */

export {
  escapeFieldValue,
  type FieldGetter,
  type FieldRequirement,
  FieldSelector,
  fieldSelectorFromSet,
  type FieldSet,
  fieldsEverything,
  fieldsNothing,
  parseFieldSelector,
  unescapeFieldValue,
} from "./fields.ts";
export {
  type LabelOperator,
  LabelRequirement,
  LabelSelector,
  labelSelectorFromSet,
  labelSelectorFromSpec,
  type LabelSelectorSpec,
  type LabelSet,
  labelsEverything,
  labelsNothing,
  parseLabelSelector,
  SelectorParseError,
  type SelectorParseErrorOptions,
} from "./labels.ts";
export { type Deleted, DeletedFinalStateUnknown, type DeletedObject } from "./tombstone.ts";
export {
  deletionHandlingMetaNamespaceKey,
  deletionHandlingObjectToName,
  ExplicitKey,
  formatObjectName,
  KeyError,
  type KeyFunc,
  metaNamespaceKey,
  NoMetaError,
  type ObjectName,
  objectToName,
  parseObjectName,
  splitMetaNamespaceKey,
  UnexpectedKeyFormatError,
} from "./keys.ts";
export type {
  ListOptions,
  ListPage,
  ListWatchContext,
  Quarantined,
  WatchItem,
  WatchStream,
} from "./list_watch.ts";
export type { KubernetesObject, ListMeta, ObjectMeta, OwnerReference } from "./object.ts";
export {
  formatResource,
  groupVersion,
  type GroupVersionKind,
  type GroupVersionResource,
  parseResource,
  type ResourceOf,
  resourceOf,
  resourcePath,
  type ResourcePathOptions,
} from "./resource.ts";
export { compareResourceVersions, isComparableResourceVersion } from "./resource_version.ts";
export {
  isAlreadyExists,
  isBadRequest,
  isConflict,
  isConnectionRefused,
  isExpired,
  isForbidden,
  isInternalError,
  isInvalid,
  isNotFound,
  isResourceVersionTooLarge,
  isServiceUnavailable,
  isTimeout,
  isTooManyRequests,
  isUnauthorized,
  NetworkError,
  type NetworkFailure,
  newStatus,
  type Status,
  type StatusCause,
  type StatusDetails,
  StatusError,
  statusErrorOf,
  type StatusErrorOptions,
} from "./status.ts";
export type { BookmarkObject, WatchEvent } from "./watch_event.ts";
export { DecodeError } from "./decode_error.ts";
