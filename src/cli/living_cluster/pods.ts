/**
 * The pods of the living cluster, and what the scheduler and the kubelets do with them.
 * @module
 */

import type { ClusterContext } from "./context.ts";
import type { Nodes } from "./nodes.ts";
import type { ClusterObject } from "./objects.ts";
import { podObject, type PodStage } from "./pod_object.ts";
import type { Pod, ReplicaSet, Workload } from "./workload.ts";

/** Options of {@linkcode Pods}. */
export interface PodsOptions {
  readonly nodes: Nodes;
  /** Called when a pod of this workload changed its stage or was deleted. */
  readonly onChange: (workload: Workload) => void;
}

/** Creates, schedules, starts, crashes and ends pods. */
export class Pods {
  readonly #context: ClusterContext;
  readonly #nodes: Nodes;
  readonly #onChange: (workload: Workload) => void;
  readonly #all = new Set<Pod>();
  #addresses = 0;

  constructor(context: ClusterContext, { nodes, onChange }: PodsOptions) {
    this.#context = context;
    this.#nodes = nodes;
    this.#onChange = onChange;
  }

  /** Adds a pod that has been ready for a long time. */
  addReady(workload: Workload, set: ReplicaSet, createdMs: number): void {
    const { dice, writer } = this.#context;
    const pod = this.#newPod(workload, set, createdMs);
    this.#bind(pod);
    pod.podIP = this.#podAddress(pod);
    pod.restarts = dice.happens(0.15) ? dice.between(1, 4) : 0;
    pod.stage = "ready";
    pod.object = this.#render(pod);
    writer.create(pod.object);
  }

  /** Adds a new pod; it is scheduled, starts and, as a rule, becomes ready some seconds later. */
  add(workload: Workload, set: ReplicaSet): void {
    const { writer, timers, events } = this.#context;
    const pod = this.#newPod(workload, set, timers.now());
    writer.create(pod.object);
    const message = `Created pod: ${pod.meta.name}`;
    events.record(set.object, { reason: "SuccessfulCreate", message, component: "replicaset-controller" });
    timers.after(100, 700, () => {
      if (pod.stage !== "pending") return;
      this.#bind(pod);
      this.#moveTo(pod, "creating");
      const node = this.#nodes.all[pod.nodeIndex ?? 0].meta.name;
      const message = `Successfully assigned ${workload.app.namespace}/${pod.meta.name} to ${node}`;
      events.record(pod.object, { reason: "Scheduled", message, component: "default-scheduler" });
      timers.after(800, 3_000, () => {
        if (pod.stage !== "creating") return;
        pod.podIP = this.#podAddress(pod);
        this.#moveTo(pod, "starting");
        this.#becomeReady(pod, 0.06);
      });
    });
  }

  /** Lets a ready pod's container fail; as a rule it becomes ready again some seconds later. */
  crash(pod: Pod): void {
    const { timers, events } = this.#context;
    pod.restarts++;
    this.#moveTo(pod, "crashed");
    const message = `Back-off restarting failed container ${pod.workload.app.name} in pod ${pod.meta.name}`;
    events.record(pod.object, { reason: "BackOff", message, component: "kubelet", warning: true });
    timers.after(4_000, 12_000, () => {
      if (pod.stage !== "crashed") return;
      this.#moveTo(pod, "starting");
      this.#becomeReady(pod, 0.25);
    });
  }

  /** Ends a pod gracefully: it is terminating at once, and deleted some seconds later. */
  end(pod: Pod, reason: string, message: string): void {
    if (pod.stage === "terminating") return;
    const { writer, timers, events } = this.#context;
    pod.endedFrom = pod.stage;
    this.#moveTo(pod, "terminating");
    events.record(pod.object, { reason, message, component: "kubelet" });
    timers.after(1_500, 4_500, () => {
      this.#all.delete(pod);
      pod.workload.pods.delete(pod);
      writer.delete(pod.object);
      this.#onChange(pod.workload);
    });
  }

  #newPod(workload: Workload, set: ReplicaSet, createdMs: number): Pod {
    const { dice } = this.#context;
    const { namespace } = workload.app;
    const name = `${set.meta.name}-${dice.letters(5)}`;
    const { labels } = set.meta;
    const meta = { name, namespace, uid: dice.uid(), createdMs, labels, owner: set.object };
    const from = { stage: "pending" as const, sinceMs: createdMs, restarts: 0 };
    const pod: Pod = { meta, workload, set, ...from, object: podObject(meta, { image: set.image, ...from }) };
    workload.pods.add(pod);
    this.#all.add(pod);
    return pod;
  }

  #becomeReady(pod: Pod, crashProbability: number): void {
    const { dice, timers } = this.#context;
    timers.after(1_000, 4_000, () => {
      if (pod.stage !== "starting") return;
      if (dice.happens(crashProbability)) this.crash(pod);
      else this.#moveTo(pod, "ready");
    });
  }

  #moveTo(pod: Pod, stage: PodStage): void {
    pod.stage = stage;
    pod.sinceMs = this.#context.timers.now();
    pod.object = this.#render(pod);
    this.#context.writer.update(pod.object);
    this.#onChange(pod.workload);
  }

  /** Puts a pod on one of the open nodes with the fewest pods. */
  #bind(pod: Pod): void {
    const load: number[] = this.#nodes.all.map(() => this.#context.dice.upTo(5));
    for (const { nodeIndex } of this.#all) if (nodeIndex !== undefined) load[nodeIndex]++;
    const open = this.#nodes.all.filter((node) => !node.unschedulable).map((node) => node.index);
    pod.nodeIndex = open.reduce((best, index) => load[index] < load[best] ? index : best, open[0]);
  }

  /** The next free address of the pod's node. */
  #podAddress(pod: Pod): string {
    const used = new Set<string | undefined>();
    for (const { podIP } of this.#all) used.add(podIP);
    for (;;) {
      const address = `10.244.${pod.nodeIndex ?? 0}.${2 + (this.#addresses++ % 250)}`;
      if (!used.has(address)) return address;
    }
  }

  #render(pod: Pod): ClusterObject {
    const { meta, set, stage, sinceMs, restarts, nodeIndex, podIP, endedFrom } = pod;
    const node = nodeIndex === undefined ? undefined : this.#nodes.all[nodeIndex].meta.name;
    return podObject(meta, { image: set.image, stage, sinceMs, restarts, node, nodeIndex, podIP, endedFrom });
  }
}
