/**
 * Randomness that a seed repeats.
 * @module
 */

/** A sequence of numbers that depends on its seed alone (xorshift128 over a seed spread by splitmix32). */
export class SeededRandom {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    let state = seed | 0;
    const spread = () => {
      state = (state + 0x9e3779b9) | 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return (z ^ (z >>> 15)) | 0;
    };
    this.#a = spread() | 1; // never all zero
    this.#b = spread();
    this.#c = spread();
    this.#d = spread();
  }

  /** From 0 (included) to 1 (excluded). */
  readonly next = (): number => {
    let t = this.#d;
    const s = this.#a;
    this.#d = this.#c;
    this.#c = this.#b;
    this.#b = s;
    t ^= t << 11;
    t ^= t >>> 8;
    this.#a = t ^ s ^ (s >>> 19);
    return (this.#a >>> 0) / 2 ** 32;
  };

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

  /** A sequence of its own, so that what is drawn there changes nothing here. */
  fork(): SeededRandom {
    return new SeededRandom(Math.floor(this.next() * 2 ** 32));
  }
}
