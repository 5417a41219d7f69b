/**
 * `deno task test`: every suite on every runtime that it is for. Installs the runtimes (a pinned lock file in
 * `tests/runtimes/`), builds and checks the npm package, runs the suites, as many processes at a time as the
 * machine has cores, and ends with `N passed, N failed` over all.
 *
 *     deno task test                      everything
 *     deno task test --only node,bun      these runtimes only
 *     deno task test --filter informer    files whose path contains the word
 *
 * @module
 */

import { parseArgs } from "node:util";
import { buildNpm } from "./build_npm.ts";
import { buildModules } from "./lib/bundle.ts";
import { ROOT } from "./lib/gate.ts";
import type { TestResult } from "./lib/junit.ts";
import { runDeno } from "./lib/process.ts";
import {
  runOnBun,
  runOnChromium,
  runOnDeno,
  runOnNode,
  runOnWorkerd,
  type SuiteRun,
  WORKERD_HOSTS,
  workerdLabel,
} from "./lib/run_suites.ts";
import {
  findSuites,
  leftOutOn,
  NODE_RELEASES,
  type Runtime,
  RUNTIMES,
  type SuiteFile,
} from "./lib/suites.ts";
import { usage } from "./lib/task_usage.ts";
import { installTools } from "./lib/tools.ts";

const USAGE = usage({
  task: "test",
  does: `All suites on ${RUNTIMES.join(", ")}. Ends with \`N passed, N failed\`.`,
  options: {
    "--only RUNTIME,RUNTIME": "these runtimes and no others",
    "--filter TEXT": "only files whose path contains it",
  },
});

const WIDTH = 44;

/** One process of suites; `note` is printed behind its line. */
interface Job {
  readonly label: string;
  readonly run: () => Promise<SuiteRun>;
  readonly note?: string;
}

const total = { passed: 0, failed: 0 };
const failures: string[] = [];

