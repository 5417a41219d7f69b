/**
 * Builds and installs what takes part.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { Peers } from "./contestants.ts";

/** Where the built programs are. */
export interface Programs extends AsyncDisposable {
  /** A folder with the contestants in JavaScript, bundled for Node and Bun. */
  readonly bundles: string;
  readonly clientGo?: string;
  readonly kubeRs?: string;
}

const PEERS_DIR = join(ROOT, "benchmarks", "peers");

/**
 * Bundles ours, installs `@kubernetes/client-node` and builds the programs in Go and Rust, as far as they are asked for.
 *
 * @throws {Error} If one of these fails.
 */
export async function buildPrograms(
  tools: Tools,
  peers: Peers,
  log: (line: string) => void,
): Promise<Programs> {
  if (peers !== "none") await installNodePeers(log);
  const bundles = await Deno.makeTempDir({ prefix: "listwatch-bench-" });
  try {
    await bundle(tools, bundles);
  } catch (error) {
    await Deno.remove(bundles, { recursive: true });
    throw error;
  }
  return {
    bundles,
    [Symbol.asyncDispose]: () => Deno.remove(bundles, { recursive: true }),
  };
}

/** The library as its source is now; a bundle of the npm package would be the same code. */
async function bundle(tools: Tools, outdir: string): Promise<void> {
  const sources = ["listwatch", "bare_loop"].map((name) => `benchmarks/contestants/${name}.ts`);
  const result = await run(tools.esbuild, [
    ...sources,
    `--outdir=${outdir}`,
    "--bundle",
    "--format=esm",
    "--platform=node",
    "--target=node24",
    "--out-extension:.js=.mjs",
    "--log-level=warning",
    "--tsconfig-raw={}",
    `--alias:@listwatch/cache=${join(ROOT, "mod.ts")}`,
    "--external:bun:jsc",
  ], { env: { NODE_PATH: join(tools.dir, "node_modules") } });
  if (result.code !== 0) throw new Error(`esbuild failed:\n${result.output}`);
}

async function installNodePeers(log: (line: string) => void): Promise<void> {
  const cwd = join(PEERS_DIR, "node");
  const lock = await Deno.readTextFile(join(cwd, "package-lock.json"));
  const stamp = join(cwd, "node_modules", ".listwatch-installed");
  if (await Deno.readTextFile(stamp).catch(() => "") === lock) return;
  log("installing @kubernetes/client-node ...");
  const result = await run("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {
    cwd,
  });
  if (result.code !== 0) throw new Error(`npm ci in benchmarks/peers/node failed:\n${result.output}`);
  await Deno.writeTextFile(stamp, lock);
}
