/**
 * Which test file runs where. The folder decides, so that a new suite needs no list.
 *
 * @module
 */

import { sourceFiles } from "./module_graph.ts";

/** Where suites run. `node22` is the oldest Node that is supported, and runs what `node` runs. */
export type Runtime = "deno" | "node" | "node22" | "bun" | "workerd";

/** All of them, in the order in which they run. */
export const RUNTIMES: readonly Runtime[] = ["deno", "node", "node22", "bun", "workerd"];

const WITH_FILES: readonly Runtime[] = ["deno", "node", "node22", "bun"];
const WITH_SOCKETS: readonly Runtime[] = ["deno", "node", "node22", "bun"];

/**
 * Portable folders: their suites use nothing but `node:test`, `node:assert/strict` and web APIs, and import
 * the package by its name. On Deno they test the source, elsewhere the built npm package.
 */
const PORTABLE: { folder: string; runtimes: readonly Runtime[]; why: string }[] = [
  { folder: "tests/runtimes/", runtimes: RUNTIMES, why: "the smoke of every runtime" },
  { folder: "tests/sockets/", runtimes: WITH_SOCKETS, why: "listens on a socket" },
  { folder: "tests/files/", runtimes: WITH_FILES, why: "writes files" },
  { folder: "tests/conformance/servers/", runtimes: WITH_SOCKETS, why: "listens on a socket" },
  { folder: "tests/conformance/", runtimes: RUNTIMES, why: "what client-go was recorded to do" },
];

/** Needs a real API server: `deno task test:cluster`. */
const NOT_HERE = ["tests/cluster/"];

/** One test file. */
export interface SuiteFile {
  path: string;
  runtimes: readonly Runtime[];
}

/** Every `*_test.ts` below `tests/` and where it runs; `filter` keeps the paths that contain it. */
export async function findSuites(root: string, filter = ""): Promise<SuiteFile[]> {
  const files = await sourceFiles(root, "tests", ["_test.ts"]);
  return files
    .filter((path) => path.includes(filter) && !NOT_HERE.some((folder) => path.startsWith(folder)))
    .map((path) => ({ path, runtimes: runtimesOf(path) }));
}

/** `tests/runtimes/deno/x_test.ts` runs on Deno alone; suites that are not portable run on Deno. */
function runtimesOf(path: string): readonly Runtime[] {
  const own = /^tests\/runtimes\/(deno|node|bun|workerd)\//.exec(path)?.[1] as Runtime | undefined;
  if (own === "node") return ["node", "node22"];
  if (own !== undefined) return [own];
  return PORTABLE.find(({ folder }) => path.startsWith(folder))?.runtimes ?? ["deno"];
}
