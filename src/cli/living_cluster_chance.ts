/**
 * Chance, time and events for the living cluster.
 * @module
 */

import { type ClusterEvent, type ClusterObject, eventObject } from "./living_cluster_objects.ts";
import type { Clock, TimerHandle } from "../util/clock.ts";

/** Where the living cluster writes; called synchronously, in the order of the changes. */
export interface ClusterWriter {
  /** A new object. */
  create(object: ClusterObject): void;
  /** An object as it is now, whole. */
  update(object: ClusterObject): void;
  /** An object that is gone. */
  delete(object: ClusterObject): void;
}

/** Options of the living cluster. */
export interface LivingClusterOptions {
  readonly clock: Clock;
  /** Numbers in [0, 1); the same ones make the same cluster. */
  readonly random: () => number;
}

// Old events go, as an API server lets them expire.
const MAX_EVENTS = 75;

/** What every part of the living cluster shares: a writer, timers that can all be cleared, and dice. */
export class Chance {
  readonly writer: ClusterWriter;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #timers = new Set<TimerHandle>();
  readonly #events: ClusterObject[] = [];
  #onError: (error: unknown) => void = () => {};

  /** Makes dice that write to `writer`. */
  constructor(writer: ClusterWriter, options: LivingClusterOptions) {
    this.writer = writer;
    this.#clock = options.clock;
    this.#random = options.random;
  }

  /** The present time. */
  now(): number {
    return this.#clock.now();
  }

  /** Does something after a random time between the two. */
  after(minMs: number, maxMs: number, action: () => void): void {
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(timer);
      try {
        action();
      } catch (error) {
        this.#onError(error);
      }
    }, minMs + this.#random() * (maxMs - minMs));
    this.#timers.add(timer);
  }

  /** Does something again and again, every `meanMs` on average; for the first time within `meanMs`. */
  often(meanMs: number, action: () => void): void {
    const again = (): void => {
      this.after(meanMs * 0.4, meanMs * 1.6, again);
      action();
    };
    this.after(0, meanMs, again);
  }

  /** Says who is told when an action throws. */
  onError(callback: (error: unknown) => void): void {
    this.#onError = callback;
  }

  /** Clears every timer. */
  stop(): void {
    for (const timer of this.#timers) this.#clock.clearTimeout(timer);
    this.#timers.clear();
  }

  /** Writes an event about an object, now or at a time past, and takes the oldest away when there are many. */
  tell(about: ClusterObject, event: ClusterEvent, createdMs: number = this.now()): void {
    const name = `${about.metadata.name}.${this.#text(HEX, 16)}`;
    const namespace = about.metadata.namespace ?? "default";
    const object = eventObject({ name, namespace, uid: this.uid(), createdMs }, about, event);
    this.#events.push(object);
    this.writer.create(object);
    if (this.#events.length > MAX_EVENTS) this.writer.delete(this.#events.shift() as ClusterObject);
  }

  /** Whether something of this probability happens. */
  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A number from 0 up to, and without, `max`. */
  upTo(max: number): number {
    return this.#random() * max;
  }

  /** A whole number from `min` to `max`. */
  between(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }

  /** One of several, if there are any. */
  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** Letters and digits as Kubernetes picks them for names: no vowels, nothing that looks like another. */
  letters(length: number): string {
    return this.#text(NAME_LETTERS, length);
  }

  /** A UUID. */
  uid(): string {
    const [a, b, c, d, e] = [8, 4, 3, 3, 12].map((length) => this.#text(HEX, length));
    return `${a}-${b}-4${c}-a${d}-${e}`;
  }

  #text(alphabet: string, length: number): string {
    let text = "";
    for (let i = 0; i < length; i++) text += alphabet[Math.floor(this.#random() * alphabet.length)];
    return text;
  }
}

const HEX = "0123456789abcdef";
const NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789";