/** The runtimes and files of the command line. */
function readArguments(): { only: Set<Runtime>; filter: string } {
  try {
    const { values } = parseArgs({
      args: Deno.args,
      options: {
        only: { type: "string", multiple: true },
        filter: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help) {
      console.log(USAGE);
      Deno.exit(0);
    }
    const only = (values.only ?? [RUNTIMES.join()]).flatMap((value) => value.split(",")) as Runtime[];
    const unknown = only.find((runtime) => !RUNTIMES.includes(runtime));
    if (unknown !== undefined) throw new TypeError(`--only ${unknown}: there is no such runtime`);
    return { only: new Set(only), filter: values.filter ?? "" };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    Deno.exit(2);
  }
}

/** Prints the line of one run and remembers what failed in it. */
function record({ label, results, durationMs }: SuiteRun, note = ""): void {
  const count = (status: TestResult["status"]) => results.filter((result) => result.status === status).length;
  const [passed, failed, skipped] = [count("passed"), count("failed"), count("skipped")];
  total.passed += passed;
  total.failed += failed;
  const seconds = `${(durationMs / 1000).toFixed(1)} s`;
  const rest = [skipped > 0 ? `${skipped} skipped` : "", note].filter(Boolean).map((text) => `, ${text}`)
    .join("");
  // Not the form of the closing line, which must be the only one of its kind.
  console.log(`${label.padEnd(WIDTH)} ${seconds.padStart(8)}   ${passed} ok, ${failed} not ok${rest}`);
  for (const { file, name, status, message } of results) {
    if (status === "failed") failures.push(`--- ${label}: ${file}\n    ${name}\n${indent(message ?? "")}\n`);
  }
}

function indent(text: string): string {
  return text.split("\n").map((line) => `    ${line}`).join("\n");
}

/** The npm package counts as one test: it was built, and its checks found nothing. */
async function testPackage(): Promise<boolean> {
  const start = performance.now();
  let message: string | undefined;
  try {
    await buildNpm();
    const check = await runDeno(["run", "-A", "npm/check.ts"]);
    if (check.code !== 0) message = check.output.trim();
  } catch (error) {
    message = error instanceof Error ? error.message : String(error);
  }
  const status = message === undefined ? "passed" : "failed";
  const results: TestResult[] = [{ file: "npm/check.ts", name: "the built package", status, message }];
  record({ label: "npm package", results, durationMs: performance.now() - start });
  return message === undefined;
}

/** The suites of Deno in processes of about the same length, the longest first. */
function denoJobs(paths: readonly string[]): Job[] {
  const groups = Object.entries(
    Object.groupBy(paths, (path) => DENO_JOBS.find(({ folders }) => folders.test(path))!.name),
  );
  const place = (name: string) => DENO_JOBS.findIndex((job) => job.name === name);
  return groups.sort(([a], [b]) => place(a) - place(b)).map(([name, group]) => {
    const label = `deno, ${name}`;
    return { label, run: () => runOnDeno(label, group!) };
  });
}

const DENO_JOBS: readonly { readonly name: string; readonly folders: RegExp }[] = [
  { name: "trees of caches", folders: /^tests\/simulation\/tree\// },
  { name: "worlds", folders: /^tests\/simulation\// },
  { name: "command line", folders: /^tests\/(cli|examples|scripts|benchmarks)\// },
  { name: "sockets, files", folders: /^tests\/(sockets|files|node|runtimes|types)\// },
  { name: "read API", folders: /^tests\/(hono|workers)\// },
  { name: "other rooms", folders: /^/ },
];

/** Installs the other runtimes, builds the package and the suites for them, and returns the runs. */
async function builtJobs(suites: SuiteFile[], only: Set<Runtime>): Promise<Job[]> {
  const tools = await installTools();
  const isBuilt = await testPackage();
  const pathsFor = (runtime: Runtime) =>
    suites.filter(({ runtimes }) => runtimes.includes(runtime)).map((s) => s.path);
  if (!isBuilt) {
    const exists = await Deno.stat(`${tools.dir}/node_modules/@listwatch/cache/package.json`).then(
      () => true,
      () => false,
    );
    if (!exists) return [];
  }
  const wanted = new Set([...only].filter((runtime) => runtime !== "deno").flatMap(pathsFor));
  const built = await buildModules(tools, [...wanted]);
  const builtFor = (runtime: Runtime) => {
    const paths = new Set(pathsFor(runtime));
    return only.has(runtime) ? built.filter(({ path }) => paths.has(path)) : [];
  };
  const jobs: Job[] = [];
  for (const release of NODE_RELEASES) {
    const files = builtFor(release);
    if (files.length > 0) jobs.push({ label: release, run: () => runOnNode(tools, files, release) });
  }
  const forBun = builtFor("bun");
  if (forBun.length > 0) jobs.push({ label: "bun", run: () => runOnBun(tools, forBun) });
  const forWorkerd = builtFor("workerd");
  const pure = forWorkerd.filter(({ nodeModules }) => nodeModules.length === 0);
  // The run without Node's modules proves that the core asks for nothing but the web's APIs.
  const left = forWorkerd.length - pure.length;
  const note = left > 0 ? `${left} files import modules of Node` : "";
  for (const host of WORKERD_HOSTS) {
    for (const nodeCompat of [true, false]) {
      const paths = (nodeCompat ? forWorkerd : pure).map(({ path }) => path);
      if (paths.length === 0) continue;
      jobs.push({
        label: workerdLabel({ nodeCompat, host }),
        run: () => runOnWorkerd(tools, paths, { nodeCompat, host }),
        note: nodeCompat ? "" : note,
      });
    }
  }
  const forChromium = builtFor("chromium").filter(({ nodeModules }) => nodeModules.length === 0);
  const { os, arch } = Deno.build;
  const hasChromium = os === "linux" && arch === "x86_64" || Deno.env.get("CHROMIUM") !== undefined;
  if (forChromium.length > 0 && !hasChromium) {
    console.log(`chromium: left out on ${os}, ${arch}, as npm has none for it; name one by CHROMIUM`);
  } else if (forChromium.length > 0) {
    jobs.push({
      label: "chromium",
      run: () => runOnChromium(tools, forChromium.map(({ path }) => path)),
      note,
    });
  }
  return jobs;
}

/** Runs jobs, as many at a time as the machine has cores, and those that a job adds. */
async function runAll(
  waiting: { readonly label: string; readonly run: () => Promise<readonly Job[]> }[],
): Promise<void> {
  let running = 0;
  let ended = Promise.withResolvers<void>();
  const lane = async () => {
    while (waiting.length > 0 || running > 0) {
      const job = waiting.shift();
      if (job === undefined) {
        await ended.promise;
        continue;
      }
      running++;
      console.log(`${job.label.padEnd(WIDTH)}  started`);
      const added = await job.run();
      waiting.unshift(...added.map(recorded));
      running--;
      ended.resolve();
      ended = Promise.withResolvers();
    }
  };
  const lanes = Math.min(Math.max(navigator.hardwareConcurrency, 1), 4);
  await Promise.all(Array.from({ length: lanes }, lane));
}

function recorded({ label, run, note }: Job): { label: string; run: () => Promise<readonly Job[]> } {
  return {
    label,
    run: async () => {
      record(await run(), note);
      return [];
    },
  };
}

const { only, filter } = readArguments();
const suites = await findSuites(ROOT, filter);
for (const { path, why } of leftOutOn(Deno.build.os)) {
  if (path.includes(filter)) console.log(`${path}: left out on ${Deno.build.os}, as it ${why}`);
}
if (!suites.some(({ runtimes }) => runtimes.some((runtime) => only.has(runtime)))) {
  console.error(`No suite for ${[...only].join(", ")} has ${JSON.stringify(filter)} in its path.`);
  console.log("\n0 passed, 1 failed");
  Deno.exit(1);
}
const pathsOnDeno = only.has("deno")
  ? suites.filter(({ runtimes }) => runtimes.includes("deno")).map(({ path }) => path)
  : [];
const needsBuild = [...only].some((runtime) =>
  runtime !== "deno" && suites.some(({ runtimes }) => runtimes.includes(runtime))
);
const preparation = {
  label: "npm package",
  run: async () => {
    try {
      return await builtJobs(suites, only);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      record({
        label: "setup",
        results: [{ file: "-", name: "setup", status: "failed", message }],
        durationMs: 0,
      });
      return [];
    }
  },
};
await runAll([...(needsBuild ? [preparation] : []), ...denoJobs(pathsOnDeno).map(recorded)]);
for (const failure of failures) console.error(`\n${failure}`);
console.log(`\n${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed === 0 ? 0 : 1);
