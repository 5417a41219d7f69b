/**
 * Running files of recorded cases, on any runtime.
 * @module
 */

import { describeHoldings, type RunHeldCase, withHoldings } from "./holdings.ts";
import type { Case, CaseFile } from "./suites/harness.ts";
import { suites } from "./suites/mod.ts";

/** How to run the cases of a suite; it rejects at the first thing that differs from the record. */
export type RunCase = (caze: Case) => Promise<unknown>;

/** Options of {@linkcode runFiles}. */
export interface RunOptions {
  /** Runners that take the place of the registered ones, by suite. */
  readonly runners?: Readonly<Record<string, RunHeldCase>>;
  /** Takes a line of the report. */
  readonly print: (line: string) => void;
}

/** What came of it. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
}

/**
 * How many cases of a suite run at a time: these wait for real
 * time; the others would only disturb each other.
 */
export const CONCURRENCY: Readonly<Record<string, number>> = { reflector: 16 };

/** Runs every case of the files, prints a line a suite and one for each case that failed. */
export async function runFiles(files: readonly CaseFile[], options: RunOptions): Promise<Tally> {
  let passed = 0;
  let failed = 0;
  for (const file of files) {
    const runHeld = options.runners?.[file.suite] ?? suites[file.suite];
    const run = runHeld && withHoldings(file.suite, runHeld);
    const failures: string[] = [];
    if (run === undefined) {
      failures.push(`no runner for the suite ${JSON.stringify(file.suite)}`);
      failed++;
    } else {
      await inParallel(file.cases, CONCURRENCY[file.suite] ?? 1, async (caze) => {
        try {
          await run(caze);
          passed++;
        } catch (error) {
          failed++;
          failures.push(error instanceof Error ? error.message : String(error));
        }
      });
    }
    const failing = failures.length === 0 ? "" : `, ${failures.length} failed`;
    options.print(
      `${file.suite}: ${
        file.cases.length - failures.length
      } of ${file.cases.length} cases passed${failing} (${describeHoldings(file.suite)})`,
    );
    for (const failure of failures) options.print(`  FAILED ${failure}`);
  }
  return { passed, failed };
}

async function inParallel<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < items.length) await work(items[next++]);
  };
  await Promise.all(Array.from({ length: limit }, worker));
}
