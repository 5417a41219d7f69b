/** Runs numbered pieces of work in parallel. */

import { requireNumbers } from "../util/require_number.ts";

/** Options of {@linkcode parallelizeUntil}. */
export interface ParallelizeOptions {
  /** How many pieces may be worked on at a time. */
  readonly workers: number;
  /** How many pieces in a row one worker takes; 1 by default, and for 0. Larger for many small pieces. */
  readonly chunkSize?: number;
  /** Stops between pieces; running pieces are awaited. */
  readonly signal?: AbortSignal;
}

/**
 * Does the pieces 0 to `pieces - 1`, each once, `workers` at a time, and resolves when all are done, or,
 * after the signal was aborted, when all started pieces are.
 *
 * Mirrors client-go's `workqueue.ParallelizeUntil`. A piece that throws stops the others between pieces, too
 * (upstream, a panic ends the program).
 * @throws The error of the first piece to fail, once no piece is running any more.
 * @throws {RangeError} `pieces` is no whole number, `workers` is not at least
 * 1, or `chunkSize` is not a number of 0 or more.
 *
 * @example
 * ```ts
 * import { parallelizeUntil } from "@listwatch/cache/workqueue";
 * const names = ["a", "b", "c"];
 * await parallelizeUntil(names.length, async (piece) => console.log(names[piece]), { workers: 2 });
 * ```
 */
export async function parallelizeUntil(
  pieces: number,
  doWorkPiece: (piece: number) => void | Promise<void>,
  options: ParallelizeOptions,
): Promise<void> {
  const { workers, signal } = options;
  requireNumbers("parallelize", { workers }, { least: 1, mayBeInfinite: true });
  requireNumbers("parallelize", { pieces }, { isWhole: true });
  requireNumbers("parallelize", { chunkSize: options.chunkSize });
  const chunkSize = Math.max(Math.floor(options.chunkSize ?? 1), 1);
  let next = 0;
  let failure: { error: unknown } | undefined;

  async function work(): Promise<void> {
    while (next < pieces) {
      const start = next;
      const end = Math.min(start + chunkSize, pieces);
      next = end;
      for (let piece = start; piece < end; piece++) {
        if (signal?.aborted || failure) return;
        try {
          // deno-lint-ignore no-await-in-loop -- one worker does one piece at a time
          await doWorkPiece(piece);
        } catch (error) {
          failure ??= { error };
        }
      }
    }
  }

  const count = Math.min(Math.floor(workers), Math.ceil(pieces / chunkSize));
  await Promise.all(Array.from({ length: count }, work));
  if (failure) throw failure.error;
}
