/**
 * The nodes of the living cluster.
 * @module
 */

import type { ClusterContext } from "./context.ts";
import { type ClusterObject, metadata, type NewMeta, timestamp } from "./objects.ts";

/** A node. */
export interface Node {
  readonly index: number;
  readonly meta: NewMeta;
  readonly unschedulable: boolean;
}

/** The nodes, which send heartbeats and can be closed to new pods. */
export class Nodes {
  readonly #context: ClusterContext;
  readonly #nodes: Node[] = [];

  constructor(context: ClusterContext) {
    this.#context = context;
  }

  /** Every node, in its present state. */
  get all(): readonly Node[] {
    return this.#nodes;
  }

  /** Adds a ready node. */
  add(name: string, createdMs: number): void {
    const meta = { name, uid: this.#context.dice.uid(), createdMs };
    const node: Node = { index: this.#nodes.length, meta, unschedulable: false };
    this.#nodes.push(node);
    this.#context.writer.create(this.#render(node));
  }

  /** Writes the heartbeat of a node. */
  heartbeat(index: number): void {
    this.#context.writer.update(this.#render(this.#nodes[index]));
  }

  /** Closes a node to new pods, or opens it again. */
  setUnschedulable(index: number, unschedulable: boolean): void {
    const node = { ...this.#nodes[index], unschedulable };
    this.#nodes[index] = node;
    const object = this.#render(node);
    this.#context.writer.update(object);
    const reason = unschedulable ? "NodeNotSchedulable" : "NodeSchedulable";
    const message = `Node ${node.meta.name} status is now: ${reason}`;
    this.#context.events.record(object, { reason, message, component: "kubelet" });
  }

  #render({ meta, index, unschedulable }: Node): ClusterObject {
    return nodeObject(meta, { index, unschedulable, heartbeatMs: this.#context.timers.now() });
  }
}

/** What changes about a node. */
export interface NodeState {
  readonly index: number;
  readonly unschedulable: boolean;
  readonly heartbeatMs: number;
}

/** A node that is ready. */
export function nodeObject(of: NewMeta, state: NodeState): ClusterObject {
  const heartbeat = timestamp(state.heartbeatMs);
  const condition = (type: string, status: string, reason: string, message: string) => ({
    type,
    status,
    lastHeartbeatTime: heartbeat,
    lastTransitionTime: timestamp(of.createdMs + 20_000),
    reason,
    message,
  });
  const taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
  const room = { cpu: "8", "ephemeral-storage": "99Gi", memory: "32Gi", pods: "32" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: metadata({
      ...of,
      labels: {
        "kubernetes.io/arch": state.index % 3 === 2 ? "arm64" : "amd64",
        "kubernetes.io/hostname": of.name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": `zone-${"abc"[state.index % 3]}`,
      },
    }),
    spec: {
      podCIDR: `10.244.${state.index}.0/24`,
      ...(state.unschedulable && { unschedulable: true, taints: [taint] }),
    },
    status: {
      addresses: [
        { type: "InternalIP", address: nodeAddress(state.index) },
        { type: "Hostname", address: of.name },
      ],
      capacity: room,
      allocatable: room,
      conditions: [
        condition(
          "MemoryPressure",
          "False",
          "KubeletHasSufficientMemory",
          "kubelet has sufficient memory available",
        ),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
      ],
      nodeInfo: {
        architecture: state.index % 3 === 2 ? "arm64" : "amd64",
        containerRuntimeVersion: "containerd://2.2.1",
        kernelVersion: "6.12.0",
        kubeletVersion: "v1.36.3",
        operatingSystem: "linux",
        osImage: "Debian GNU/Linux 13",
      },
    },
  };
}

/** The address of a node. */
export function nodeAddress(index: number): string {
  return `10.0.0.${10 + index}`;
}
