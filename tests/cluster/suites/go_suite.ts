/**
 * Suites of Kubernetes' own tests, run twice: on the API server itself, the control, and through
 * `serve`. What the control passes, `serve` must pass.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import { eachLine } from "../../../scripts/lib/go_command.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "../connection.ts";
import { adminToken, everyResource, startServe } from "../hosts/host.ts";

const skipSuites: string | false = process.env.LISTWATCH_TEST_SUITES === undefined
  ? "needs minutes: deno task test:cluster --suites"
  : false;

/** What a case came to. */
export interface CaseResult {
  readonly state: "PASS" | "FAIL" | "SKIP";
  /** The printed text: why the test failed. */
  readonly output: string;
}

/** Cases of which something is expected. */
export interface ExpectedCases {
  /** The beginning of the names of the tests. */
  readonly name: string;
  readonly why: string;
}

/** What is known of a suite. */
export interface SuiteScope {
  /** What says nothing about reads over HTTP, or needs what this cluster does not have. */
  readonly outOfScope: readonly ExpectedCases[];
  /** What passes on the API server and not through `serve`; docs/fidelity.md says so, too. */
  readonly differs: readonly ExpectedCases[];
  /**
   * What goroutines of the client race for, whatever it talks to: a case whose name ends so has to pass in
   * one of the runs.
   */
  readonly races?: readonly { readonly ending: string; readonly why: string }[];
}

/** One run of a suite. */
export interface SuiteRun {
  /** What each case came to, by name: only cases that have none inside. */
  readonly results: ReadonlyMap<string, CaseResult>;
  readonly seconds: number;
}

/** A suite. */
export interface Suite {
  /** In what it prints. */
  readonly name: string;
  /** In the title of its test. */
  readonly title: string;
  readonly timeoutMs: number;
  readonly scope: SuiteScope;
  /** Flags of kube-apiserver. */
  readonly apiServerArgs?: readonly string[];
  /** Whether the two runs are made at the same time, as they wait most of it. */
  readonly isParallel: boolean;
  /** What has to be there before, also before `serve` starts. */
  prepare?(connection: OwnConnection): Promise<unknown>;
  /**
   * Runs it with a kubeconfig of the API server itself, or of `serve`; `connection` is one to the API server.
   */
  run(kubeconfigPath: string, connection: OwnConnection): Promise<SuiteRun>;
}

/** The test of a suite: each run is on a new cluster. */
export function describeSuite(suite: Suite): void {
  const { name, title, timeoutMs, scope, isParallel } = suite;
  describe(`listwatch serve --pass-through-writes under ${title}`, {
    skip: skipWithoutOwnServer || skipSuites,
  }, () => {
    it("passes what the API server passes", { timeout: timeoutMs }, async () => {
      const control = runOnce(suite, "API server");
      if (!isParallel) await control;
      const [onServer, served] = await Promise.all([control, runOnce(suite, "serve")]);
      console.log(`${name}: ${compareRuns(onServer, served, scope)}`);
    });
  });
}

async function runOnce(suite: Suite, on: "API server" | "serve"): Promise<SuiteRun> {
  await using connection = await startOwn(suite.apiServerArgs);
  await suite.prepare?.(connection);
  if (on === "API server") return await suite.run(connection.kubeconfigPath, connection);
  const token = await adminToken(connection);
  const { resources } = await everyResource(connection.cluster);
  await using served = await startServe("deno", { connection, token, resources });
  return await suite.run(served.kubeconfigPath, connection);
}

/** Runs the program of a suite, which prints what `go test -v` prints. */
export async function runSuite(
  [program, ...args]: readonly string[],
  { env, cwd }: Pick<Deno.CommandOptions, "env" | "cwd"> = {},
): Promise<SuiteRun> {
  const startedMs = performance.now();
  const child = new Deno.Command(program, {
    args,
    ...(env && { env }),
    ...(cwd && { cwd }),
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
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
  assert.ok(states.size > 0, `${program} ran nothing:\n${errors.join("\n")}`);
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
function compareRuns(control: SuiteRun, served: SuiteRun, scope: SuiteScope): string {
  const problems: string[] = [];
  const among = (cases: readonly ExpectedCases[], name: string) =>
    cases.find((one) => name.startsWith(one.name));
  const seen = new Set<ExpectedCases>();
  const raced = new Set<string>();
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
    const race = scope.races?.find(({ ending }) => name.endsWith(ending));
    if (race !== undefined) raced.add(race.ending);
    const passedOnce = race !== undefined && (state === "PASS" || stateServed === "PASS");
    if (state === "FAIL" && !passedOnce) {
      problems.push(`The API server itself fails ${name}:\n${output}`);
      continue;
    }
    if (state === "PASS") passed++;
    const differs = among(scope.differs, name);
    if (differs !== undefined) seen.add(differs);
    if (stateServed === "PASS") passedServed++;
    else if (differs === undefined && !passedOnce) problems.push(`Through serve fails ${name}:\n${why}`);
  }
  for (const expected of [...scope.outOfScope, ...scope.differs]) {
    if (!seen.has(expected)) problems.push(`No case is called ${expected.name}`);
  }
  for (const { ending } of scope.races ?? []) {
    if (!raced.has(ending)) problems.push(`No case's name ends with ${ending}`);
  }
  const run = control.results.size - outOfScope;
  const seconds = [control, served].map((one) => `${one.seconds.toFixed(0)} s`).join(" and ");
  const line = `${run} run, ${passed} pass on the API server, ${passedServed} of them through serve; ` +
    `${outOfScope} out of scope; ${seconds}`;
  assert.equal(problems.length, 0, `${line}\n\n${problems.join("\n\n")}`);
  return line;
}
