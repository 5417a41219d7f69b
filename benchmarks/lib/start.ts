/**
 * What an import of each entry adds to the start of a program: on Node and Bun of the npm
 * package as it is built, on Deno of the source.
 *
 * @module
 */

import { join } from "node:path";
import { buildNpm, copyTree, NPM_DIST } from "../../scripts/build_npm.ts";
import { readExports } from "../../scripts/check_exports.ts";
import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { BenchOptions } from "./options.ts";
import { median } from "./statistics.ts";
import { markdownTable } from "./table.ts";

const NAME = "@listwatch/cache";
const RUNTIMES = ["node", "deno", "bun"] as const;
type Runtime = typeof RUNTIMES[number];
const LABELS: Record<Runtime, string> = { node: "Node 24", deno: "Deno", bun: "Bun" };

/** In ms above the empty program, for the import of `@listwatch/cache`. */
const GOALS: Record<Runtime, number> = { node: 60, deno: 25, bun: 25 };

/** One program that imports an entry, or nothing. */
interface Program {
  /** The entry, such as `./hono`; `undefined` for the empty program. */
  readonly entry: string | undefined;
  readonly path: string;
  readonly timesMs: number[];
}

/** Builds the npm package, and puts it where the programs in `tests/runtimes` find it. */
export async function installPackage(tools: Tools, log: (line: string) => void): Promise<void> {
  log("building the npm package ...");
  await buildNpm();
  const installed = join(tools.dir, "node_modules", NAME);
  await Deno.remove(installed, { recursive: true }).catch(() => {});
  await copyTree(NPM_DIST, installed);
}

/** Measures it, and returns the tables as Markdown. */
export async function measureStart(
  { rounds }: BenchOptions,
  tools: Tools,
  log: (line: string) => void,
): Promise<string> {
  await installPackage(tools, log);
  const entries = Object.keys(await readExports(ROOT));
  // Below tests/runtimes, so that Node and Bun find the package in node_modules.
  const folder = join(tools.dir, "build", "start");
  await Deno.mkdir(folder, { recursive: true });
  const times = new Map<Runtime, Program[]>();
  for (const runtime of RUNTIMES) {
    log(`${LABELS[runtime]}: ${rounds} rounds`);
    times.set(runtime, await timePrograms(runtime, entries, { folder, rounds, tools }));
  }
  const modules = new Map<string, ModuleCount>();
  for (const runtime of ["node", "deno"] as const) {
    for (const entry of entries) {
      modules.set(`${runtime} ${entry}`, await countModules(runtime, entry, folder, tools));
    }
  }
  return report(entries, times, modules);
}

/**
 * Starts every program once a round, after the empty one. The
 * first round, which fills caches, does not count.
 */
async function timePrograms(
  runtime: Runtime,
  entries: readonly string[],
  { folder, rounds, tools }: { folder: string; rounds: number; tools: Tools },
): Promise<Program[]> {
  const programs: Program[] = [];
  for (const entry of [undefined, ...entries]) {
    const path = join(folder, `${programs.length}.mjs`);
    await Deno.writeTextFile(
      path,
      entry === undefined ? "" : `import ${JSON.stringify(specifierOf(entry))};\n`,
    );
    programs.push({ entry, path, timesMs: [] });
  }
  for (let round = 0; round <= rounds; round++) {
    for (const { path, timesMs } of programs) {
      const [command, ...args] = commandOf(runtime, path, tools);
      const before = performance.now();
      const { code, output } = await run(command, args, { cwd: folder });
      if (code !== 0) throw new Error(`${LABELS[runtime]} cannot run ${path}:\n${output}`);
      if (round > 0) timesMs.push(performance.now() - before);
    }
  }
  return programs;
}

function commandOf(runtime: Runtime, path: string, tools: Tools): string[] {
  if (runtime === "node") return [tools.node, path];
  if (runtime === "bun") return [tools.bun, "run", path];
  return [Deno.execPath(), "run", "-A", "--no-check", "--quiet", `--config=${join(ROOT, "deno.json")}`, path];
}

/** `@listwatch/cache/hono` for `./hono`. */
function specifierOf(entry: string): string {
  return NAME + entry.slice(1);
}

/** How many modules an import opens: of this library, and of packages. */
interface ModuleCount {
  readonly own: number;
  readonly packages: number;
}

/** Counts them with a hook. Bun has no such hook; it opens the modules that Node does. */
async function countModules(
  runtime: "node" | "deno",
  entry: string,
  folder: string,
  tools: Tools,
): Promise<ModuleCount> {
  const program = `import { registerHooks } from "node:module";
const urls = [];
registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) });
await import(${JSON.stringify(specifierOf(entry))});
console.log(JSON.stringify(urls));
`;
  const path = join(folder, "count.mjs");
  await Deno.writeTextFile(path, program);
  const [command, ...args] = commandOf(runtime, path, tools);
  const { code, stdout, output } = await run(command, args, { cwd: folder });
  if (code !== 0) throw new Error(`Cannot count the modules of ${entry}:\n${output}`);
  const files = (JSON.parse(stdout) as string[]).filter((url) => url.startsWith("file:"));
  const isOwn = (url: string) =>
    runtime === "node"
      ? url.includes(`/${NAME}/`)
      : url.startsWith(`file://${ROOT}`) && !/node_modules/.test(url);
  const own = files.filter(isOwn).length;
  return { own, packages: files.length - own };
}

function report(
  entries: readonly string[],
  times: ReadonlyMap<Runtime, readonly Program[]>,
  modules: ReadonlyMap<string, ModuleCount>,
): string {
  const added = (runtime: Runtime, entry: string): number => {
    const [empty, ...programs] = times.get(runtime)!;
    return median(programs.find((program) => program.entry === entry)!.timesMs)! - median(empty.timesMs)!;
  };
  const count = (runtime: string, entry: string): string => {
    const { own, packages } = modules.get(`${runtime} ${entry}`)!;
    return packages === 0 ? `${own}` : `${own} + ${packages}`;
  };
  const rows = entries.map((entry) => [
    `\`${entry}\``,
    ...RUNTIMES.map((runtime) => {
      const ms = added(runtime, entry);
      if (entry !== ".") return ms.toFixed(1);
      return `${ms.toFixed(1)} (≤ ${GOALS[runtime]}) ${ms <= GOALS[runtime] ? "met" : "missed"}`;
    }),
    count("node", entry),
    count("deno", entry),
  ]);
  const empty = RUNTIMES.map((runtime) => median(times.get(runtime)![0].timesMs)!.toFixed(1));
  return [
    "Milliseconds that an import adds to the empty program, and the modules that it opens (of this library + of " +
    "packages). Node and Bun import the npm package, Deno the source:",
    markdownTable(
      ["", ...RUNTIMES.map((runtime) => LABELS[runtime]), "modules, npm package", "modules, source"],
      [...rows, ["the empty program", ...empty, "", ""]],
    ),
  ].join("\n\n");
}
