/** The informers of the reflected resources. */

import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { sqliteSnapshot } from "../../node/sqlite_snapshot.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { NewHolding } from "../../store/holding.ts";
import { type Indexers, labelIndexFunc, metaNamespaceIndex } from "../../store/index_func.ts";
import { shortTexts } from "../../store/texts.ts";
import type { Metrics } from "../../util/metrics.ts";
import type { ServeSettings, StorageName } from "../serve/serve_options.ts";
import type { Connection } from "./connect.ts";
import type { DiscoveredResource } from "../../client/discovery.ts";
import { clientOptions, servedResource } from "./select_resources.ts";

const STORAGES: Readonly<Record<StorageName, () => NewHolding | undefined>> = {
  texts: () => undefined,
  "short-texts": () => shortTexts(),
};

interface Kept {
  /** The file of its snapshot; none by default. */
  readonly snapshotPath: string | undefined;
  /** The uid of the cluster, which the snapshot must be of; `""` if it is not known. */
  readonly clusterUid: string;
  readonly metrics: Metrics | undefined;
}

/** Makes the informer of a resource, with the indices that the page reads. It is not run yet. */
export function reflect(
  resource: DiscoveredResource,
  { cluster }: Pick<Connection, "cluster">,
  settings: ServeSettings,
  { snapshotPath, clusterUid, metrics }: Kept,
): ReflectedResource {
  const { storage = "texts", clock, logger } = settings;
  const name = formatGroupResource(resource);
  const client = cluster.resource<KubernetesObject>(resource, clientOptions(resource, settings));
  const served = servedResource(resource);
  const informer = new SharedIndexInformer<KubernetesObject, ReflectedIndex>(client, {
    name,
    indexers: reflectedIndexers({ resource: served }),
    storage: STORAGES[storage](),
    ...(snapshotPath !== undefined && { snapshot: sqliteSnapshot(snapshotPath, { identity: clusterUid }) }),
    ...(metrics && { metrics }),
    clock,
    logger,
  });
  return { name, resource: served, informer };
}

/** The indices that the page reads: `namespace` for every resource, the others for pods only. */
export type ReflectedIndex = "namespace" | "byNode" | "readyByNode";

/** A resource and the informer that reflects it. */
export interface ReflectedResource {
  /** The display name: `pods`, `deployments.apps`. */
  readonly name: string;
  readonly resource: ApiResource;
  readonly informer: SharedIndexInformer<KubernetesObject, ReflectedIndex>;
}

/**
 * The index functions that the page needs, so that it does not look at every object: with storage of texts it
 * would be parsed.
 */
export function reflectedIndexers(
  reflected: Pick<ReflectedResource, "resource">,
): Indexers<KubernetesObject, ReflectedIndex> {
  const isPods = isCore(reflected, "pods");
  return {
    namespace: metaNamespaceIndex,
    byNode: isPods ? (pod) => [nodeOf(pod)] : NO_VALUES,
    readyByNode: isPods ? (pod) => isReady(pod) ? [nodeOf(pod)] : [] : NO_VALUES,
  };
}

/** An index of no labels: it reads nothing of an object. */
const NO_VALUES = labelIndexFunc([]);

// The fields may have any type: the body of an object is not validated.
interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: unknown } | null;
  readonly status?: { readonly conditions?: unknown } | null;
}

/** The node of a pod, "" for a pod that is not scheduled. */
function nodeOf({ spec }: Pod): string {
  const nodeName = spec?.nodeName;
  return typeof nodeName === "string" ? nodeName : "";
}

function isReady({ status }: Pod): boolean {
  const conditions = status?.conditions;
  if (!Array.isArray(conditions)) return false;
  const ready = conditions.find((condition) => condition?.type === "Ready");
  return ready?.status === "True";
}

export function isCore(reflected: Pick<ReflectedResource, "resource">, plural: string): boolean {
  return reflected.resource.group === "" && reflected.resource.resource === plural;
}
