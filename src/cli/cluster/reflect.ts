/** The informers of the reflected resources. */

import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { sqliteSnapshot } from "../../node/sqlite_snapshot.ts";
import type { NewHolding } from "../../store/holding.ts";
import { shortTexts, texts } from "../../store/texts.ts";
import type { Metrics } from "../../util/metrics.ts";
import type { Connection } from "./connect.ts";
import {
  type ReflectedIndex,
  reflectedIndexers,
  type ReflectedResource,
} from "../dashboard/reflected_resource.ts";
import type { DiscoveredResource } from "./discovery.ts";
import { clientOptions, servedResource } from "./select_resources.ts";
import type { ServeSettings, StorageName } from "../serve/serve_options.ts";

const STORAGES: Readonly<Record<StorageName, () => NewHolding | undefined>> = {
  objects: () => undefined,
  texts: () => texts(),
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
