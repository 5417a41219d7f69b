/** The informers of the reflected resources. */

import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { sqliteSnapshot } from "../../node/sqlite_snapshot.ts";
import type { NewHolding } from "../../store/holding.ts";
import { shortTexts, texts } from "../../store/texts.ts";
import type { Clock } from "../../util/clock.ts";
import type { Metrics } from "../../util/metrics.ts";
import type { Logger } from "../../util/logger.ts";
import type { Connection } from "./connect.ts";
import {
  type ReflectedIndex,
  reflectedIndexers,
  type ReflectedResource,
} from "../dashboard/reflected_resource.ts";
import type { DiscoveredResource } from "./discovery.ts";
import { clientOptions, servedResource } from "./select_resources.ts";
import type { StorageName } from "../serve/serve_options.ts";

/** Options of {@linkcode reflect}. */
export interface ReflectOptions {
  /** The only namespace to reflect; all by default. */
  readonly namespace?: string;
  /** Fields that are not stored; none by default. */
  readonly drop?: readonly string[];
  /** How objects are held; as texts by default. */
  readonly storage?: StorageName | undefined;
  /** The file of its snapshot; none by default. */
  readonly snapshotPath?: string | undefined;
  /** The uid of the cluster, which the snapshot must be of; none by default. */
  readonly clusterUid?: string;
  /** Receives measurements; none by default. */
  readonly metrics?: Metrics | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

const STORAGES: Readonly<Record<StorageName, () => NewHolding | undefined>> = {
  objects: () => undefined,
  texts: () => texts(),
  "short-texts": () => shortTexts(),
};

/** Makes the informer of a resource, with the indices that the page reads. It is not run yet. */
export function reflect(
  resource: DiscoveredResource,
  connection: Pick<Connection, "cluster">,
  options: ReflectOptions,
): ReflectedResource {
  const { namespace, drop, storage = "texts", snapshotPath, clusterUid = "", metrics, clock, logger } =
    options;
  const name = formatGroupResource(resource);
  const client = connection.cluster.resource<KubernetesObject>(
    resource,
    clientOptions(resource, { namespace, drop }),
  );
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
