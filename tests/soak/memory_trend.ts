/**
 * Whether memory grows.
 * @module
 */

/** What was measured at a time. */
export interface MemorySample {
  /** Since the start. */
  readonly timeMs: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
}

/** The growth of memory from the median of the first third to that of the last, after the warm-up. */
export interface MemoryTrend {
  readonly firstBytes: number;
  readonly lastBytes: number;
  /** 0.1 for a tenth more. */
  readonly growth: number;
}

/** The trend of one figure; `undefined` where fewer than six samples came after the warm-up. */
export function memoryTrend(
  samples: readonly MemorySample[],
  figure: "heapBytes" | "rssBytes",
  warmUpMs: number,
): MemoryTrend | undefined {
  const values = samples.filter(({ timeMs }) => timeMs >= warmUpMs).map((sample) => sample[figure]);
  if (values.length < 6) return undefined;
  const third = Math.floor(values.length / 3);
  const firstBytes = median(values.slice(0, third));
  const lastBytes = median(values.slice(-third));
  return { firstBytes, lastBytes, growth: lastBytes / firstBytes - 1 };
}

/** The middle one; between the two in the middle where their number is even. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
