/**
 * The deployments of the living cluster, and what the controllers, the scheduler and the kubelets do for them.
 * @module
 */

import type { App } from "./living_cluster_apps.ts";
import type { Chance } from "./living_cluster_chance.ts";
import type { Nodes } from "./living_cluster_nodes.ts";
import {
  type ClusterObject,
  deploymentObject,
  type NewMeta,
  podObject,
  type PodStage,
  type ReplicaCounts,
  replicaSetObject,
} from "./living_cluster_objects.ts";

/** A deployment. */
export interface Workload {
  readonly app: App;
  readonly meta: NewMeta;
  readonly pods: Set<Pod>;
  /** Its replica sets; the last one is the current one. */
  readonly sets: ReplicaSet[];
  /** How many pods are wanted. */
  replicas: number;
  revision: number;
  generation: number;
  object: ClusterObject;
  reconciling: boolean;
}

/** A replica set. */
export interface ReplicaSet {
  readonly meta: NewMeta;
  readonly image: string;
  /** How many pods are wanted. */
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

const HOUR_MS = 3_600_000;
const NO_PODS: ReplicaCounts = { replicas: 0, ready: 0, updated: 0 };

/** Deployments whose pods come, get ready, crash and go. */
export class Workloads {
  readonly #chance: Chance;
  readonly #nodes: Nodes;
  readonly #workloads: Workload[] = [];
  #addresses = 0;

  /** Makes a cluster without deployments. */
  constructor(chance: Chance, nodes: Nodes) {
    this.#chance = chance;
    this.#nodes = nodes;
  }

  /** Every deployment. */
  get all(): readonly Workload[] {
    return this.#workloads;
  }

  /** The pods at a stage. */
  pods(stage: PodStage): Pod[] {
    const found: Pod[] = [];
    for (const { pods } of this.#workloads) for (const pod of pods) if (pod.stage === stage) found.push(pod);
    return found;
  }

  /** Adds a deployment as it is long after it was made: all of its pods ready. */
  add(app: App, createdMs: number): void {
    const { namespace, name, replicas } = app;
    const meta = { name, namespace, uid: this.#chance.uid(), createdMs, labels: { app: name } };
    const revision = app.rolledOutBefore ? 7 : 1;
    const counts = { replicas, ready: replicas, updated: replicas };
    const object = deploymentObject(meta, {
      image: image(app, revision),
      generation: revision,
      replicas,
      counts,
    });
    this.#chance.writer.create(object);
    const workload: Workload = {
      app,
      meta,
      pods: new Set(),
      sets: [],
      replicas,
      revision,
      generation: revision,
      object,
      reconciling: false,
    };
    this.#workloads.push(workload);
    if (app.rolledOutBefore) this.#addSet(workload, revision - 1, 0, createdMs);
    const set = this.#addSet(workload, revision, replicas, createdMs + (app.rolledOutBefore ? HOUR_MS : 0));
    for (let i = 0; i < replicas; i++) {
      const bornMs = Math.min(
        set.meta.createdMs + this.#chance.between(0, 24) * HOUR_MS,
        this.#chance.now() - HOUR_MS,
      );
      const pod = this.#newPod(workload, set, bornMs);
      this.#bind(pod);
      pod.podIP = this.#podAddress(pod);
      pod.restarts = this.#chance.happens(0.15) ? this.#chance.between(1, 4) : 0;
      pod.stage = "ready";
      pod.object = renderPod(pod, this.#nodes);
      this.#chance.writer.create(pod.object);
    }
  }

  /** Changes how many pods a deployment shall have. */
  scale(workload: Workload, replicas: number): void {
    if (replicas === workload.replicas) return;
    const message = `Scaled replica set ${
      current(workload).meta.name
    } from ${workload.replicas} to ${replicas}`;
    workload.replicas = replicas;
    workload.generation++;
    this.#chance.tell(workload.object, {
      reason: "ScalingReplicaSet",
      message,
      component: "deployment-controller",
    });
    this.#reconcileSoon(workload);
  }

  /** Begins to replace a deployment's pods by those of a new image, one by one. Not while it is at that already. */
  rollOut(workload: Workload): void {
    if (isRollingOut(workload)) return;
    workload.revision++;
    workload.generation++;
    const set = this.#addSet(workload, workload.revision, 0, this.#chance.now());
    const message = `Scaled up replica set ${set.meta.name} from 0 to 1`;
    this.#chance.tell(workload.object, {
      reason: "ScalingReplicaSet",
      message,
      component: "deployment-controller",
    });
    this.#reconcileSoon(workload);
  }

