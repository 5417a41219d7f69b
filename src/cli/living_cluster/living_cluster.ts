/**
 * The model of a small cluster that changes: pods start, become ready, crash and end.
 * @module
 */

import type { Clock } from "../../util/clock.ts";
import { onAbort } from "../../util/abort.ts";
import { APPS, NAMESPACES, NODES } from "./apps.ts";
import { type ClusterContext, type ClusterWriter, Dice, Events, Timers } from "./context.ts";
import { Nodes } from "./nodes.ts";
import { type ClusterObject, configMapObject, namespaceObject, serviceObject } from "./objects.ts";
import { isRollingOut } from "./workload.ts";
import { Workloads } from "./workloads.ts";

const HOUR_MS = 3_600_000;
const PAST_EVENTS = 55;
const HEARTBEAT_INTERVAL_MS = 2_000;

/** Options of {@linkcode LivingCluster}. */
export interface LivingClusterOptions {
  readonly clock: Clock;
  /** Numbers in [0, 1); the same numbers make the same cluster. */
  readonly random: () => number;
}

/** The mean time between two changes of each kind. */
const MEAN_MS = {
  crash: 8_000,
  evict: 12_000,
  scale: 16_000,
  configure: 20_000,
  rollOut: 40_000,
  drain: 75_000,
} as const;

/**
 * The model of a cluster of about 300 objects (namespaces, nodes, deployments, replica sets, pods, services,
 * config maps, events) with a few changes a second. It holds its own state and writes each change out; it
 * reads nothing.
 */
export class LivingCluster {
  readonly #context: ClusterContext;
  readonly #nodes: Nodes;
  readonly #workloads: Workloads;
  readonly #configMaps: ClusterObject[] = [];
  #configurations = 1;
  #populated = false;

  /** Makes an empty cluster. */
  constructor(writer: ClusterWriter, options: LivingClusterOptions) {
    const dice = new Dice(options.random);
    const timers = new Timers(options.clock, dice);
    this.#context = { writer, dice, timers, events: new Events(writer, dice, timers) };
    this.#nodes = new Nodes(this.#context);
    this.#workloads = new Workloads(this.#context, this.#nodes);
  }

  /**
   * Writes the whole population in the state it has some days after its setup: everything ready. Only once.
   */
  populate(): void {
    if (this.#populated) return;
    this.#populated = true;
    const { writer, dice, timers, events } = this.#context;
    const bornMs = timers.now() - 240 * HOUR_MS;
    for (const name of NAMESPACES) {
      writer.create(namespaceObject({ name, uid: dice.uid(), createdMs: bornMs }));
      const meta = { name: "kube-root-ca.crt", namespace: name, uid: dice.uid(), createdMs: bornMs };
      writer.create(configMapObject(meta, { "ca.crt": "This cluster has no TLS.\n" }));
    }
    const kubernetes = { name: "kubernetes", namespace: "default", uid: dice.uid(), createdMs: bornMs };
    writer.create(serviceObject(kubernetes, "10.96.0.1"));
    for (const name of NODES) this.#nodes.add(name, bornMs);
    APPS.forEach((app, i) => {
      const createdMs = bornMs + dice.between(1, 200) * HOUR_MS;
      const of = { name: app.name, namespace: app.namespace, createdMs, labels: { app: app.name } };
      writer.create(serviceObject({ ...of, uid: dice.uid() }, `10.96.1.${10 + i}`, of.labels));
      const configMap = configMapObject({ ...of, uid: dice.uid() }, { revision: "1", "log.level": "info" });
      this.#configMaps.push(configMap);
      writer.create(configMap);
      this.#workloads.add(app, createdMs);
    });
    for (let i = PAST_EVENTS; i > 0; i--) {
      const pod = dice.pick(this.#workloads.podsAt("ready"));
      if (!pod) break;
      const message = `Container image "${pod.set.image}" already present on machine`;
      events.record(
        pod.object,
        { reason: "Pulled", message, component: "kubelet" },
        timers.now() - i * 60_000,
      );
    }
  }

  /**
   * Populates the cluster unless that was done, and changes it until `signal` is aborted. Then resolves with
   * no timer left; rejects if the writer throws.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { timers } = this.#context;
    let cancel = () => {};
    try {
      this.populate();
      timers.often(MEAN_MS.crash, () => this.#crash());
      timers.often(MEAN_MS.evict, () => this.#evict());
      timers.often(MEAN_MS.scale, () => this.#scale());
      timers.often(MEAN_MS.configure, () => this.#configure());
      timers.often(MEAN_MS.rollOut, () => this.#rollOut());
      timers.often(MEAN_MS.drain, () => this.#drain());
      this.#heartbeat(0);
      await new Promise<void>((resolve, reject) => {
        timers.onError(reject);
        cancel = onAbort(signal, resolve);
      });
    } finally {
      cancel();
      timers.stop();
    }
  }

  #crash(): void {
    const pod = this.#context.dice.pick(this.#workloads.podsAt("ready"));
    if (pod) this.#workloads.pods.crash(pod);
  }

  #evict(): void {
    const pod = this.#context.dice.pick(this.#workloads.podsAt("ready"));
    if (pod) this.#workloads.pods.end(pod, "Killing", `Stopping container ${pod.workload.app.name}`);
  }

  #scale(): void {
    const workload = this.#context.dice.pick(this.#workloads.all);
    if (!workload) return;
    const { replicas } = workload.app;
    const most = replicas > 4 ? 2 : 1;
    this.#workloads.scale(workload, Math.max(1, replicas + this.#context.dice.between(-most, most)));
  }

  #rollOut(): void {
    const workload = this.#context.dice.pick(
      this.#workloads.all.filter((workload) => !isRollingOut(workload)),
    );
    if (workload) this.#workloads.rollOut(workload);
  }

  #configure(): void {
    const i = this.#context.dice.between(0, this.#configMaps.length - 1);
    const level = this.#context.dice.happens(0.5) ? "info" : "debug";
    this.#configMaps[i] = {
      ...this.#configMaps[i],
      data: { revision: String(++this.#configurations), "log.level": level },
    };
    this.#context.writer.update(this.#configMaps[i]);
  }

  /** Closes a node, evicts some of its pods, and opens it again. */
  #drain(): void {
    const node = this.#context.dice.pick(this.#nodes.all);
    if (!node || this.#nodes.all.some((other) => other.unschedulable)) return;
    this.#nodes.setUnschedulable(node.index, true);
    const leaving = this.#workloads.podsAt("ready").filter((pod) => pod.nodeIndex === node.index).slice(0, 4);
    leaving.forEach((pod, i) => {
      this.#context.timers.after(2_000 + i * 4_000, 3_000 + i * 4_000, () => {
        if (pod.stage !== "ready") return;
        this.#workloads.pods.end(pod, "Evicted", `Evicted from ${node.meta.name}, which is being drained`);
      });
    });
    this.#context.timers.after(25_000, 40_000, () => this.#nodes.setUnschedulable(node.index, false));
  }

  /** Writes the heartbeat of each node in turn. */
  #heartbeat(index: number): void {
    this.#context.timers.after(HEARTBEAT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS, () => {
      this.#nodes.heartbeat(index);
      this.#heartbeat((index + 1) % this.#nodes.all.length);
    });
  }
}
