/** A reflected resource. */

import type { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { type Indexers, labelIndexFunc, metaNamespaceIndex } from "../../store/index_func.ts";

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

/** Whether it is this resource of the core group. */
export function isCore(reflected: Pick<ReflectedResource, "resource">, plural: string): boolean {
  return reflected.resource.group === "" && reflected.resource.resource === plural;
}
