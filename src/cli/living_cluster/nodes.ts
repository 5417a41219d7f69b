/**
 * The nodes of the living cluster.
 * @module
 */

import type { ClusterContext } from "./context.ts";
import { nodeObject } from "./node_object.ts";
import type { ClusterObject, NewMeta } from "./objects.ts";

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
