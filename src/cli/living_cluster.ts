/**
 * A small cluster that lives: deployments whose pods come, get ready, crash and go.
 * @module
 */

import { onAbort } from "../util/abort.ts";
import { APPS, NAMESPACES, NODES } from "./living_cluster_apps.ts";
import { Chance, type ClusterWriter, type LivingClusterOptions } from "./living_cluster_chance.ts";
import { Nodes } from "./living_cluster_nodes.ts";
import {
  type ClusterObject,
  configMapObject,
  namespaceObject,
  serviceObject,
} from "./living_cluster_objects.ts";
import { isRollingOut, Workloads } from "./living_cluster_workloads.ts";

export type { ClusterWriter, LivingClusterOptions } from "./living_cluster_chance.ts";
export type { ClusterObject } from "./living_cluster_objects.ts";

const HOUR_MS = 3_600_000;
const PAST_EVENTS = 55;
const HEARTBEAT_INTERVAL_MS = 2_000;

/** How often, on average, what happens. */
const MEAN_MS = {
  crash: 8_000,
  evict: 12_000,
  scale: 16_000,
  configure: 20_000,
  rollOut: 40_000,
  drain: 75_000,
} as const;

/**
 * The model of a cluster of about 300 objects (namespaces, nodes, deployments, replica sets, pods, services, config
 * maps, events) with a few changes a second. It holds its own state and writes each change out; it reads nothing.
 */
export class LivingCluster {
  readonly #chance: Chance;
  readonly #nodes: Nodes;
  readonly #workloads: Workloads;
  readonly #configMaps: ClusterObject[] = [];
  #configurations = 1;
  #populated = false;

  /** Makes a cluster that holds nothing yet. */
  constructor(writer: ClusterWriter, options: LivingClusterOptions) {
    this.#chance = new Chance(writer, options);
    this.#nodes = new Nodes(this.#chance);
    this.#workloads = new Workloads(this.#chance, this.#nodes);
  }

  /** Writes the whole population, as it would be some days after it was set up: everything ready. Only once. */
  populate(): void {
    if (this.#populated) return;
    this.#populated = true;
    const chance = this.#chance;
    const bornMs = chance.now() - 240 * HOUR_MS;
    for (const name of NAMESPACES) {
      chance.writer.create(namespaceObject({ name, uid: chance.uid(), createdMs: bornMs }));
      const meta = { name: "kube-root-ca.crt", namespace: name, uid: chance.uid(), createdMs: bornMs };
      chance.writer.create(configMapObject(meta, { "ca.crt": "This cluster has no TLS.\n" }));
    }
    const kubernetes = { name: "kubernetes", namespace: "default", uid: chance.uid(), createdMs: bornMs };
    chance.writer.create(serviceObject(kubernetes, "10.96.0.1"));
    for (const name of NODES) this.#nodes.add(name, bornMs);
    APPS.forEach((app, i) => {
      const createdMs = bornMs + chance.between(1, 200) * HOUR_MS;
      const of = { name: app.name, namespace: app.namespace, createdMs, labels: { app: app.name } };
      chance.writer.create(serviceObject({ ...of, uid: chance.uid() }, `10.96.1.${10 + i}`, of.labels));
      const configMap = configMapObject({ ...of, uid: chance.uid() }, { revision: "1", "log.level": "info" });
      this.#configMaps.push(configMap);
      chance.writer.create(configMap);
      this.#workloads.add(app, createdMs);
    });
    for (let i = PAST_EVENTS; i > 0; i--) {
      const pod = chance.pick(this.#workloads.pods("ready"));
      if (!pod) break;
      const message = `Container image "${pod.set.image}" already present on machine`;
      chance.tell(pod.object, { reason: "Pulled", message, component: "kubelet" }, chance.now() - i * 60_000);
    }
  }

  /**
   * Lets time pass: populates the cluster if that was not done, and changes it until `signal` is aborted. Resolves
   * then, with no timer left; rejects if the writer throws.
   */
  async run(signal: AbortSignal): Promise<void> {
    const chance = this.#chance;
    let cancel = () => {};
    try {
      this.populate();
      chance.often(MEAN_MS.crash, () => this.#crash());
      chance.often(MEAN_MS.evict, () => this.#evict());
      chance.often(MEAN_MS.scale, () => this.#scale());
      chance.often(MEAN_MS.configure, () => this.#configure());
      chance.often(MEAN_MS.rollOut, () => this.#rollOut());
      chance.often(MEAN_MS.drain, () => this.#drain());
      this.#heartbeat(0);
      await new Promise<void>((resolve, reject) => {
        chance.onError(reject);
        cancel = onAbort(signal, resolve);
      });
    } finally {
      cancel();
      chance.stop();
    }
  }

  #crash(): void {
    const pod = this.#chance.pick(this.#workloads.pods("ready"));
    if (pod) this.#workloads.crash(pod);
  }

  #evict(): void {
    const pod = this.#chance.pick(this.#workloads.pods("ready"));
    if (pod) this.#workloads.end(pod, "Killing", `Stopping container ${pod.workload.app.name}`);
  }

  #scale(): void {
    const workload = this.#chance.pick(this.#workloads.all);
    if (!workload) return;
    const { replicas } = workload.app;
    const most = replicas > 4 ? 2 : 1;
    this.#workloads.scale(workload, Math.max(1, replicas + this.#chance.between(-most, most)));
  }

  #rollOut(): void {
    const workload = this.#chance.pick(this.#workloads.all.filter((workload) => !isRollingOut(workload)));
    if (workload) this.#workloads.rollOut(workload);
  }

  #configure(): void {
    const i = this.#chance.between(0, this.#configMaps.length - 1);
    const level = this.#chance.happens(0.5) ? "info" : "debug";
    this.#configMaps[i] = {
      ...this.#configMaps[i],
      data: { revision: String(++this.#configurations), "log.level": level },
    };
    this.#chance.writer.update(this.#configMaps[i]);
  }

  /** Closes a node, moves some of its pods elsewhere, and opens it again. */
  #drain(): void {
    const node = this.#chance.pick(this.#nodes.all);
    if (!node || this.#nodes.all.some((other) => other.unschedulable)) return;
    this.#nodes.setUnschedulable(node.index, true);
    const leaving = this.#workloads.pods("ready").filter((pod) => pod.nodeIndex === node.index).slice(0, 4);
    leaving.forEach((pod, i) => {
      this.#chance.after(2_000 + i * 4_000, 3_000 + i * 4_000, () => {
        if (pod.stage !== "ready") return;
        this.#workloads.end(pod, "Evicted", `Evicted from ${node.meta.name}, which is being drained`);
      });
    });
    this.#chance.after(25_000, 40_000, () => this.#nodes.setUnschedulable(node.index, false));
  }

  /** Each node in turn writes that it is well. */
  #heartbeat(index: number): void {
    this.#chance.after(HEARTBEAT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS, () => {
      this.#nodes.heartbeat(index);
      this.#heartbeat((index + 1) % this.#nodes.all.length);
    });
  }
}
