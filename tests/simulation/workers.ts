/**
 * Workers of the program under test, which reconcile the keys of its notifications through a work queue.
 * @module
 */

import type { ResourceEventHandler, SharedIndexInformer } from "@listwatch/cache";
import {
  type GetResult,
  itemExponentialFailureRateLimiter,
  RateLimitingQueue,
} from "@listwatch/cache/workqueue";
import { keyOfObject, type SimObject, stateOf } from "./cluster_model.ts";
import type { CountedSignals } from "./counted_signals.ts";
import type { SeededRandom } from "./seeded_random.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** What workers need of their program. */
export interface WorkersOptions {
  readonly name: string;
  readonly count: number;
  readonly informer: SharedIndexInformer<SimObject, never>;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly signals: CountedSignals;
  readonly violate: (text: string) => void;
}

/** Workers of one queue: no two of them have the same key, and the last change of a key is processed last. */
export class Workers implements ResourceEventHandler<SimObject> {
  readonly #options: WorkersOptions;
  readonly #queue: RateLimitingQueue<string>;
  readonly #signal: AbortSignal;
  /** The last state in which each key was processed. */
  readonly #done = new Map<string, string>();
  readonly #busy = new Set<string>();
  readonly #running: Promise<void>[] = [];

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#signal = options.signals.make(`the workers of ${options.name}`).signal;
    this.#queue = new RateLimitingQueue<string>(
      itemExponentialFailureRateLimiter<string>({ baseDelayMs: 5, maxDelayMs: 2_000 }),
      { clock: options.time, signal: this.#signal },
    );
    for (let i = 0; i < options.count; i++) this.#running.push(this.#run());
  }

  onAdd(object: SimObject): void {
    this.#queue.add(keyOfObject(object));
  }

  onUpdate(_old: SimObject, object: SimObject): void {
    this.#queue.add(keyOfObject(object));
  }

  onDelete({ key }: { readonly key: string }): void {
    this.#queue.add(key);
  }

  /** A key whose last processed state is not the stored one. */
  difference(): string | undefined {
    const { indexer } = this.#options.informer;
    for (const object of indexer.list()) {
      const key = keyOfObject(object);
      if (this.#done.get(key) !== stateOf(object)) {
        return `${key} was processed as ${this.#done.get(key)}, not as ${stateOf(object)}`;
      }
    }
    for (const [key, state] of this.#done) {
      if (state !== "nothing" && indexer.getByKey(key) === undefined) {
        return `${key} was deleted, and no worker processed that`;
      }
    }
    return undefined;
  }

  /** Ends them; resolves when they have. */
  async stop(): Promise<void> {
    this.#queue.shutDown();
    await Promise.all(this.#running);
  }

  async #run(): Promise<void> {
    const { informer, random, time, signals, name, violate } = this.#options;
    let patience = signals.make(`a worker of ${name}`);
    for (;;) {
      let next: GetResult<string>;
      // A worker whose wait timed out tries again later.
      const isImpatient = random.chance(0.1);
      if (isImpatient) time.schedule(() => patience.abort(), random.int(0, 3_000));
      try {
        next = await this.#queue.get(patience.signal);
      } catch (error) {
        if (!patience.signal.aborted) return violate(`${name}: a worker's get rejects: ${error}`);
        patience = signals.make(`a worker of ${name}`);
        continue;
      }
      if (patience.listeners > 0) {
        violate(`${name}: the queue still listens to the signal of a worker that has its item`);
      }
      if (isImpatient) patience = signals.make(`a worker of ${name}`);
      if (next.shutdown) return;
      const key = next.item;
      if (this.#busy.has(key)) violate(`${name}: two workers have ${key}`);
      this.#busy.add(key);
      const state = stateOf(informer.indexer.getByKey(key));
      const workMs = random.pick([0, 0, 3, 200]);
      if (workMs > 0) await new Promise<void>((resolve) => time.schedule(resolve, workMs));
      this.#busy.delete(key);
      if (random.chance(0.1)) {
        this.#queue.addRateLimited(key);
      } else {
        this.#queue.forget(key);
        this.#done.set(key, state);
      }
      this.#queue.done(key);
    }
  }
}
