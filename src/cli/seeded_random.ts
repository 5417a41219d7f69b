/**
 * Chance that repeats itself.
 * @module
 */

/**
 * A source of numbers in [0, 1), like `Math.random`, that gives the same ones for the same seed.
 *
 * Not for secrets. The generator is Mulberry32: 32 bits of state, any seed will do.
 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
