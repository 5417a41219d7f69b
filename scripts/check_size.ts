/**
 * The gate of the bundle's size: what a program pays for the library, bundled, minified and compressed.
 *
 * Run with `deno task size`. Prints each size beside its ceiling and its target, and what grew since the
 * baseline in `benchmarks/size.json`, by room and by file. A size over its ceiling is a failure; `--update`
 * makes what is the baseline of the next run, and writes the section of TABLES.md. Kilobytes are of 1,000
 * bytes.
 *
 * @module
 */

import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { writeSection } from "../benchmarks/lib/results_file.ts";
import { markdownTable } from "../benchmarks/lib/table.ts";
import { bundleEntries, packageExports } from "./build_npm.ts";
import { ROOT } from "./lib/gate.ts";
import { run } from "./lib/process.ts";
import { taskOptions, usage } from "./lib/task_usage.ts";
import { type BuildTools, installBuildTools } from "./lib/tools.ts";
import { NPM_PACKAGE } from "./npm_package.ts";

/** One bundle that is weighed. */
export interface SizeCase {
  readonly name: string;
  /** The program, which imports the library by its name. */
  readonly program: string;
  /** Whether zod is in it, or left to the program. */
  readonly withZod: boolean;
  /** Whether it is bundled from the npm package, which holds zod, and not from the source. Default: false. */
  readonly fromPackage?: boolean;
  /** In bytes, compressed; above it the gate fails. Only ever lowered, or raised on purpose. */
  readonly ceiling: number;
  /** The size to reach, where one is set. */
  readonly target?: number;
}

const TYPICAL = `import { newCluster, SharedIndexInformer } from "@listwatch/cache";
const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource("v1/pods");
const informer = new SharedIndexInformer(pods, { indexers: { byName: (pod) => [pod.metadata.name] } });
informer.addEventHandler({ onAdd: (pod) => console.log(pod.metadata.name) });
await informer.run(new AbortController().signal);
`;

/**
 * All limits. What a program hands in (a `NamespaceSet`, a snapshot, short texts) brings its own code, so
 * that a bundler leaves it out of the others.
 */
export const CASES: readonly SizeCase[] = [
  // 20 of them ask servers from Kubernetes 1.38 on to leave out managedFields, a third of the bytes.
  { name: ".", program: 'export * from "@listwatch/cache";', withZod: false, ceiling: 67_680 },
  { name: ". with zod", program: 'export * from "@listwatch/cache";', withZod: true, ceiling: 73_070 },
  // 200 of them keep compressed streams of kube-apiserver 1.37 out, of which Deno reads the beginning only.
  { name: "typical program", program: TYPICAL, withZod: false, ceiling: 57_040, target: 38_000 },
  { name: "typical program with zod", program: TYPICAL, withZod: true, ceiling: 62_440 },
  // The package is as small as the source, if tree-shaking works in its modules too.
  {
    name: "typical program, npm package",
    program: TYPICAL,
    withZod: true,
    fromPackage: true,
    ceiling: 62_040,
  },
  {
    name: "./workqueue",
    program: 'export * from "@listwatch/cache/workqueue";',
    withZod: false,
    // 60 of them keep a throwing or rejecting metrics object from ending the workers of a queue, 50 pause it.
    ceiling: 3_030,
    target: 3_000,
  },
  {
    name: "./workqueue, npm package",
    program: 'export * from "@listwatch/cache/workqueue";',
    withZod: true,
    fromPackage: true,
    // Minified twice, it has other letters, which compress less by 8 bytes.
    ceiling: 3_140,
    target: 3_000,
  },
];

/** What a bundle weighs. */
export interface Size {
  /** Compressed with `gzip -9`. */
  readonly gzip: number;
  /** Minified only. */
  readonly minified: number;
  /** Minified bytes by file. */
  readonly files: Readonly<Record<string, number>>;
}

/** Sizes by the case's name. */
export type Sizes = Readonly<Record<string, Size>>;

/** Something that grew or shrank, in minified bytes. */
export interface Change {
  readonly path: string;
  readonly before: number;
  readonly after: number;
}

