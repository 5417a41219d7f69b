/**
 * The Events of the living cluster.
 * @module
 */

import type { ClusterWriter } from "./cluster_writer.ts";
import type { Dice } from "./dice.ts";
import { type ClusterEvent, type ClusterObject, eventObject } from "./objects.ts";
import type { Timers } from "./timers.ts";

// An API server deletes Events after an hour; here the oldest is deleted when there are more.
const MAX_EVENTS = 75;

/** Writes Events about objects, and deletes the oldest ones. */
export class Events {
  readonly #writer: ClusterWriter;
  readonly #dice: Dice;
  readonly #timers: Timers;
  readonly #events: ClusterObject[] = [];

  constructor(writer: ClusterWriter, dice: Dice, timers: Timers) {
    this.#writer = writer;
    this.#dice = dice;
    this.#timers = timers;
  }

  /** Records an Event about an object, at a time in the past if one is given. */
  record(about: ClusterObject, event: ClusterEvent, createdMs: number = this.#timers.now()): void {
    const name = `${about.metadata.name}.${this.#dice.hex(16)}`;
    const namespace = about.metadata.namespace ?? "default";
    const object = eventObject({ name, namespace, uid: this.#dice.uid(), createdMs }, about, event);
    this.#events.push(object);
    this.#writer.create(object);
    if (this.#events.length > MAX_EVENTS) this.#writer.delete(this.#events.shift() as ClusterObject);
  }
}