  /** A ready pod's container ends with an error; it comes back after a while, as a rule. */
  crash(pod: Pod): void {
    pod.restarts++;
    this.#moveTo(pod, "crashed");
    const message = `Back-off restarting failed container ${pod.workload.app.name} in pod ${pod.meta.name}`;
    this.#chance.tell(pod.object, { reason: "BackOff", message, component: "kubelet", warning: true });
    this.#chance.after(4_000, 12_000, () => {
      if (pod.stage !== "crashed") return;
      this.#moveTo(pod, "starting");
      this.#becomeReady(pod, 0.25);
    });
  }

  /** Ends a pod gracefully: it is marked at once, and gone some seconds later. */
  end(pod: Pod, reason: string, message: string): void {
    if (pod.stage === "terminating") return;
    pod.endedFrom = pod.stage;
    this.#moveTo(pod, "terminating");
    this.#chance.tell(pod.object, { reason, message, component: "kubelet" });
    this.#chance.after(1_500, 4_500, () => {
      pod.workload.pods.delete(pod);
      this.#chance.writer.delete(pod.object);
      this.#reconcileSoon(pod.workload);
    });
  }

  // The controllers

  #reconcileSoon(workload: Workload): void {
    if (workload.reconciling) return;
    workload.reconciling = true;
    this.#chance.after(60, 240, () => {
      workload.reconciling = false;
      this.#reconcile(workload);
    });
  }

  /** One step towards what is wanted, and the status as it is. */
  #reconcile(workload: Workload): void {
    const newest = current(workload);
    const old = workload.sets.find((set) => set !== newest && set.replicas > 0);
    const total = workload.sets.reduce((sum, set) => sum + set.replicas, 0);
    if (old === undefined) resize(newest, workload.replicas);
    else if (total > workload.replicas + 1) resize(old, old.replicas - 1);
    else if (newest.replicas < workload.replicas && total <= workload.replicas) {
      resize(newest, newest.replicas + 1);
    } else if (count(workload).ready >= workload.replicas) resize(old, old.replicas - 1);
    for (const set of workload.sets) {
      const pods = podsOf(workload, set).filter((pod) => pod.stage !== "terminating");
      for (let i = pods.length; i < set.replicas; i++) this.#addPod(workload, set);
      // Those that are not ready go first, then the youngest.
      pods.sort((a, b) =>
        Number(a.stage === "ready") - Number(b.stage === "ready") || b.meta.createdMs - a.meta.createdMs
      );
      for (const pod of pods.slice(0, Math.max(0, pods.length - set.replicas))) {
        this.end(pod, "Killing", `Stopping container ${workload.app.name}`);
      }
    }
    // One empty replica set is kept to roll back to.
    const empty = workload.sets.filter((set) => set !== newest && podsOf(workload, set).length === 0);
    for (const set of empty.slice(0, -1)) {
      workload.sets.splice(workload.sets.indexOf(set), 1);
      this.#chance.writer.delete(set.object);
    }
    this.#writeStatuses(workload);
  }

  #writeStatuses(workload: Workload): void {
    for (const set of workload.sets) {
      const object = renderSet(set, count(workload, set));
      if (isSame(set.object, object)) continue;
      set.object = object;
      this.#chance.writer.update(object);
    }
    const { app, meta, revision, generation, replicas } = workload;
    const counts = count(workload);
    const object = deploymentObject(meta, { image: image(app, revision), generation, replicas, counts });
    if (isSame(workload.object, object)) return;
    workload.object = object;
    this.#chance.writer.update(object);
  }

  #addSet(workload: Workload, revision: number, replicas: number, createdMs: number): ReplicaSet {
    const { namespace, name } = workload.app;
    const hash = this.#chance.letters(9);
    const meta = {
      name: `${name}-${hash}`,
      namespace,
      uid: this.#chance.uid(),
      createdMs,
      labels: { app: name, "pod-template-hash": hash },
      annotations: { "deployment.kubernetes.io/revision": String(revision) },
      owner: workload.object,
    };
    const counts = { replicas, ready: replicas, updated: replicas };
    const from = { image: image(workload.app, revision), generation: 1, replicas };
    const set: ReplicaSet = { meta, ...from, object: replicaSetObject(meta, { ...from, counts }) };
    workload.sets.push(set);
    this.#chance.writer.create(set.object);
    return set;
  }

  // The scheduler and the kubelets

  #addPod(workload: Workload, set: ReplicaSet): void {
    const pod = this.#newPod(workload, set, this.#chance.now());
    this.#chance.writer.create(pod.object);
    const message = `Created pod: ${pod.meta.name}`;
    this.#chance.tell(set.object, {
      reason: "SuccessfulCreate",
      message,
      component: "replicaset-controller",
    });
    this.#chance.after(100, 700, () => {
      if (pod.stage !== "pending") return;
      this.#bind(pod);
      this.#moveTo(pod, "creating");
      const where = this.#nodes.all[pod.nodeIndex ?? 0].meta.name;
      const assigned = `Successfully assigned ${workload.app.namespace}/${pod.meta.name} to ${where}`;
      this.#chance.tell(pod.object, {
        reason: "Scheduled",
        message: assigned,
        component: "default-scheduler",
      });
      this.#chance.after(800, 3_000, () => {
        if (pod.stage !== "creating") return;
        pod.podIP = this.#podAddress(pod);
        this.#moveTo(pod, "starting");
        this.#becomeReady(pod, 0.06);
      });
    });
  }

  #becomeReady(pod: Pod, crashProbability: number): void {
    this.#chance.after(1_000, 4_000, () => {
      if (pod.stage !== "starting") return;
      if (this.#chance.happens(crashProbability)) this.crash(pod);
      else this.#moveTo(pod, "ready");
    });
  }

  #newPod(workload: Workload, set: ReplicaSet, createdMs: number): Pod {
    const { namespace } = workload.app;
    const name = `${set.meta.name}-${this.#chance.letters(5)}`;
    const { labels } = set.meta;
    const meta = { name, namespace, uid: this.#chance.uid(), createdMs, labels, owner: set.object };
    const from = { stage: "pending" as const, sinceMs: createdMs, restarts: 0 };
    const pod: Pod = { meta, workload, set, ...from, object: podObject(meta, { image: set.image, ...from }) };
    workload.pods.add(pod);
    return pod;
  }

  #moveTo(pod: Pod, stage: PodStage): void {
    pod.stage = stage;
    pod.sinceMs = this.#chance.now();
    pod.object = renderPod(pod, this.#nodes);
    this.#chance.writer.update(pod.object);
    this.#reconcileSoon(pod.workload);
  }

  /** Puts a pod on the open node that has the fewest, more or less. */
  #bind(pod: Pod): void {
    const load: number[] = this.#nodes.all.map(() => this.#chance.upTo(5));
    for (const { pods } of this.#workloads) {
      for (const { nodeIndex } of pods) if (nodeIndex !== undefined) load[nodeIndex]++;
    }
    const open = this.#nodes.all.filter((node) => !node.unschedulable).map((node) => node.index);
    pod.nodeIndex = open.reduce((best, index) => load[index] < load[best] ? index : best, open[0]);
  }

  /** The next address of the pod's node that no pod has. */
  #podAddress(pod: Pod): string {
    const used = new Set<string | undefined>();
    for (const { pods } of this.#workloads) for (const { podIP } of pods) used.add(podIP);
    for (;;) {
      const address = `10.244.${pod.nodeIndex ?? 0}.${2 + (this.#addresses++ % 250)}`;
      if (!used.has(address)) return address;
    }
  }
}