/** What changed between two bundles, the largest growth first: by room (`src/store/`), and by file. */
export function changes(before: Size, after: Size): { rooms: Change[]; files: Change[] } {
  const byRoom = (files: Readonly<Record<string, number>>) => {
    const rooms: Record<string, number> = {};
    for (const [path, bytes] of Object.entries(files)) {
      const room = roomOf(path);
      rooms[room] = (rooms[room] ?? 0) + bytes;
    }
    return rooms;
  };
  return {
    rooms: difference(byRoom(before.files), byRoom(after.files)),
    files: difference(before.files, after.files),
  };
}

/** The sizes that are over their ceilings, as sentences. */
export function tooLarge(sizes: Sizes, cases: readonly SizeCase[] = CASES): string[] {
  return cases.flatMap(({ name, ceiling }) => {
    const { gzip } = sizes[name];
    if (gzip <= ceiling) return [];
    return `${name} is ${kilobytes(gzip)} compressed, ${gzip - ceiling} bytes over its ceiling of ${
      kilobytes(ceiling)
    }`;
  });
}

function difference(
  before: Readonly<Record<string, number>>,
  after: Readonly<Record<string, number>>,
): Change[] {
  const found: Change[] = [];
  for (const path of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const change = { path, before: before[path] ?? 0, after: after[path] ?? 0 };
    if (change.before !== change.after) found.push(change);
  }
  return found.sort((a, b) => (b.after - b.before) - (a.after - a.before) || a.path.localeCompare(b.path));
}

