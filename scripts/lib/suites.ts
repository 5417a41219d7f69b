/**
 * Where each test file runs. The folder decides, so that a new suite needs no list.
 *
 * @module
 */

import { sourceFiles } from "./module_graph.ts";

/** The releases of Node: 24, the oldest that is supported, and the latest. All run the same suites. */
export type NodeRelease = "node" | "node22" | "node26";

/** Where suites run. */
export type Runtime = "deno" | NodeRelease | "bun" | "workerd" | "chromium";

/** All releases of Node, in the order in which they run. */
export const NODE_RELEASES: readonly NodeRelease[] = ["node", "node22", "node26"];

/** All of them, in the order in which they run. */
export const RUNTIMES: readonly Runtime[] = ["deno", ...NODE_RELEASES, "bun", "workerd", "chromium"];

const WITH_FILES: readonly Runtime[] = ["deno", ...NODE_RELEASES, "bun"];
const WITH_SOCKETS: readonly Runtime[] = WITH_FILES;

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

/** Portable suites that need more than a page has. */
export const NOT_IN_PAGES: readonly { readonly path: string; readonly why: string }[] = [
  { path: "tests/runtimes/kept_lists_test.ts", why: "sets headers of requests that pages may not set" },
];

/** Needs a real API server: `deno task test:cluster`. */
const NOT_HERE = ["tests/cluster/"];

/** Systems besides Linux, on which nothing is left out. */
export type OtherSystem = "darwin" | "windows";

/** What cannot run on a system, and why. */
export const NOT_ON: Readonly<
  Record<OtherSystem, readonly { readonly path: string; readonly why: string }[]>
> = {
  darwin: [],
  windows: [
    { path: "tests/cli/cluster/snapshot_test.ts", why: "checks the modes of files and folders" },
    { path: "tests/cli/main_test.ts", why: "ends `serve` by SIGTERM" },
    { path: "tests/files/snapshot_kill_test.ts", why: "kills writers that a shell has started" },
    { path: "tests/files/snapshots_test.ts", why: "checks the modes of files, and makes a pipe by mkfifo" },
    { path: "tests/node/in_cluster_test.ts", why: "has a credential plugin that is a shell script" },
    { path: "tests/node/kubeconfig_test.ts", why: "has credential plugins that are shell scripts" },
    { path: "tests/sockets/canary_test.ts", why: "has credential plugins that are shell scripts" },
    { path: "tests/sockets/credentials_test.ts", why: "has credential plugins that are shell scripts" },
    { path: "tests/sockets/exec_plugin_test.ts", why: "has credential plugins that are shell scripts" },
    { path: "tests/sockets/many_watches_test.ts", why: "asks a shell for the number of file descriptors" },
  ],
};

/** What is left out on a system; nothing on Linux. */
export function leftOutOn(system: string): readonly { readonly path: string; readonly why: string }[] {
  return Object.hasOwn(NOT_ON, system) ? NOT_ON[system as OtherSystem] : [];
}

/** One test file. */
export interface SuiteFile {
  path: string;
  runtimes: readonly Runtime[];
}

/**
 * Every `*_test.ts` below `tests/` that can run on the system, and on which
 * runtimes it does; `filter` keeps the paths that contain it.
 */
export async function findSuites(
  root: string,
  filter = "",
  system: string = Deno.build.os,
): Promise<SuiteFile[]> {
  const files = await sourceFiles(root, "tests", ["_test.ts"]);
  const left = new Set(leftOutOn(system).map(({ path }) => path));
  return files
    .filter((path) => path.includes(filter) && !NOT_HERE.some((folder) => path.startsWith(folder)))
    .filter((path) => !left.has(path))
    .map((path) => ({ path, runtimes: runtimesOf(path) }));
}

/** `tests/runtimes/deno/x_test.ts` runs on Deno alone; suites that are not portable run on Deno. */
function runtimesOf(path: string): readonly Runtime[] {
  const own = /^tests\/runtimes\/(deno|node|bun|workerd)\//.exec(path)?.[1] as Runtime | undefined;
  if (own === "node") return NODE_RELEASES;
  if (own !== undefined) return [own];
  const runtimes = PORTABLE.find(({ folder }) => path.startsWith(folder))?.runtimes ?? ["deno"];
  return NOT_IN_PAGES.some((left) => left.path === path)
    ? runtimes.filter((runtime) => runtime !== "chromium")
    : runtimes;
}
