/**
 * A reflected resource.
 * @module
 */

import type { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { KubernetesObject } from "../../meta/object.ts";

/** The indices that the page reads: `namespace` for every resource, `byNode` for pods only. */
export type ReflectedIndex = "namespace" | "byNode";

/** A resource and the informer that reflects it. */
export interface ReflectedResource {
  /** The display name: `pods`, `deployments.apps`. */
  readonly name: string;
  readonly resource: ApiResource;
  readonly informer: SharedIndexInformer<KubernetesObject, ReflectedIndex>;
}

/** Whether it is this resource of the core group. */
export function isCore(reflected: Pick<ReflectedResource, "resource">, plural: string): boolean {
  return reflected.resource.group === "" && reflected.resource.resource === plural;
}
