/**
 * A source of random numbers from 0 (included) to 1 (excluded) that depends on its seed alone (xorshift128,
 * its state filled by splitmix32). Not for secrets.
 * @param seed A whole number; only its lowest 32 bits count.
 *
 * @example
 * ```ts
 * import { seededRandom } from "@listwatch/cache/testing";
 * const [a, b] = [seededRandom(7), seededRandom(7)];
 * console.log(a() === b()); // true
 * ```
 */
export function seededRandom(seed: number): () => number {
  let spread = seed | 0;
  const next32 = (): number => {
    spread = (spread + 0x9e3779b9) | 0;
    let z = spread;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) | 0;
  };
  let a = next32() | 1; // never all zero
  let b = next32();
  let c = next32();
  let d = next32();
  return () => {
    let t = d;
    d = c;
    c = b;
    b = a;
    t ^= t << 11;
    t ^= t >>> 8;
    a = t ^ a ^ (a >>> 19);
    return (a >>> 0) / 2 ** 32;
  };
}
