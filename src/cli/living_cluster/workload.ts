/**
 * The state of one deployment: its replica sets and pods.
 * @module
 */

import type { App } from "./apps.ts";
import type { ClusterObject, NewMeta } from "./objects.ts";
import type { PodStage } from "./pod_object.ts";
import { deploymentObject, type ReplicaCounts, replicaSetObject } from "./replica_objects.ts";

/** A deployment. */
export interface Workload {
  readonly app: App;
  readonly meta: NewMeta;
  readonly pods: Set<Pod>;
  /** Its replica sets; the last one is the current one. */
  readonly sets: ReplicaSet[];
  /** The desired number of pods. */
  replicas: number;
  revision: number;
  generation: number;
  object: ClusterObject;
  /** Whether a step of the controllers is due. */
  reconciling: boolean;
}

/** A replica set. */
export interface ReplicaSet {
  readonly meta: NewMeta;
  readonly image: string;
  /** The desired number of pods. */
  replicas: number;
  generation: number;
  object: ClusterObject;
}

/** A pod. */
export interface Pod {
  readonly meta: NewMeta;
  readonly workload: Workload;
  readonly set: ReplicaSet;
  stage: PodStage;
  endedFrom?: PodStage;
  sinceMs: number;
  restarts: number;
  nodeIndex?: number;
  podIP?: string;
  object: ClusterObject;
}

/** The replica set of the current image. */
export function currentSet(workload: Workload): ReplicaSet {
  return workload.sets[workload.sets.length - 1];
}

/** Whether some pods still have an older image. */
export function isRollingOut(workload: Workload): boolean {
  return workload.sets.some((set) => set !== currentSet(workload) && set.replicas > 0);
}

/** The image of an app at a revision. */
export function imageOf(app: App, revision: number): string {
  return `registry.example/${app.namespace}/${app.name}:1.${revision}.0`;
}

/** Sets the desired number of pods of a replica set. */
export function resize(set: ReplicaSet, replicas: number): void {
  if (set.replicas === replicas) return;
  set.replicas = replicas;
  set.generation++;
}

/** The pods of a replica set. */
export function podsOf(workload: Workload, set: ReplicaSet): Pod[] {
  return [...workload.pods].filter((pod) => pod.set === set);
}

/**
 * Counts the pods of a workload, or of one of its replica sets. Terminating pods do not count, as in
 * Kubernetes.
 */
export function countPods(workload: Workload, set?: ReplicaSet): ReplicaCounts {
  let [replicas, ready, updated] = [0, 0, 0];
  for (const pod of workload.pods) {
    if (pod.stage === "terminating" || (set !== undefined && pod.set !== set)) continue;
    replicas++;
    if (pod.stage === "ready") ready++;
    if (pod.set === currentSet(workload)) updated++;
  }
  return { replicas, ready, updated };
}

/** The Deployment object of a workload as it is now. */
export function renderDeployment(workload: Workload): ClusterObject {
  const { app, meta, revision, generation, replicas } = workload;
  const counts = countPods(workload);
  return deploymentObject(meta, { image: imageOf(app, revision), generation, replicas, counts });
}

/** The ReplicaSet object of one of a workload's replica sets as it is now. */
export function renderSet(workload: Workload, set: ReplicaSet): ClusterObject {
  const { meta, image, generation, replicas } = set;
  return replicaSetObject(meta, { image, generation, replicas, counts: countPods(workload, set) });
}
