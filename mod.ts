/**
 * Kubernetes informers for every JavaScript runtime: client-go's `tools/cache` over web-standard `fetch`.
 *
 * `newCluster` connects to an API server. A `SharedIndexInformer` keeps an indexed copy of one resource and
 * notifies handlers of every change, in order.
 *
 * @example Watch pods, index them by node, print the counts
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * type Pod = KubernetesObject & { spec?: { nodeName?: string } };
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<Pod>("v1/pods");
 * const informer = new SharedIndexInformer(pods, { indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] } });
 * await using _running = informer.start();
 * await informer.synced();
 * for (const [node, count] of informer.indexer.indexValueCounts("byNode")) console.log(node, count);
 * ```
 *
 * This module has what most programs need. The parts, each of which can be used by itself, are in `./client`,
 * `./informer`, `./reflector`, `./queue`, `./store` and `./selectors`; work queues are in `./workqueue`, the
 * HTTP adapter in `./hono`, kubeconfig files in `./node`, the in-memory API server in `./testing`.
 *
 * @module
 */

// The documentation lists the names in this order: what programs begin with comes first.
export { newCluster } from "./src/client/cluster.ts";
export { SharedIndexInformer } from "./src/informer/shared_informer.ts";

export type { Cluster } from "./src/client/cluster.ts";
export type { PartialObjectMetadata } from "./src/client/metadata_only.ts";
export type { ResourceClient, ResourceOptions } from "./src/client/resource_client.ts";
export type { RestConfig } from "./src/client/rest_config.ts";
export { NamespaceSet } from "./src/informer/namespaces/namespace_set.ts";
export { parseResource, resourceOf } from "./src/meta/resource.ts";

export {
  type FactoryInformerOptions,
  type ResourceInformer,
  SharedInformerFactory,
  type SharedInformerFactoryOptions,
  type UsedInformer,
} from "./src/informer/shared_informer_factory.ts";
export { FilteringResourceEventHandler, type ResourceEventHandler } from "./src/informer/events.ts";
export type {
  HandlerOptions,
  HandlerRegistration,
  SharedIndexInformerOptions,
} from "./src/informer/shared_informer_options.ts";
export type { Running } from "./src/informer/queue_drain.ts";
export { waitForCacheSync } from "./src/informer/waits.ts";
export type { ReflectorStatus } from "./src/reflector/state.ts";
export { type Deleted, DeletedFinalStateUnknown, type DeletedObject } from "./src/meta/object.ts";
export type { TransformFunc } from "./src/store/transform.ts";

export { type Lister, type NamespaceLister, newLister } from "./src/informer/lister.ts";
export type { Indexer } from "./src/store/store.ts";
export {
  type Indexers,
  type IndexFunc,
  metaNamespaceIndex,
  NAMESPACE_INDEX,
} from "./src/store/index_func.ts";
export { fieldIndex, ownerIndex } from "./src/store/index_func.ts";
export { LABEL_INDEX, labelIndexFunc } from "./src/store/index_func.ts";
export { shortTexts } from "./src/store/texts.ts";
export {
  deletionHandlingMetaNamespaceKey,
  type KeyFunc,
  metaNamespaceKey,
  type ObjectName,
  splitMetaNamespaceKey,
} from "./src/meta/object.ts";

export type { KubernetesObject, ObjectMeta, OwnerReference } from "./src/meta/object.ts";
export { compareResourceVersions } from "./src/meta/object.ts";

export { CacheSyncError, InformerStateError, NotFreshError } from "./src/informer/errors.ts";
export { isConnectionRefused, NetworkError } from "./src/meta/request.ts";
export {
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooManyRequests,
  isUnauthorized,
  type Status,
  StatusError,
} from "./src/meta/status.ts";
export { CacheError } from "./src/util/errors.ts";

export type { Clock } from "./src/util/clock.ts";
export { consoleLogger, type Logger, silentLogger } from "./src/util/logger.ts";
export type { Metrics } from "./src/util/metrics.ts";
