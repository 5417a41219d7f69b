/**
 * Turns test files into plain modules with esbuild: one module per file for Node and Bun, where the package
 * stays an import, and one worker with everything in it for workerd.
 *
 * @module
 */

import { dirname, join, relative } from "node:path";
import { ROOT } from "./gate.ts";
import { run } from "./process.ts";
import type { Tools } from "./tools.ts";

/** A built test file. */
export interface BuiltSuite {
  /** The source, relative to the root. */
  path: string;
  /** The built module. */
  output: string;
  /** Modules of Node that it imports, besides `node:test` and `node:assert`. */
  nodeModules: string[];
}

interface Metafile {
  outputs: Record<string, { entryPoint?: string; imports: { path: string; external?: boolean }[] }>;
}

const TEST_MODULES = new Set(["node:test", "node:assert", "node:assert/strict"]);

/** Where suites are built: inside of `tests/runtimes`, so that imports find its `node_modules`. */
function buildDir(tools: Tools, kind: string): string {
  return join(tools.dir, "build", kind);
}

/**
 * Builds every file for Node and Bun. Packages stay imports: `@listwatch/cache` is the one in `node_modules`.
 *
 * @throws {Error} If esbuild fails.
 */
export async function buildModules(tools: Tools, paths: string[]): Promise<BuiltSuite[]> {
  const outdir = buildDir(tools, "modules");
  await Deno.remove(outdir, { recursive: true }).catch(() => {});
  if (paths.length === 0) return [];
  const metafile = join(outdir, "meta.json");
  await esbuild(tools, [
    ...paths,
    `--outdir=${outdir}`,
    "--outbase=.",
    "--out-extension:.js=.mjs",
    "--format=esm",
    "--platform=node",
    "--target=node22",
    "--packages=external",
    "--bundle",
    "--sourcemap=inline",
    "--sources-content=false",
    `--metafile=${metafile}`,
  ]);
  const { outputs } = JSON.parse(await Deno.readTextFile(metafile)) as Metafile;
  return Object.entries(outputs).flatMap(([output, { entryPoint, imports }]) => {
    if (entryPoint === undefined) return [];
    const nodeModules = imports
      .filter(({ path, external }) => external && path.startsWith("node:") && !TEST_MODULES.has(path))
      .map(({ path }) => path);
    return [{ path: entryPoint, output: join(ROOT, output), nodeModules: [...new Set(nodeModules)].sort() }];
  });
}

/**
 * Builds one worker that runs all of `paths`, for workerd or for a page. `node:test` becomes our own small
 * one; with `nodeCompat` the rest of Node's modules are workerd's, without it assertions are our own too and
 * any other module of Node is an error.
 *
 * @throws {Error} If esbuild fails.
 */
export async function buildWorker(
  tools: Tools,
  paths: string[],
  name: string,
  { nodeCompat, runtime }: { readonly nodeCompat: boolean; readonly runtime: "workerd" | "chromium" },
): Promise<string> {
  const outdir = buildDir(tools, name);
  await Deno.mkdir(outdir, { recursive: true });
  const shims = join(tools.dir, "workerd");
  const specifier = (path: string) => {
    const relativePath = relative(outdir, join(ROOT, path)).replaceAll("\\", "/");
    return JSON.stringify(relativePath.startsWith(".") ? relativePath : `./${relativePath}`);
  };
  const entry = join(outdir, "entry.ts");
  const loads = paths.map((path) => `    [${JSON.stringify(path)}, () => import(${specifier(path)})],\n`)
    .join("");
  await Deno.writeTextFile(
    entry,
    `import { runFiles } from "node:test";
const run = () => runFiles([\n${loads}  ]);
export class Suites {
  fetch = run;
}
export default {
  fetch(request, { SUITES }) {
    const isForObject = new URL(request.url).pathname === "/object";
    return isForObject ? SUITES.get(SUITES.idFromName("suites")).fetch(request) : run();
  },
};
`,
  );
  const output = join(outdir, "worker.mjs");
  await esbuild(tools, [
    entry,
    `--outfile=${output}`,
    "--bundle",
    "--format=esm",
    "--platform=neutral",
    `--conditions=${runtime === "workerd" ? "workerd,worker," : ""}browser,import`,
    "--main-fields=module,main",
    "--target=es2024",
    `--alias:node:test=${join(shims, "collector.ts")}`,
    ...(nodeCompat ? ["--external:node:*"] : [
      `--alias:node:assert=${join(shims, "assert.ts")}`,
      `--alias:node:assert/strict=${join(shims, "assert.ts")}`,
    ]),
    "--external:cloudflare:*",
  ]);
  return output;
}

/**
 * Bundles one program with the library's sources and all packages in it. Its file is replaced as a whole: a
 * program that starts while another process builds it again must not find an empty file, which every runtime
 * runs to its end, with code 0.
 *
 * @returns The path of the bundle.
 * @throws {Error} If esbuild fails.
 */
export async function buildProgram(
  tools: Tools,
  path: string,
  { name, platform }: { name: string; platform: "node" | "workerd" },
): Promise<string> {
  const { exports }: { exports: Record<string, string> } = JSON.parse(
    await Deno.readTextFile(join(ROOT, "deno.json")),
  );
  const output = join(buildDir(tools, "programs"), `${name}.mjs`);
  const aliases = Object.entries(exports).map(([subpath, source]) =>
    `--alias:@listwatch/cache${subpath.slice(1)}=${join(ROOT, source)}`
  );
  const unfinished = `${output}.${crypto.randomUUID()}`;
  await esbuild(tools, [
    path,
    `--outfile=${unfinished}`,
    "--bundle",
    "--format=esm",
    "--sourcemap=inline",
    "--sources-content=false",
    ...aliases,
    ...(platform === "node" ? ["--platform=node", "--target=node22", "--packages=external"] : [
      "--platform=neutral",
      "--conditions=workerd,worker,browser,import",
      "--main-fields=module,main",
      "--target=es2024",
    ]),
  ]);
  await Deno.rename(unfinished, output);
  return output;
}

async function esbuild(tools: Tools, args: string[]): Promise<void> {
  await Deno.mkdir(dirname(join(tools.dir, "build", "x")), { recursive: true });
  const result = await run(tools.esbuild, ["--log-level=warning", "--tsconfig-raw={}", ...args], {
    cwd: ROOT,
    // Suites outside of tests/runtimes find packages there too.
    env: { NODE_PATH: join(tools.dir, "node_modules") },
  });
  if (result.code !== 0) throw new Error(`esbuild failed:\n${result.output}`);
}
