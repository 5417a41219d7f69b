/**
 * Builds and installs what takes part.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { ROOT } from "../../scripts/lib/gate.ts";
import { type ProcessResult, run } from "../../scripts/lib/process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { Entrant } from "./contestants.ts";

/** Where the built programs are. */
export interface Programs extends AsyncDisposable {
  /** A folder with the contestants in JavaScript, bundled for Node and Bun. */
  readonly bundles: string;
  /** The program with client-go; absent if it was not asked for, or cannot be built here. */
  readonly clientGo?: string;
  /** The program of kube-rs. */
  readonly kubeRs?: string;
}

// The time limit of a build with empty caches, on a machine that has more to do.
const BUILD_TIMEOUT_MS = 60 * 60_000;

/** The programs of others. */
export const PEERS_DIR: string = join(ROOT, "benchmarks", "peers");

/**
 * Bundles ours, installs `@kubernetes/client-node` and builds the
 * programs in Go and Rust, as far as they take part.
 *
 * @throws {Error} If one of the first two fails.
 */
export async function buildPrograms(
  tools: Tools,
  libraries: ReadonlySet<Entrant["library"]>,
  log: (line: string) => void,
): Promise<Programs> {
  if (libraries.has("client-node")) await installNodePeers(log);
  const clientGo = libraries.has("client-go") ? await buildClientGo(log) : undefined;
  const kubeRs = libraries.has("kube-rs") ? await buildKubeRs(log) : undefined;
  const bundles = await Deno.makeTempDir({ prefix: "listwatch-bench-" });
  try {
    await bundle(tools, bundles);
  } catch (error) {
    await Deno.remove(bundles, { recursive: true });
    throw error;
  }
  return {
    bundles,
    ...(clientGo && { clientGo }),
    ...(kubeRs && { kubeRs }),
    [Symbol.asyncDispose]: () => Deno.remove(bundles, { recursive: true }),
  };
}

/** Our contestants. */
async function bundle(tools: Tools, outdir: string): Promise<void> {
  const sources = [
    "listwatch",
    "bare_loop",
    "tasks",
    "list_server",
    "limit",
    "warm_start",
    "million_server",
    "page_reader",
    "screens_server",
  ].map((name) => `benchmarks/contestants/${name}.ts`);
  await bundleForNode(tools, sources, outdir);
}

/**
 * Bundles programs with the library as its source is now; a bundle of the npm package would be the same code.
 *
 * @throws {Error} If esbuild fails.
 */
export async function bundleForNode(tools: Tools, sources: readonly string[], outdir: string): Promise<void> {
  const { exports } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json"))) as {
    exports: Record<string, string>;
  };
  const aliases = Object.entries(exports).map(([subpath, file]) =>
    `--alias:@listwatch/cache${subpath.slice(1)}=${join(ROOT, file)}`
  );
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
    // For packages that are CommonJS, such as yaml.
    '--banner:js=import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    ...aliases,
    "--external:bun:jsc",
  ], { env: { NODE_PATH: join(tools.dir, "node_modules") } });
  if (result.code !== 0) throw new Error(`esbuild failed:\n${result.output}`);
}

let nodePeers: Promise<string> | undefined;

/**
 * Installs `@kubernetes/client-node` from its lock file, if it is not
 * installed, and returns the folder that has it.
 */
export function installNodePeers(log: (line: string) => void): Promise<string> {
  // Two installations at a time would spoil each other's folder.
  return nodePeers ??= install(log);
}

async function install(log: (line: string) => void): Promise<string> {
  const cwd = join(PEERS_DIR, "node");
  const lock = await Deno.readTextFile(join(cwd, "package-lock.json"));
  const stamp = join(cwd, "node_modules", ".listwatch-installed");
  if (await Deno.readTextFile(stamp).catch(() => "") === lock) return cwd;
  log("installing @kubernetes/client-node ...");
  const result = await run("npm", ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {
    cwd,
  });
  if (result.code !== 0) throw new Error(`npm ci in benchmarks/peers/node failed:\n${result.output}`);
  await Deno.writeTextFile(stamp, lock);
  return cwd;
}

function buildClientGo(log: (line: string) => void): Promise<string | undefined> {
  const folder = join(PEERS_DIR, "client_go");
  return buildGo({ name: "client_go", folder, files: ["go.mod", "go.sum", "main.go"] }, log);
}

/** Builds a Go program as {@linkcode buildRust} does one in Rust. */
export function buildGo(
  source: { readonly name: string; readonly folder: string; readonly files: readonly string[] },
  log: (line: string) => void,
): Promise<string | undefined> {
  return buildOnce(source, log, async (dir, output) => {
    const env = { GOFLAGS: "", GOWORK: "off", GOTOOLCHAIN: "local", CGO_ENABLED: "0" };
    return await run("go", ["build", "-trimpath", "-buildvcs=false", "-o", output, "."], { cwd: dir, env });
  });
}

function buildKubeRs(log: (line: string) => void): Promise<string | undefined> {
  const folder = join(PEERS_DIR, "kube_rs");
  return buildRust(
    { name: "kube_rs", folder, binary: "listwatch-benchmark-kube-rs", profile: "release" },
    log,
  );
}

/**
 * Builds a Rust program of one file, once, into the user's cache folder. Returns its
 * path; `undefined` if that failed, which is logged.
 */
export function buildRust(
  { name, folder, binary, profile }: {
    readonly name: string;
    readonly folder: string;
    readonly binary: string;
    readonly profile: "release" | "dev";
  },
  log: (line: string) => void,
): Promise<string | undefined> {
  return buildOnce({ name, folder, files: ["Cargo.toml", "src/main.rs"] }, log, async (dir, output) => {
    const result = await run("cargo", ["build", "--profile", profile, "--quiet"], {
      cwd: dir,
      timeoutMs: BUILD_TIMEOUT_MS,
    });
    if (result.code === 0) {
      const target = join(dir, "target");
      await Deno.copyFile(join(target, profile === "dev" ? "debug" : profile, binary), output);
      await Deno.remove(target, { recursive: true });
    }
    return result;
  });
}

async function buildOnce(
  { name, folder, files }: {
    readonly name: string;
    readonly folder: string;
    readonly files: readonly string[];
  },
  log: (line: string) => void,
  build: (dir: string, output: string) => Promise<ProcessResult>,
): Promise<string | undefined> {
  const texts = await Promise.all(files.map((file) => Deno.readTextFile(join(folder, file))));
  const bytes = new TextEncoder().encode([Deno.build.target, ...texts].join("\n---\n"));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex().slice(0, 16);
  const dir = join(cacheDir(), `${name}-${hash}`);
  const output = join(dir, `program${Deno.build.os === "windows" ? ".exe" : ""}`);
  if (await Deno.stat(output).then(() => true, () => false)) return output;
  log(
    `building the program with ${
      name.replaceAll("_", "-")
    } (once; minutes where nothing of it was built before) ...`,
  );
  for (const [i, file] of files.entries()) {
    await Deno.mkdir(dirname(join(dir, file)), { recursive: true });
    await Deno.writeTextFile(join(dir, file), texts[i]);
  }
  const result = await build(dir, output);
  if (result.code === 0) return output;
  // A machine without Go or Rust still compares the others.
  log(`without ${name.replaceAll("_", "-")}: ${result.output.trim().split("\n").slice(-5).join("\n")}`);
  return undefined;
}

function cacheDir(): string {
  const home = Deno.env.get("HOME") ?? Deno.env.get("USERPROFILE") ?? ".";
  return join(Deno.env.get("XDG_CACHE_HOME") || join(home, ".cache"), "listwatch", "benchmarks");
}