function roomOf(path: string): string {
  return /^(src\/[^/]+\/|zod\/)/.exec(path)?.[0] ?? path;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(bytes < 10_000 ? 2 : 1)} KB`;
}

/** Bundles and weighs every case. */
async function measure(tools: BuildTools): Promise<Sizes> {
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-size-" });
  try {
    const { exports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
    const source = join(temporary, "source");
    const dir = await installAs(source, exports);
    await Deno.symlink(join(ROOT, "src"), join(dir, "src"));
    await Deno.symlink(join(ROOT, "mod.ts"), join(dir, "mod.ts"));
    const built = join(temporary, "package");
    await bundleEntries(tools, exports, join(await installAs(built, packageExports(exports)), "lib"));
    const sizes: Record<string, Size> = {};
    for (const one of CASES) sizes[one.name] = await weigh(one, one.fromPackage ? built : source, tools);
    return sizes;
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

/**
 * Prepares the folder of a program that has the library in its node_modules; returns the library's folder.
 */
async function installAs(program: string, exports: unknown): Promise<string> {
  const dir = join(program, "node_modules", "@listwatch", "cache");
  await Deno.mkdir(dir, { recursive: true });
  // As npm installs it: a bundler learns from package.json that modules without a use can be left out.
  const { sideEffects } = NPM_PACKAGE;
  const manifest = { name: "@listwatch/cache", type: "module", sideEffects, exports };
  await Deno.writeTextFile(join(dir, "package.json"), JSON.stringify(manifest));
  return dir;
}

async function weigh({ name, program, withZod }: SizeCase, dir: string, tools: BuildTools): Promise<Size> {
  const [entry, output, meta] = ["entry.mjs", "output.mjs", "meta.json"].map((file) => join(dir, file));
  await Deno.writeTextFile(entry, program);
  const result = await run(tools.esbuild, [
    entry,
    `--outfile=${output}`,
    `--metafile=${meta}`,
    "--bundle",
    "--minify",
    "--format=esm",
    "--platform=neutral",
    "--main-fields=module,main",
    "--target=es2024",
    "--preserve-symlinks",
    "--log-level=warning",
    "--tsconfig-raw={}",
    ...(withZod ? [] : ["--external:zod", "--external:zod/*"]),
  ], { cwd: dir, env: { NODE_PATH: join(tools.dir, "node_modules") } });
  if (result.code !== 0) throw new Error(`esbuild cannot bundle ${name}:\n${result.output}`);
  const bytes = await Deno.readFile(output);
  const { outputs } = JSON.parse(await Deno.readTextFile(meta)) as {
    outputs: Record<string, { inputs: Record<string, { bytesInOutput: number }> }>;
  };
  const files: Record<string, number> = {};
  for (const [path, { bytesInOutput }] of Object.entries(Object.values(outputs)[0].inputs)) {
    if (bytesInOutput > 0) files[nameOf(path)] = (files[nameOf(path)] ?? 0) + bytesInOutput;
  }
  const sorted = Object.fromEntries(Object.entries(files).sort(([a], [b]) => a < b ? -1 : 1));
  return { gzip: gzipSync(bytes, { level: 9 }).length, minified: bytes.length, files: sorted };
}

/**
 * `src/store/store.ts`, `zod/v4/core/core.js`, or `lib/` for all
 * modules of the npm package, whose names change.
 */
function nameOf(path: string): string {
  const parts = path.replaceAll("\\", "/").split("node_modules/");
  return parts.at(-1)!.replace(/^@listwatch\/cache\//, "").replace(/^lib\/.*/, "lib/");
}

const USAGE = usage({
  task: "size",
  does:
    "Prints the size of the bundles of typical programs beside their ceilings, and what grew since the baseline.",
  options: {
    "--update": "make these sizes the baseline, benchmarks/size.json, and a section of benchmarks/TABLES.md",
  },
});

const BASELINE = join(ROOT, "benchmarks", "size.json");

async function main(): Promise<number> {
  const { update } = taskOptions(USAGE, { update: { type: "boolean", default: false } });
  const sizes = await measure(await installBuildTools(console.error));
  const text = await Deno.readTextFile(BASELINE).catch(() => "{}");
  const baseline = JSON.parse(text) as Partial<Record<string, Size>>;
  console.log(markdownTable(
    ["bundle", "gzip -9", "baseline", "ceiling", "target", "minified"],
    CASES.map(({ name, ceiling, target }) => {
      const { gzip, minified } = sizes[name];
      const before = baseline[name]?.gzip;
      const verdict = target === undefined ? "" : gzip <= target ? " met" : " missed";
      return [
        name,
        kilobytes(gzip),
        before === undefined ? "-" : kilobytes(before),
        kilobytes(ceiling),
        target === undefined ? "-" : `${kilobytes(target)}${verdict}`,
        kilobytes(minified),
      ];
    }),
  ));
  for (const { name } of CASES) {
    const before = baseline[name];
    if (before !== undefined) printChanges(name, before, sizes[name]);
  }
  if (update) {
    await Deno.writeTextFile(BASELINE, `${JSON.stringify(sizes, null, 2)}\n`);
    await writeSection(join(ROOT, "benchmarks", "TABLES.md"), "size", section(sizes));
    console.log("\nwritten to benchmarks/size.json and benchmarks/TABLES.md");
  }
  const failures = tooLarge(sizes);
  for (const failure of failures) {
    console.error(
      `\n${failure}. Make it smaller, or raise the ceiling in scripts/check_size.ts if it is worth it.`,
    );
  }
  return failures.length === 0 ? 0 : 1;
}

function section(sizes: Sizes): string {
  const rows = CASES.map(({ name, target }) => {
    const { gzip, minified } = sizes[name];
    const missed = target === undefined || gzip <= target ? "" : ` (≤ ${target / 1000}) missed`;
    return [name, kilobytes(gzip) + missed, kilobytes(minified)];
  });
  return "- Command: `deno task size --update`\n" +
    "- Bundled by esbuild and compressed by gzip -9; a size without zod leaves zod out\n\n" +
    markdownTable(["", "gzip -9", "minified"], rows);
}

function printChanges(name: string, before: Size, after: Size): void {
  const { rooms, files } = changes(before, after);
  if (files.length === 0) return;
  const line = ({ path, before, after }: Change) => {
    const bytes = after - before;
    const note = before === 0 ? " (new)" : after === 0 ? " (removed)" : "";
    return `${bytes > 0 ? "+" : ""}${bytes} ${path}${note}`;
  };
  console.log(`\n${name}, in minified bytes since the baseline (deno task size --update makes a new one):`);
  console.log(`  rooms: ${rooms.map(line).join(", ")}`);
  for (const change of files.slice(0, 10)) console.log(`  ${line(change)}`);
  if (files.length > 10) console.log(`  and ${files.length - 10} more files`);
}

if (import.meta.main) Deno.exit(await main());
