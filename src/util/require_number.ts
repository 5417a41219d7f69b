export interface NumberRule {
  readonly least?: number;
  /** Whether `Infinity` is allowed; not by default. */
  readonly mayBeInfinite?: boolean;
}

/**
 * Refuses invalid numbers: above all `NaN`, which fails every comparison and so turns off a limit or a loop.
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
