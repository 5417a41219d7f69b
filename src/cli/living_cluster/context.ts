/**
 * What the parts of the living cluster share: random choices, timers, Events, and where changes are written.
 * @module
 */

import type { Clock, TimerHandle } from "../../util/clock.ts";
import { type ClusterEvent, type ClusterObject, eventObject } from "./objects.ts";

/** Receives the changes of a living cluster; called synchronously, in their order. */
export interface ClusterWriter {
  /** A new object. */
  create(object: ClusterObject): void;
  /** The new state of an object, whole. */
  update(object: ClusterObject): void;
  /** The last state of a deleted object. */
  delete(object: ClusterObject): void;
}

/** What each part of the living cluster works with. */
export interface ClusterContext {
  readonly writer: ClusterWriter;
  readonly dice: Dice;
  readonly timers: Timers;
  readonly events: Events;
}

const HEX = "0123456789abcdef";
// No vowels and no digits that look like letters: https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go
const NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Makes the random choices of the living cluster. */
export class Dice {
  readonly #random: () => number;

  /** @param random Numbers in [0, 1). */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** True with this probability. */
  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A number from 0 (included) to `max` (excluded). */
  upTo(max: number): number {
    return this.#random() * max;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }

  /** One of several, `undefined` if there are none. */
  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** Letters and digits as Kubernetes appends them to generated names. */
  letters(length: number): string {
    return this.#text(NAME_LETTERS, length);
  }

  /** Hexadecimal digits. */
  hex(length: number): string {
    return this.#text(HEX, length);
  }

  /** A version 4 UUID. */
  uid(): string {
    const [a, b, c, d, e] = [8, 4, 3, 3, 12].map((length) => this.hex(length));
    return `${a}-${b}-4${c}-a${d}-${e}`;
  }

  #text(alphabet: string, length: number): string {
    let text = "";
    for (let i = 0; i < length; i++) text += alphabet[Math.floor(this.#random() * alphabet.length)];
    return text;
  }
}

/** Runs actions after random times, until it is stopped. */
export class Timers {
  readonly #clock: Clock;
  readonly #dice: Dice;
  readonly #timers = new Set<TimerHandle>();
  #onError: (error: unknown) => void = () => {};

  constructor(clock: Clock, dice: Dice) {
    this.#clock = clock;
    this.#dice = dice;
  }

  /** The wall-clock time: objects are dated with it. */
  now(): number {
    return this.#clock.now();
  }

  /** Runs an action once, after a random time from `minMs` to `maxMs`. */
  after(minMs: number, maxMs: number, action: () => void): void {
    const timer = this.#clock.setTimeout(() => {
      this.#timers.delete(timer);
      try {
        action();
      } catch (error) {
        this.#onError(error);
      }
    }, minMs + this.#dice.upTo(maxMs - minMs));
    this.#timers.add(timer);
  }

  /** Runs an action repeatedly, every `meanMs` on average; the first time within `meanMs`. */
  often(meanMs: number, action: () => void): void {
    const again = (): void => {
      this.after(meanMs * 0.4, meanMs * 1.6, again);
      action();
    };
    this.after(0, meanMs, again);
  }

  /** Sets the function that receives what an action throws. */
  onError(callback: (error: unknown) => void): void {
    this.#onError = callback;
  }

  /** Clears every timer. */
  stop(): void {
    for (const timer of this.#timers) this.#clock.clearTimeout(timer);
    this.#timers.clear();
  }
}

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
