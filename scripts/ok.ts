/**
 * `deno task ok`: every gate that needs no test run. Prints a line per gate, what the failing
 * ones said, and at the end `N passed, N failed`.
 *
 * Run one gate with `deno task ok NAME`, and `deno task ok --help` for their names.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "./lib/gate.ts";
import { sourceFiles } from "./lib/module_graph.ts";
import { runDeno } from "./lib/process.ts";
import { taskArguments, usage } from "./lib/task_usage.ts";

/** One gate: a name and the arguments of the Deno that runs it. */
interface Gate {
  name: string;
  args: string[];
  /** Shows what it printed also where it passed. Default: false. */
  prints?: boolean;
}

/** Folders and files with code of ours, as far as they exist. */
async function existing(paths: string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    if (await Deno.stat(join(ROOT, path)).then(() => true, () => false)) found.push(path);
  }
  return found;
}

const folders = await existing(["src", "tests", "scripts", "examples", "benchmarks"]);
// TypeScript only: what runs on Node alone imports packages that Deno does not know.
const inFolders = await Promise.all(folders.map((folder) => sourceFiles(ROOT, folder, [".ts"])));
// The page's script has the types of a browser: the gate `page` checks it.
const isForBrowsers = (path: string) => path.startsWith("src/cli/dashboard/browser/");
const code = ["mod.ts", "npm/check.ts", ...inFolders.flat().filter((path) => !isForBrowsers(path))];
const documented = await existing(["mod.ts", "src", "README.md", "CONTRIBUTING.md", "docs"]);

const GATES: Gate[] = [
  { name: "fmt", args: ["fmt", "--check"] },
  { name: "lint", args: ["lint"] },
  { name: "types", args: ["check", ...code] },
  { name: "layers", args: ["run", "-A", "scripts/check_layers.ts"] },
  { name: "exports", args: ["run", "-A", "scripts/check_exports.ts"] },
  { name: "language", args: ["run", "-A", "scripts/check_language.ts"] },
  // The examples of doc comments and of the Markdown files, as a reader would paste them.
  { name: "examples", args: ["check", "--doc-only", ...documented] },
  { name: "page", args: ["run", "-A", "scripts/bundle_page.ts", "--check"] },
  // Bundles with esbuild, which it installs where `deno task test` has not done so yet.
  { name: "size", args: ["run", "-A", "scripts/check_size.ts"] },
  { name: "corridor", args: ["run", "-A", "scripts/check_corridor.ts"], prints: true },
  { name: "publish", args: ["publish", "--dry-run", "--allow-dirty", "--quiet"] },
];

const names = GATES.map(({ name }) => name).join(", ");
const { positionals: given } = taskArguments(
  usage({ task: "ok", takes: "[GATE...]", does: `Runs all gates, or those that are named: ${names}.` }),
  {},
);
const unknown = given.filter((name) => !GATES.some((gate) => gate.name === name));
if (unknown.length > 0) {
  console.error(
    `No gate is called ${unknown.join(", ")}; there are ${names}`,
  );
  Deno.exit(2);
}

const waiting = GATES.filter(({ name }) => given.length === 0 || given.includes(name));
const failures: string[] = [];
let passed = 0;

async function work(): Promise<void> {
  for (let gate = waiting.shift(); gate !== undefined; gate = waiting.shift()) {
    const start = performance.now();
    const { code, output } = await runDeno(gate.args);
    const seconds = ((performance.now() - start) / 1000).toFixed(1);
    console.log(`${code === 0 ? "ok    " : "FAILED"}  ${gate.name.padEnd(8)}  ${seconds} s`);
    if (gate.prints && code === 0) console.log(output.trimEnd());
    if (code === 0) passed++;
    else failures.push(`--- ${gate.name}: deno ${gate.args.slice(0, 3).join(" ")}\n${output.trimEnd()}\n`);
  }
}

await Promise.all([work(), work()]);
for (const failure of failures) console.error(`\n${failure}`);
console.log(`\n${passed} passed, ${failures.length} failed`);
Deno.exit(failures.length === 0 ? 0 : 1);
