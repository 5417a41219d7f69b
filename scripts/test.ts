/**
 * `deno task test`: every suite on every runtime that it is for. Installs the runtimes (a pinned lock file in
 * `tests/runtimes/`), builds and checks the npm package, runs the suites and ends with `N passed, N failed` over all.
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
  runOnDeno,
  runOnNode,
  runOnWorkerd,
  type SuiteRun,
  WORKERD_HOSTS,
} from "./lib/run_suites.ts";
import { findSuites, type Runtime, RUNTIMES, type SuiteFile } from "./lib/suites.ts";
import { installTools } from "./lib/tools.ts";

const USAGE = `deno task test [--only ${RUNTIMES.join("|")}] [--filter TEXT]

  --only      the runtimes to use; several with commas
  --filter    only files whose path contains TEXT
`;

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
  console.log(`${label.padEnd(27)} ${seconds.padStart(8)}   ${passed} ok, ${failed} not ok${rest}`);
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

async function testBuiltSuites(suites: SuiteFile[], only: Set<Runtime>): Promise<void> {
  const tools = await installTools();
  const isBuilt = await testPackage();
  const pathsFor = (runtime: Runtime) =>
    suites.filter(({ runtimes }) => runtimes.includes(runtime)).map((s) => s.path);
  if (!isBuilt) {
    const exists = await Deno.stat(`${tools.dir}/node_modules/@listwatch/cache/package.json`).then(
      () => true,
      () => false,
    );
    if (!exists) return;
  }
  const wanted = new Set([...only].filter((runtime) => runtime !== "deno").flatMap(pathsFor));
  const built = await buildModules(tools, [...wanted]);
  const builtFor = (runtime: Runtime) => {
    const paths = new Set(pathsFor(runtime));
    return only.has(runtime) ? built.filter(({ path }) => paths.has(path)) : [];
  };
  for (const version of ["node", "node22"] as const) {
    if (builtFor(version).length > 0) record(await runOnNode(tools, builtFor(version), version));
  }
  if (builtFor("bun").length > 0) record(await runOnBun(tools, builtFor("bun")));
  const forWorkerd = builtFor("workerd");
  const pure = forWorkerd.filter(({ nodeModules }) => nodeModules.length === 0);
  // Without Node's modules: proof that the core asks for nothing but the web's APIs.
  const left = forWorkerd.length - pure.length;
  const note = left > 0 ? `${left} files import modules of Node` : "";
  for (const host of WORKERD_HOSTS) {
    if (forWorkerd.length > 0) {
      record(await runOnWorkerd(tools, forWorkerd.map(({ path }) => path), { nodeCompat: true, host }));
    }
    if (pure.length > 0) {
      record(await runOnWorkerd(tools, pure.map(({ path }) => path), { nodeCompat: false, host }), note);
    }
  }
}

const { only, filter } = readArguments();
const suites = await findSuites(ROOT, filter);
if (!suites.some(({ runtimes }) => runtimes.some((runtime) => only.has(runtime)))) {
  console.error(`No suite for ${[...only].join(", ")} has ${JSON.stringify(filter)} in its path.`);
  console.log("\n0 passed, 1 failed");
  Deno.exit(1);
}
if (only.has("deno")) {
  const paths = suites.filter(({ runtimes }) => runtimes.includes("deno")).map(({ path }) => path);
  if (paths.length > 0) record(await runOnDeno(paths));
}
if (
  [...only].some((runtime) => runtime !== "deno" && suites.some(({ runtimes }) => runtimes.includes(runtime)))
) {
  try {
    await testBuiltSuites(suites, only);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    record({
      label: "setup",
      results: [{ file: "-", name: "setup", status: "failed", message }],
      durationMs: 0,
    });
  }
}
for (const failure of failures) console.error(`\n${failure}`);
console.log(`\n${total.passed} passed, ${total.failed} failed`);
Deno.exit(total.failed === 0 ? 0 : 1);
