/** The informers of the reflected resources. */

import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { sqliteSnapshot } from "../../node/sqlite_snapshot.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { NewHolding } from "../../store/holding.ts";
import { fieldIndex, type Indexers, labelIndexFunc, metaNamespaceIndex } from "../../store/index_func.ts";
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
  readonly snapshotPath: string | undefined;
  /** The uid of the cluster, which the snapshot must be of; `""` if it is not known. */
  readonly clusterUid: string;
  readonly metrics: Metrics | undefined;
}

/** Makes the informer of a resource, with its indices. It is not run yet. */
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

/** The indices of every resource; `byNode` has values of pods only. */
export type ReflectedIndex = "namespace" | "byNode";

export interface ReflectedResource {
  readonly name: string;
  readonly resource: ApiResource;
  readonly informer: SharedIndexInformer<KubernetesObject, ReflectedIndex>;
}

/** The index functions: reads by namespace, and of the pods on a node, do not look at every object. */
export function reflectedIndexers(
  { resource: { group, resource } }: Pick<ReflectedResource, "resource">,
): Indexers<KubernetesObject, ReflectedIndex> {
  const isPods = group === "" && resource === "pods";
  return { namespace: metaNamespaceIndex, byNode: isPods ? fieldIndex("spec.nodeName") : NO_VALUES };
}

/** An index of no labels: it reads nothing of an object. */
const NO_VALUES = labelIndexFunc([]);
