/**
 * Node (the line for development, and the oldest that is supported), Bun, esbuild, miniflare and the package
 * linters, installed from the lock file of `tests/runtimes/`.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "./gate.ts";
import { run, runDeno } from "./process.ts";

/** What builds the npm package. */
export interface BuildTools {
  /** A folder whose `node_modules` has the packages that are bundled. */
  dir: string;
  /** The executable. */
  esbuild: string;
}

/** Where the tools are. */
export interface Tools extends BuildTools {
  /** `tests/runtimes`: holds `node_modules`. */
  dir: string;
  /** Executables. */
  node: string;
  /** The oldest Node that `engines` of the package allows, as far as npm has it for the platform. */
  node22: string;
  node26: string;
  bun: string;
  esbuild: string;
  workerd: string;
}

/** The npm that Deno runs where there is none on the machine. */
const NPM = "npm:npm@11.21.2";

/** `tests/runtimes`. */
export const TOOLS_DIR: string = join(ROOT, "tests", "runtimes");
/** `npm/tools`. */
const BUILD_TOOLS_DIR: string = join(ROOT, "npm", "tools");

/**
 * Installs esbuild and what is bundled, a few megabytes, and no runtimes; nothing where
 * {@linkcode installTools} has installed everything.
 *
 * @throws {Error} If the installation fails, or has nothing for this platform.
 */
export async function installBuildTools(
  log: (message: string) => void = console.log,
): Promise<BuildTools> {
  const hasAll = await isInstalled(TOOLS_DIR, await fingerprint(TOOLS_DIR));
  const dir = hasAll ? TOOLS_DIR : BUILD_TOOLS_DIR;
  await installOnce(dir, await fingerprint(dir), async () => {
    log("installing esbuild and zod into npm/tools/node_modules ...");
    await npmInstall(dir);
  });
  return { dir, esbuild: await findEsbuild(dir) };
}

/**
 * Installs what is not installed yet and returns its path. Takes `npm` if the machine has it and otherwise
 * lets Deno run npm, so that Deno alone is enough.
 *
 * @throws {Error} If the installation fails, or has nothing for this platform.
 */
export async function installTools(log: (message: string) => void = console.log): Promise<Tools> {
  const modules = join(TOOLS_DIR, "node_modules");
  await installOnce(TOOLS_DIR, await fingerprint(TOOLS_DIR), async () => {
    log("installing Node 24, 22 and 26, Bun, miniflare and esbuild into tests/runtimes/node_modules ...");
    await npmInstall(TOOLS_DIR);
  });
  const { os, arch } = Deno.build;
  const exe = os === "windows" ? ".exe" : "";
  const cpu = arch === "aarch64" ? "arm64" : "x64";
  const platform = platformName();
  return {
    dir: TOOLS_DIR,
    node: await firstFile("Node 24", [
      ...["node-linux", "node-win", "node-darwin", "node-bin-darwin"].map((name) =>
        join(modules, `${name}-${cpu}`, "bin", `node${exe}`)
      ),
    ]),
    node22: await firstFile("Node 22", [join(modules, `node22-${platform}`, "bin", `node${exe}`)]),
    node26: await firstFile("Node 26", [join(modules, `node26-${platform}`, "bin", `node${exe}`)]),
    bun: await firstFile("Bun", [
      ...["", "-musl", "-baseline"].map((suffix) =>
        join(
          modules,
          "@oven",
          `bun-${os}-${arch === "aarch64" ? "aarch64" : "x64"}${suffix}`,
          "bin",
          `bun${exe}`,
        )
      ),
    ]),
    esbuild: await findEsbuild(TOOLS_DIR),
    workerd: await firstFile("workerd", [
      join(modules, "@cloudflare", `workerd-${os}-${cpu === "arm64" ? cpu : "64"}`, "bin", `workerd${exe}`),
    ]),
  };
}

/**
 * Runs `install` unless that was done for `wanted`: `node_modules` of the folder then says so. If several
 * processes call it at once, one installs, and the others wait for it.
 */
export async function installOnce(dir: string, wanted: string, install: () => Promise<void>): Promise<void> {
  if (await isInstalled(dir, wanted)) return;
  // Beside node_modules, which npm replaces. The lock ends with the process at the latest.
  using lock = await Deno.open(join(dir, ".installing"), { create: true, write: true });
  await lock.lock(true);
  if (await isInstalled(dir, wanted)) return;
  await install();
  await Deno.writeTextFile(stampOf(dir), wanted);
}

async function isInstalled(dir: string, wanted: string): Promise<boolean> {
  return await Deno.readTextFile(stampOf(dir)).catch(() => "") === wanted;
}

function stampOf(dir: string): string {
  return join(dir, "node_modules", ".listwatch-installed");
}

/** `linux-x64`, as npm packages call platforms. */
function platformName(): string {
  const { os, arch } = Deno.build;
  return `${os === "windows" ? "win32" : os}-${arch === "aarch64" ? "arm64" : "x64"}`;
}

async function findEsbuild(dir: string): Promise<string> {
  const folder = join(dir, "node_modules", "@esbuild", platformName());
  return await firstFile("esbuild", [join(folder, "bin", "esbuild"), join(folder, "esbuild.exe")]);
}

/** Changes whenever another installation would come out. */
async function fingerprint(dir: string): Promise<string> {
  const lock = await Deno.readFile(join(dir, "package-lock.json"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", lock));
  return `${digest.toHex()} ${Deno.build.target}\n`;
}

async function npmInstall(dir: string): Promise<void> {
  const args = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const npm = Deno.build.os === "windows" ? "npm.cmd" : "npm";
  let result = await run(npm, args, { cwd: dir });
  if (result.code === 127) {
    result = await runDeno(["run", "-A", "--no-config", "--no-lock", "--quiet", NPM, ...args], {
      cwd: dir,
    });
  }
  if (result.code !== 0) throw new Error(`npm ci in ${dir} failed:\n${result.output}`);
}

async function firstFile(what: string, paths: string[]): Promise<string> {
  for (const path of paths) {
    if (await Deno.stat(path).then(({ isFile }) => isFile, () => false)) return path;
  }
  throw new Error(
    `tests/runtimes/node_modules has no ${what} for ${Deno.build.target}; add its package to the ` +
      "optionalDependencies of tests/runtimes/package.json",
  );
}