/** Whether some pods are still those of an older image. */
export function isRollingOut(workload: Workload): boolean {
  return workload.sets.some((set) => set !== current(workload) && set.replicas > 0);
}

function current(workload: Workload): ReplicaSet {
  return workload.sets[workload.sets.length - 1];
}

function image(app: App, revision: number): string {
  return `registry.example/${app.namespace}/${app.name}:1.${revision}.0`;
}

function resize(set: ReplicaSet, replicas: number): void {
  if (set.replicas === replicas) return;
  set.replicas = replicas;
  set.generation++;
}

function podsOf(workload: Workload, set: ReplicaSet): Pod[] {
  return [...workload.pods].filter((pod) => pod.set === set);
}

/** Counts the pods of a workload, or of one of its replica sets. Those that end do not count, as in Kubernetes. */
function count(workload: Workload, set?: ReplicaSet): ReplicaCounts {
  let { replicas, ready, updated } = NO_PODS;
  for (const pod of workload.pods) {
    if (pod.stage === "terminating" || (set !== undefined && pod.set !== set)) continue;
    replicas++;
    if (pod.stage === "ready") ready++;
    if (pod.set === current(workload)) updated++;
  }
  return { replicas, ready, updated };
}

function renderSet(set: ReplicaSet, counts: ReplicaCounts): ClusterObject {
  return replicaSetObject(set.meta, {
    image: set.image,
    generation: set.generation,
    replicas: set.replicas,
    counts,
  });
}

function renderPod(pod: Pod, nodes: Nodes): ClusterObject {
  const { meta, set, stage, sinceMs, restarts, nodeIndex, podIP, endedFrom } = pod;
  const node = nodeIndex === undefined ? undefined : nodes.all[nodeIndex].meta.name;
  return podObject(meta, { image: set.image, stage, sinceMs, restarts, node, nodeIndex, podIP, endedFrom });
}

function isSame(a: ClusterObject, b: ClusterObject): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
