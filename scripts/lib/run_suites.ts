/**
 * Runs suites on one runtime and brings what it reports into one form.
 *
 * @module
 */

import { join, relative } from "node:path";
import type { Report } from "../../tests/runtimes/workerd/collector.ts";
import { buildWorker, type BuiltSuite } from "./bundle.ts";
import { ROOT } from "./gate.ts";
import { type JunitDialect, parseJunit, type TestResult } from "./junit.ts";
import { type ProcessResult, run, runDeno } from "./process.ts";
import type { NodeRelease } from "./suites.ts";
import type { Tools } from "./tools.ts";

/** What one runtime came to. */
export interface SuiteRun {
  /** The label, such as `workerd, no_nodejs_compat`. */
  label: string;
  results: TestResult[];
  durationMs: number;
}

/** A runtime that has not ended by then is ended; its suites have failed. */
const TIMEOUT_MS = 20 * 60_000;

/** A single test of a portable suite that takes longer has failed. */
const TEST_TIMEOUT_MS = 60_000;

/** `deno test` on the sources. */
export async function runOnDeno(label: string, paths: string[]): Promise<SuiteRun> {
  return await timed(label, async () => {
    return await withReport(async (report) => {
      // Type checks are a gate of `deno task ok`; here they would cost more than the tests.
      const result = await runDeno(["test", "-A", "--no-check", `--junit-path=${report}`, ...paths], {
        timeoutMs: TIMEOUT_MS,
      });
      return await readReport("deno", report, result, paths, (file) => file.replace(/^\.\//, ""));
    });
  });
}

/**
 * `node --test` on built suites. A suite that leaves a timer or a connection open does not end, and so fails.
 */
export async function runOnNode(
  tools: Tools,
  suites: BuiltSuite[],
  release: NodeRelease = "node",
): Promise<SuiteRun> {
  return await timed(release, async () => {
    return await withReport(async (report) => {
      const args = [
        "--enable-source-maps",
        "--test",
        `--test-timeout=${TEST_TIMEOUT_MS}`,
        // What a file said that broke before its first test is in no report.
        "--test-reporter=spec",
        "--test-reporter-destination=stdout",
        "--test-reporter=junit",
        `--test-reporter-destination=${report}`,
        ...suites.map(({ output }) => output),
      ];
      const result = await run(tools[release], args, { cwd: tools.dir, timeoutMs: TIMEOUT_MS });
      return await readReport(
        "node",
        report,
        result,
        suites.map(({ path }) => path),
        sourceOf(tools, suites),
      );
    });
  });
}

/** `bun test` on built suites. */
export async function runOnBun(tools: Tools, suites: BuiltSuite[]): Promise<SuiteRun> {
  return await timed("bun", async () => {
    return await withReport(async (report) => {
      const args = [
        "test",
        `--timeout=${TEST_TIMEOUT_MS}`,
        "--reporter=junit",
        `--reporter-outfile=${report}`,
        ...suites.map(({ output }) => `./${relative(tools.dir, output)}`),
      ];
      const result = await run(tools.bun, args, { cwd: tools.dir, timeoutMs: TIMEOUT_MS });
      return await readReport("bun", report, result, suites.map(({ path }) => path), sourceOf(tools, suites));
    });
  });
}

/** What runs suites in workerd: a request to a Worker, or one to a Durable Object. */
export const WORKERD_HOSTS = ["worker", "object"] as const;

/** A way to run suites in workerd. */
interface WorkerdHost {
  readonly nodeCompat: boolean;
  readonly host: (typeof WORKERD_HOSTS)[number];
}

/** The label of a host, such as `workerd, no_nodejs_compat`. */
export function workerdLabel({ nodeCompat, host }: WorkerdHost): string {
  return `workerd, ${host === "object" ? "Durable Object, " : ""}${nodeCompat ? "" : "no_"}nodejs_compat`;
}

/** One worker with all suites in it, inside miniflare. */
export async function runOnWorkerd(
  tools: Tools,
  paths: string[],
  { nodeCompat, host }: WorkerdHost,
): Promise<SuiteRun> {
  return await timed(workerdLabel({ nodeCompat, host }), async () => {
    const worker = await buildWorker(
      tools,
      paths,
      `workerd-${host}${nodeCompat ? "-nodejs-compat" : ""}`,
      { nodeCompat, runtime: "workerd" },
    );
    const flags = nodeCompat ? ["nodejs_compat"] : [];
    return await runReporting(tools, paths, { host: "workerd", args: [worker, host, ...flags] });
  });
}

/** One page with all suites in it, in headless Chromium. */
export async function runOnChromium(tools: Tools, paths: string[]): Promise<SuiteRun> {
  return await timed("chromium", async () => {
    const worker = await buildWorker(tools, paths, "chromium", { nodeCompat: false, runtime: "chromium" });
    return await runReporting(tools, paths, { host: "chromium", args: [worker] });
  });
}

/** Runs `host.mjs` of a runtime, which prints a line for each report. */
async function runReporting(
  tools: Tools,
  paths: string[],
  { host, args }: { readonly host: "workerd" | "chromium"; readonly args: string[] },
): Promise<TestResult[]> {
  const result = await run(tools.node, [join(tools.dir, host, "host.mjs"), ...args], {
    cwd: tools.dir,
    timeoutMs: TIMEOUT_MS,
  });
  const results: TestResult[] = [];
  let started: Report | undefined;
  let hasEnded = false;
  for (const line of result.stdout.split("\n")) {
    if (!line.startsWith("{")) continue;
    const report = JSON.parse(line) as Report;
    if (report.type === "start") started = report;
    else if (report.type === "end") hasEnded = true;
    else {
      const { type: _, ...test } = report;
      results.push(test);
      started = undefined;
    }
  }
  if (!hasEnded || result.code !== 0) {
    const file = started?.type === "start" ? started.file : paths[0];
    const name = started?.type === "start" ? started.name : "all suites";
    results.push({
      file,
      name,
      status: "failed",
      message: `${host} did not end well:\n${lastLines(result)}`,
    });
  }
  results.push(...silentFiles(paths, results, result));
  return results;
}

async function timed(label: string, work: () => Promise<TestResult[]>): Promise<SuiteRun> {
  const start = performance.now();
  let results: TestResult[];
  try {
    results = await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    results = [{ file: label, name: "runs", status: "failed", message }];
  }
  return { label, results, durationMs: performance.now() - start };
}

async function withReport(work: (path: string) => Promise<TestResult[]>): Promise<TestResult[]> {
  const dir = await Deno.makeTempDir({ prefix: "listwatch-test-" });
  try {
    return await work(join(dir, "report.xml"));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/**
 * Reads a report and adds what it cannot tell: files that broke
 * before their first test, a runtime that crashed.
 */
async function readReport(
  dialect: JunitDialect,
  report: string,
  result: ProcessResult,
  paths: string[],
  toSource: (file: string) => string,
): Promise<TestResult[]> {
  const xml = await Deno.readTextFile(report).catch(() => "");
  const results = parseJunit(xml, dialect).map((test) => ({ ...test, file: toSource(test.file) }));
  if (dialect === "node") {
    // Node names the file in which `it` was called, which may be a helper's; but it reports
    // every file without tests, as a test of that name.
    const known = new Set(paths);
    for (const test of results) {
      if (!known.has(toSource(test.name))) continue;
      Object.assign(test, { file: toSource(test.name), name: "has tests", status: "failed" });
      test.message = `${test.message ?? "the file has no tests"}\n${lastLines(result)}`;
    }
  } else results.push(...silentFiles(paths, results, result));
  if (result.code !== 0 && !results.some(({ status }) => status === "failed")) {
    const message = `${dialect} ended with code ${result.code}${result.timedOut ? " (timeout)" : ""}:\n${
      lastLines(result)
    }`;
    results.push({ file: dialect, name: "ends well", status: "failed", message });
  }
  return results;
}

function silentFiles(paths: string[], results: TestResult[], result: ProcessResult): TestResult[] {
  const reported = new Set(results.map(({ file }) => file));
  // Deno's report names the file in which `describe` was called, which may
  // be a helper's; its output names the right one.
  for (const [, file] of result.output.matchAll(/^running [1-9]\d* tests? from \.\/(\S+)$/gm)) {
    reported.add(file);
  }
  return paths.filter((path) => !reported.has(path)).map((file) => ({
    file,
    name: "has tests",
    status: "failed",
    message: `no test of this file was reported:\n${lastLines(result)}`,
  }));
}

/** Makes a function from the name of a built file to that of its source. */
function sourceOf(tools: Tools, suites: BuiltSuite[]): (file: string) => string {
  const sources = new Map<string, string>();
  for (const { path, output } of suites) {
    for (
      const name of [output, relative(tools.dir, output), relative(ROOT, output), join(ROOT, path), path]
    ) {
      sources.set(name, path);
    }
  }
  return (file) => sources.get(file) ?? file;
}

function lastLines({ output }: ProcessResult): string {
  return output.trimEnd().split("\n").slice(-40).join("\n");
}
