/** The server's message to the page, besides the objects, which the page reads as every reader does. */

import type { InformerStatus } from "../../informer/snapshot/storage.ts";

/** The answer of `/dashboard/state`: how each resource is doing, at one moment. */
export interface DashboardState {
  /** The time of the state; every time here is by this server's clock. */
  readonly nowMs: number;
  readonly cluster: ClusterInfo;
  readonly resources: readonly ResourceState[];
}

export interface ClusterInfo {
  readonly name: string;
  readonly server: string;
  readonly version?: string;
  /** The only namespaces that are cached; all if absent. */
  readonly namespaces?: readonly string[];
  readonly readers?: string;
}

export interface ResourceState extends Omit<InformerStatus, "resourceVersion" | "snapshot"> {
  readonly name: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  /** The path of the list of all namespaces: `/apis/apps/v1/deployments`. */
  readonly path: string;
  readonly namespaced: boolean;
  readonly objects: number;
  readonly synced: boolean;
  readonly resourceVersion: string;
  readonly watches: number;
}
