export interface NumberRule {
  readonly least?: number;
  /** Whether `Infinity` is allowed; not by default. */
  readonly mayBeInfinite?: boolean;
  /** Whether the number must be a whole one; not by default. */
  readonly isWhole?: boolean;
}

/**
 * Refuses invalid numbers: above all `NaN`, which fails every comparison and so turns off a limit or a loop.
 */
export function requireNumbers(
  what: string,
  values: Readonly<Record<string, number | undefined>>,
  { least = 0, mayBeInfinite = false, isWhole = false }: NumberRule = {},
): void {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const isFine = isWhole ? Number.isInteger(value) : mayBeInfinite || value < Infinity;
    if (typeof value === "number" && value >= least && isFine) continue;
    const kind = isWhole ? "whole " : mayBeInfinite ? "" : "finite ";
    throw new RangeError(
      `Cannot ${what} with a ${name} of ${String(value)}: it must be a ${kind}number of ${least} or more`,
    );
  }
}
