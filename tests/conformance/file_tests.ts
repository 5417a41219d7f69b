/**
 * A file of recorded cases as tests.
 * @module
 */

import assert from "node:assert/strict";
import { describeHoldings, type RunHeldCase, withHoldings } from "./holdings.ts";
import { CONCURRENCY } from "./run.ts";
import type { Case, CaseFile } from "./suites/harness.ts";
import { suites } from "./suites/mod.ts";

/** Options of {@linkcode testsOf}. */
export interface FileTestsOptions {
  /** Runs a case instead of the suite's registered runner; `false` says that it was not played. */
  readonly run?: RunHeldCase;
  /** What stands in the report; the suite's name by default. */
  readonly title?: string;
  /** How many of the cases must have been played; all by default. */
  readonly leastPlayed?: number;
}

/** The tests of a file, for a test file to declare: reports name the file that calls `it`. */
export interface FileTests {
  readonly title: string;
  readonly tests: readonly { readonly name: string; readonly run: () => Promise<void> }[];
}

/** A test for each case of a file. */
export function testsOf(file: CaseFile, options: FileTestsOptions = {}): FileTests {
  const source = file.source === undefined ? "" : ` (${file.source})`;
  const title = `conformance: ${options.title ?? file.suite}${source}, ${describeHoldings(file.suite)}`;
  const runHeld = options.run ?? suites[file.suite];
  if (runHeld === undefined) {
    const fail = () => Promise.reject(new Error(`suites/mod.ts has none for ${JSON.stringify(file.suite)}`));
    return { title, tests: [{ name: "has a runner", run: fail }] };
  }
  const results = new SharedRun(
    file.cases,
    withHoldings(file.suite, runHeld),
    CONCURRENCY[file.suite] ?? 1,
  );
  const tests = file.cases.map(({ name }, index) => ({
    name,
    run: async () => void await results.of(index),
  }));
  const allPlayed = async () => {
    const { leastPlayed = file.cases.length } = options;
    const played = await Promise.all(file.cases.map((_, index) => results.of(index).catch(() => true)));
    const count = played.filter((one) => one !== false).length;
    assert.ok(count > 0 && count >= leastPlayed, `${count} were played, ${leastPlayed} must be`);
  };
  return { title, tests: [...tests, { name: "has played its cases", run: allPlayed }] };
}

/**
 * Runs cases, some at a time, from the first request of a result
 * on: tests themselves run one after the other.
 */
class SharedRun {
  readonly #cases: readonly Case[];
  readonly #run: (caze: Case) => Promise<unknown>;
  readonly #concurrency: number;
  #results: Promise<unknown>[] | undefined;

  constructor(cases: readonly Case[], run: (caze: Case) => Promise<unknown>, concurrency: number) {
    this.#cases = cases;
    this.#run = run;
    this.#concurrency = concurrency;
  }

  of(index: number): Promise<unknown> {
    this.#results ??= this.#start();
    return this.#results[index];
  }

  #start(): Promise<unknown>[] {
    const results: Promise<unknown>[] = [];
    for (const [index, caze] of this.#cases.entries()) {
      // A case starts when the one that many places before it is over.
      const before = results[index - this.#concurrency] ?? Promise.resolve();
      const result = before.catch(() => {}).then(() => this.#run(caze));
      result.catch(() => {}); // its own awaiters receive the rejection
      results.push(result);
    }
    return results;
  }
}
