/**
 * Recorded cases as tests.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CONCURRENCY } from "./run.ts";
import type { Case, CaseFile } from "./suites/harness.ts";
import { suites } from "./suites/mod.ts";

/** Options of {@linkcode declareFile}. */
export interface DeclareOptions {
  /** Runs a case instead of the suite's registered runner; `false` says that it was not played. */
  readonly run?: (caze: Case) => Promise<unknown>;
  /** What stands in the report; the suite's name by default. */
  readonly title?: string;
  /** How many of the cases must have been played; all by default. */
  readonly leastPlayed?: number;
}

/** Declares a test for each case of a file. */
export function declareFile(file: CaseFile, options: DeclareOptions = {}): void {
  const { title = file.suite, run = suites[file.suite] } = options;
  const source = file.source === undefined ? "" : ` (${file.source})`;
  describe(`conformance: ${title}${source}`, () => {
    if (run === undefined) {
      it("has a runner", () => assert.fail(`suites/mod.ts has none for ${JSON.stringify(file.suite)}`));
      return;
    }
    it("has cases", () => assert.ok(file.cases.length > 0));
    const results = new SharedRun(file.cases, run, CONCURRENCY[file.suite] ?? 1);
    for (const [index, caze] of file.cases.entries()) {
      it(caze.name, async () => void await results.of(index));
    }
    const { leastPlayed = file.cases.length } = options;
    it("has played its cases", async () => {
      const played = await Promise.all(file.cases.map((_, index) => results.of(index).catch(() => true)));
      const count = played.filter((one) => one !== false).length;
      assert.ok(count >= leastPlayed, `${count} were played, ${leastPlayed} must be`);
    });
  });
}

/** Runs cases, some at a time, from when the first result is asked for: tests themselves run one after the other. */
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
      result.catch(() => {}); // whoever asks is told
      results.push(result);
    }
    return results;
  }
}
