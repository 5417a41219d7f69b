/**
 * Numbers among options.
 * @module
 */

/** What a number must be. */
export interface NumberRule {
  /** The least that it may be; 0 by default. */
  readonly least?: number;
  /** Whether it may be without end; no by default. */
  readonly mayBeInfinite?: boolean;
}

/**
 * Refuses numbers that make no sense: `NaN` most of all, which compares as nothing and so turns a limit off, or a loop.
 * What is `undefined` was left out, and is fine.
 *
 * @param what What cannot be done with such a number, such as `parallelize`.
 *
 * @throws {RangeError} One of them is not a number, less than `least`, or infinite where that has no meaning.
 */
export function requireNumbers(
  what: string,
  values: Readonly<Record<string, number | undefined>>,
  { least = 0, mayBeInfinite = false }: NumberRule = {},
): void {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    if (typeof value === "number" && value >= least && (mayBeInfinite || value < Infinity)) continue;
    const kind = mayBeInfinite ? "a number" : "a finite number";
    throw new RangeError(
      `Cannot ${what} with a ${name} of ${String(value)}: it must be ${kind} of ${least} or more`,
    );
  }
}
