/**
 * The informers of the reflected resources.
 * @module
 */

import { SharedIndexInformer } from "../informer/shared_informer.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { metaNamespaceIndex } from "../store/index_func.ts";
import type { Clock } from "../util/clock.ts";
import type { Metrics } from "../util/metrics.ts";
import type { Logger } from "../util/logger.ts";
import type { Connection } from "./connect.ts";
import { isCore, type ReflectedIndex, type ReflectedResource } from "./dashboard/reflected_resource.ts";
import type { DiscoveredResource } from "./discovery.ts";
import { clientOptions, servedResource } from "./select_resources.ts";

/** Options of {@linkcode reflect}. */
export interface ReflectOptions {
  /** The only namespace to reflect; all by default. */
  readonly namespace?: string;
  /** Fields that are not stored; none by default. */
  readonly drop?: readonly string[];
  /** Receives measurements; none by default. */
  readonly metrics?: Metrics | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Makes the informer of a resource, with the indices that the page reads. It is not run yet. */
export function reflect(
  resource: DiscoveredResource,
  connection: Connection,
  options: ReflectOptions,
): ReflectedResource {
  const { namespace, drop, metrics, clock, logger } = options;
  const name = formatGroupResource(resource);
  const client = connection.cluster.resource<KubernetesObject>(
    resource,
    clientOptions(resource, { namespace, drop }),
  );
  const isPods = isCore({ resource }, "pods");
  const informer = new SharedIndexInformer<KubernetesObject, ReflectedIndex>(client, {
    name,
    indexers: { namespace: metaNamespaceIndex, byNode: isPods ? nodeOf : () => [] },
    ...(metrics && { metrics }),
    clock,
    logger,
  });
  return { name, resource: servedResource(resource), informer };
}

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: unknown } | null;
}

/** The node of a pod, "" for a pod that is not scheduled. */
function nodeOf(object: KubernetesObject): string[] {
  const nodeName = (object as Pod).spec?.nodeName;
  return [typeof nodeName === "string" ? nodeName : ""];
}
