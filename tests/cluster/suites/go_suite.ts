/**
 * Suites of Kubernetes' own tests, run twice: on the API server itself, the control, and through `serve`. What the
 * control passes, `serve` must pass.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { eachLine, ensureGoProgram, type GoSuite } from "../../../scripts/lib/cluster_build.ts";

/** Why suites are skipped, or `false`. */
export const skipSuites: string | false = process.env.LISTWATCH_TEST_SUITES === undefined
  ? "needs minutes: deno task test:cluster --suites"
  : false;

/** What a case came to. */
export interface CaseResult {
  readonly state: "PASS" | "FAIL" | "SKIP";
  /** What it printed: why it failed. */
  readonly output: string;
}

/** Cases of which something is expected. */
export interface ExpectedCases {
  /** Their names begin with it. */
  readonly name: string;
  readonly why: string;
}

/** What is known of a suite. */
export interface SuiteScope {
  /** What says nothing about reads over HTTP, or needs what this cluster does not have. */
  readonly outOfScope: readonly ExpectedCases[];
  /** What passes on the API server and not through `serve`; docs/fidelity.md says so, too. */
  readonly differs: readonly ExpectedCases[];
}

/** One run of a suite. */
export interface SuiteRun {
  /** What each case came to, by name: only cases that have none inside. */
  readonly results: ReadonlyMap<string, CaseResult>;
  readonly seconds: number;
}

/** Runs the program of a suite, which prints what `go test -v` prints. */
export async function runSuite(suite: GoSuite, args: readonly string[]): Promise<SuiteRun> {
  const program = await ensureGoProgram(suite);
  const startedMs = performance.now();
  const child = new Deno.Command(program, {
    args: [...args],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  })
    .spawn();
  const states = new Map<string, CaseResult["state"]>();
  const output = new Map<string, string[]>();
  const errors: string[] = [];
  let current = "";
  await Promise.all([
    child.status,
    eachLine(child.stdout, (line) => {
      const [, started] = /^=== (?:RUN|NAME|CONT) +(.+)$/.exec(line) ?? [];
      const [, state, name] = /^ *--- (PASS|FAIL|SKIP): (.+) \([\d.]+s\)$/.exec(line) ?? [];
      if (started !== undefined) current = started;
      else if (name !== undefined) states.set(name, state as CaseResult["state"]);
      else output.set(current, [...output.get(current) ?? [], line]);
    }),
    eachLine(child.stderr, (line) => {
      errors.push(line);
      if (errors.length > MAX_ERROR_LINES) errors.shift();
    }),
  ]);
  assert.ok(states.size > 0, `${suite} ran nothing:\n${errors.join("\n")}`);
  const names = [...states.keys()];
  const results = new Map<string, CaseResult>();
  for (const [name, state] of states) {
    const inside = names.filter((other) => other.startsWith(`${name}/`));
    // One that failed by itself counts.
    const failed = state === "FAIL" && inside.every((other) => states.get(other) !== "FAIL");
    if (inside.length > 0 && !failed) continue;
    results.set(name, { state, output: (output.get(name) ?? []).join("\n") });
  }
  return { results, seconds: (performance.now() - startedMs) / 1000 };
}

const MAX_ERROR_LINES = 50;

/** Compares a run through `serve` with the control, and returns a line for people. */
export function compareRuns(control: SuiteRun, served: SuiteRun, scope: SuiteScope): string {
  const problems: string[] = [];
  const among = (cases: readonly ExpectedCases[], name: string) =>
    cases.find((one) => name.startsWith(one.name));
  const seen = new Set<ExpectedCases>();
  let passed = 0;
  let passedServed = 0;
  let outOfScope = 0;
  for (const [name, { state, output }] of control.results) {
    const out = among(scope.outOfScope, name);
    if (out !== undefined) {
      outOfScope++;
      seen.add(out);
      continue;
    }
    const { state: stateServed, output: why = "it was not run" } = served.results.get(name) ?? {};
    if (state === "SKIP" && stateServed === "SKIP") {
      outOfScope++;
      continue;
    }
    if (state === "FAIL") {
      problems.push(`The API server itself fails ${name}:\n${output}`);
      continue;
    }
    passed++;
    const differs = among(scope.differs, name);
    if (differs !== undefined) seen.add(differs);
    if (stateServed === "PASS") passedServed++;
    else if (differs === undefined) problems.push(`Through serve fails ${name}:\n${why}`);
  }
  for (const expected of [...scope.outOfScope, ...scope.differs]) {
    if (!seen.has(expected)) problems.push(`No case is called ${expected.name}`);
  }
  const run = control.results.size - outOfScope;
  const seconds = [control, served].map((one) => `${one.seconds.toFixed(0)} s`).join(" and ");
  const line = `${run} run, ${passed} pass on the API server, ${passedServed} of them through serve; ` +
    `${outOfScope} out of scope; ${seconds}`;
  assert.equal(problems.length, 0, `${line}\n\n${problems.join("\n\n")}`);
  return line;
}
