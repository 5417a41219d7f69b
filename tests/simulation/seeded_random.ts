/**
 * Random choices that a seed repeats.
 * @module
 */

import { seededRandom } from "../../src/testing/seeded_random.ts";

/** Random choices that depend on a seed alone. */
export class SeededRandom {
  /** The next number, from 0 (included) to 1 (excluded). */
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seededRandom(seed);
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of these. */
  pick<V>(values: readonly V[]): V {
    return values[Math.floor(this.next() * values.length)];
  }

  /** A separate sequence, so that its draws change nothing here. */
  fork(): SeededRandom {
    return new SeededRandom(Math.floor(this.next() * 2 ** 32));
  }
}
