/**
 * The nodes of the living cluster.
 * @module
 */

import type { Chance } from "./living_cluster_chance.ts";
import { type ClusterObject, type NewMeta, nodeObject } from "./living_cluster_objects.ts";

/** A node. */
export interface Node {
  readonly index: number;
  readonly meta: NewMeta;
  readonly unschedulable: boolean;
}

/** Nodes that report that they are well, and are drained now and then. */
export class Nodes {
  readonly #chance: Chance;
  readonly #nodes: Node[] = [];

  /** Makes a cluster without nodes. */
  constructor(chance: Chance) {
    this.#chance = chance;
  }

  /** Every node; a node that changes is replaced here. */
  get all(): readonly Node[] {
    return this.#nodes;
  }

  /** Adds a ready node. */
  add(name: string, createdMs: number): void {
    const meta = { name, uid: this.#chance.uid(), createdMs };
    const node: Node = { index: this.#nodes.length, meta, unschedulable: false };
    this.#nodes.push(node);
    this.#chance.writer.create(this.#render(node));
  }

  /** A node writes that it is well. */
  heartbeat(index: number): void {
    this.#chance.writer.update(this.#render(this.#nodes[index]));
  }

  /** Closes a node to new pods, or opens it again. */
  setUnschedulable(index: number, unschedulable: boolean): void {
    const node = { ...this.#nodes[index], unschedulable };
    this.#nodes[index] = node;
    const object = this.#render(node);
    this.#chance.writer.update(object);
    const reason = unschedulable ? "NodeNotSchedulable" : "NodeSchedulable";
    const message = `Node ${node.meta.name} status is now: ${reason}`;
    this.#chance.tell(object, { reason, message, component: "kubelet" });
  }

  #render({ meta, index, unschedulable }: Node): ClusterObject {
    return nodeObject(meta, { index, unschedulable, heartbeatMs: this.#chance.now() });
  }
}
