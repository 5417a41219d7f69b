/**
 * The deployments of the living cluster, and what the deployment and replica set controllers do with them.
 * @module
 */

import type { App } from "./apps.ts";
import type { ClusterContext } from "./context.ts";
import type { Nodes } from "./nodes.ts";
import type { ClusterObject } from "./objects.ts";
import type { PodStage } from "./pod_object.ts";
import { Pods } from "./pods.ts";
import { deploymentObject, replicaSetObject } from "./replica_objects.ts";
import {
  countPods,
  currentSet,
  imageOf,
  isRollingOut,
  type Pod,
  podsOf,
  renderDeployment,
  renderSet,
  type ReplicaSet,
  resize,
  type Workload,
} from "./workload.ts";

const HOUR_MS = 3_600_000;

/** Deployments, with the controllers that keep their pods at the desired number and image. */
export class Workloads {
  readonly #context: ClusterContext;
  readonly #workloads: Workload[] = [];
  /** Crashes and ends pods; the controllers then replace those that are missing. */
  readonly pods: Pods;

  constructor(context: ClusterContext, nodes: Nodes) {
    this.#context = context;
    this.pods = new Pods(context, { nodes, onChange: (workload) => this.#reconcileSoon(workload) });
  }

  /** Every deployment. */
  get all(): readonly Workload[] {
    return this.#workloads;
  }

  /** The pods at a stage. */
  podsAt(stage: PodStage): Pod[] {
    const found: Pod[] = [];
    for (const { pods } of this.#workloads) for (const pod of pods) if (pod.stage === stage) found.push(pod);
    return found;
  }

  /** Adds a deployment in the state it has long after its creation: all of its pods ready. */
  add(app: App, createdMs: number): void {
    const { writer, dice, timers } = this.#context;
    const { namespace, name, replicas } = app;
    const meta = { name, namespace, uid: dice.uid(), createdMs, labels: { app: name } };
    const revision = app.rolledOutBefore ? 7 : 1;
    const object = deploymentObject(meta, {
      image: imageOf(app, revision),
      generation: revision,
      replicas,
      counts: { replicas, ready: replicas, updated: replicas },
    });
    writer.create(object);
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
      const podCreatedMs = set.meta.createdMs + dice.between(0, 24) * HOUR_MS;
      this.pods.addReady(workload, set, Math.min(podCreatedMs, timers.now() - HOUR_MS));
    }
  }

  /** Changes the desired number of a deployment's pods. */
  scale(workload: Workload, replicas: number): void {
    if (replicas === workload.replicas) return;
    const { name } = currentSet(workload).meta;
    const message = `Scaled replica set ${name} from ${workload.replicas} to ${replicas}`;
    workload.replicas = replicas;
    workload.generation++;
    this.#recordScaling(workload, message);
    this.#reconcileSoon(workload);
  }

  /**
   * Starts to replace a deployment's pods by pods of a new image, one by one; does nothing during a rollout.
   */
  rollOut(workload: Workload): void {
    if (isRollingOut(workload)) return;
    workload.revision++;
    workload.generation++;
    const set = this.#addSet(workload, workload.revision, 0, this.#context.timers.now());
    this.#recordScaling(workload, `Scaled up replica set ${set.meta.name} from 0 to 1`);
    this.#reconcileSoon(workload);
  }

  #recordScaling(workload: Workload, message: string): void {
    const event = { reason: "ScalingReplicaSet", message, component: "deployment-controller" };
    this.#context.events.record(workload.object, event);
  }

  #reconcileSoon(workload: Workload): void {
    if (workload.reconciling) return;
    workload.reconciling = true;
    this.#context.timers.after(60, 240, () => {
      workload.reconciling = false;
      this.#reconcile(workload);
    });
  }

  /** Takes one step towards the desired state, and writes the present status. */
  #reconcile(workload: Workload): void {
    const newest = currentSet(workload);
    const old = workload.sets.find((set) => set !== newest && set.replicas > 0);
    const total = workload.sets.reduce((sum, set) => sum + set.replicas, 0);
    if (old === undefined) resize(newest, workload.replicas);
    else if (total > workload.replicas + 1) resize(old, old.replicas - 1);
    else if (newest.replicas < workload.replicas && total <= workload.replicas) {
      resize(newest, newest.replicas + 1);
    } else if (countPods(workload).ready >= workload.replicas) resize(old, old.replicas - 1);
    for (const set of workload.sets) this.#reconcileSet(workload, set);
    // One empty replica set is kept for a rollback.
    const empty = workload.sets.filter((set) => set !== newest && podsOf(workload, set).length === 0);
    for (const set of empty.slice(0, -1)) {
      workload.sets.splice(workload.sets.indexOf(set), 1);
      this.#context.writer.delete(set.object);
    }
    this.#writeStatuses(workload);
  }

  #reconcileSet(workload: Workload, set: ReplicaSet): void {
    const pods = podsOf(workload, set).filter((pod) => pod.stage !== "terminating");
    for (let i = pods.length; i < set.replicas; i++) this.pods.add(workload, set);
    // Pods that are not ready end first, then the youngest.
    pods.sort((a, b) =>
      Number(a.stage === "ready") - Number(b.stage === "ready") || b.meta.createdMs - a.meta.createdMs
    );
    for (const pod of pods.slice(0, Math.max(0, pods.length - set.replicas))) {
      this.pods.end(pod, "Killing", `Stopping container ${workload.app.name}`);
    }
  }

  #writeStatuses(workload: Workload): void {
    for (const set of workload.sets) this.#writeIfChanged(set, renderSet(workload, set));
    this.#writeIfChanged(workload, renderDeployment(workload));
  }

  #writeIfChanged(holder: { object: ClusterObject }, object: ClusterObject): void {
    if (JSON.stringify(holder.object) === JSON.stringify(object)) return;
    holder.object = object;
    this.#context.writer.update(object);
  }

  #addSet(workload: Workload, revision: number, replicas: number, createdMs: number): ReplicaSet {
    const { dice, writer } = this.#context;
    const { namespace, name } = workload.app;
    const hash = dice.letters(9);
    const meta = {
      name: `${name}-${hash}`,
      namespace,
      uid: dice.uid(),
      createdMs,
      labels: { app: name, "pod-template-hash": hash },
      annotations: { "deployment.kubernetes.io/revision": String(revision) },
      owner: workload.object,
    };
    const counts = { replicas, ready: replicas, updated: replicas };
    const from = { image: imageOf(workload.app, revision), generation: 1, replicas };
    const set: ReplicaSet = { meta, ...from, object: replicaSetObject(meta, { ...from, counts }) };
    workload.sets.push(set);
    writer.create(set.object);
    return set;
  }
}
