/**
 * How long random tests run.
 * @module
 */

import process from "node:process";
import fc from "fast-check";

/**
 * Options for fast-check's `assert`. `LISTWATCH_PROPERTY_RUNS` multiplies the number of runs (such as `10`,
 * or `0.1`), and `LISTWATCH_PROPERTY_SEED` repeats those of a failure, whose report names its seed.
 */
export function propertyOptions(numRuns: number): { numRuns: number; seed?: number } {
  const factor = Number(process.env.LISTWATCH_PROPERTY_RUNS ?? 1);
  if (!(factor > 0)) throw new RangeError(`LISTWATCH_PROPERTY_RUNS must be a number above 0, not ${factor}`);
  const seed = process.env.LISTWATCH_PROPERTY_SEED;
  return { numRuns: Math.ceil(numRuns * factor), ...(seed === undefined ? {} : { seed: Number(seed) }) };
}

/** Any character, for the strings of fast-check; its own unit "binary" takes more than a second to make. */
export const anyCharacter: fc.Arbitrary<string> = fc.integer({ min: 0, max: 0x10ffff })
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code));
