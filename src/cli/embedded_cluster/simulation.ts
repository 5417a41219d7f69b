/** What the parts of the embedded cluster share: the API server, random choices, timers and Events. */

import { type BuiltObject, event } from "../../testing/builders.ts";
import { InMemoryApiServer } from "../../testing/in_memory_api_server.ts";
import { timestamp } from "../../testing/object_checks.ts";
import { seededRandom } from "../../testing/seeded_random.ts";
import { onAbort } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import { DelayingQueue } from "../../workqueue/delaying_queue.ts";

// An API server deletes Events after an hour; here the oldest is deleted when there are more.
const MAX_EVENTS = 75;

export class Simulation {
  readonly server: InMemoryApiServer;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #actions: DelayingQueue<() => unknown>;
  readonly #events: BuiltObject[] = [];

  constructor(clock: Clock, seed: number) {
    const random = seededRandom(seed);
    this.server = new InMemoryApiServer({ clock, random, requestLogLimit: 10, gracefulPodDeletion: true });
    this.#clock = clock;
    this.#random = seededRandom(seed);
    this.#actions = new DelayingQueue({ clock });
  }

  /** The time as objects have it, or one before it. */
  time(agoMs = 0): string {
    return timestamp(this.#clock.now() - agoMs);
  }

  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** Runs an action once, after a random time from `minMs` to `maxMs`. */
  after(minMs: number, maxMs: number, action: () => unknown): void {
    this.#actions.addAfter(action, minMs + this.#random() * (maxMs - minMs));
  }

  /** Runs an action repeatedly, every `meanMs` on average; the first time within `meanMs`. */
  often(meanMs: number, action: () => void): void {
    const again = (): void => {
      this.after(meanMs * 0.4, meanMs * 1.6, again);
      action();
    };
    this.after(0, meanMs, again);
  }

  /** Records an Event about an object; a warning if its type says so. */
  record(
    about: BuiltObject,
    component: string,
    [reason, message]: readonly [reason: string, message: string],
    { type = "Normal", agoMs = 0 }: { readonly type?: "Normal" | "Warning"; readonly agoMs?: number } = {},
  ): void {
    const time = this.time(agoMs);
    const { metadata, ...fields } = event("", { type, reason, message, involvedObject: about });
    const { namespace } = metadata;
    const named = { namespace, generateName: `${about.metadata.name}.`, creationTimestamp: time };
    this.#events.push(this.server.create("v1/events", {
      ...fields,
      metadata: named as unknown as BuiltObject["metadata"],
      source: { component },
      reportingComponent: component,
      reportingInstance: "",
      firstTimestamp: time,
      lastTimestamp: time,
      count: 1,
    }));
    if (this.#events.length > MAX_EVENTS) this.server.delete("v1/events", this.#events.shift()!);
  }

  /** Does what is due until the signal is aborted. Rejects if an action throws. */
  async run(signal: AbortSignal): Promise<void> {
    const actions = this.#actions;
    const letGo = onAbort(signal, () => actions.shutDown());
    try {
      for (let next = await actions.get(); !next.shutdown; next = await actions.get()) {
        await next.item();
        actions.done(next.item);
      }
    } finally {
      letGo();
      actions.shutDown();
    }
  }
}
