/**
 * Node (the line for development, and the oldest that is supported), Bun, esbuild, miniflare and the package linters,
 * installed from the lock file of `tests/runtimes/`.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "./gate.ts";
import { run, runDeno } from "./process.ts";

/** Where the tools are. */
export interface Tools {
  /** `tests/runtimes`: holds `node_modules`. */
  dir: string;
  /** Executables. */
  node: string;
  /** The oldest Node that `engines` of the package allows, as far as npm has it for the platform. */
  node22: string;
  bun: string;
  esbuild: string;
  workerd: string;
}

/** The npm that Deno runs where there is none on the machine. */
const NPM = "npm:npm@11.21.2";

/** `tests/runtimes`. */
export const TOOLS_DIR: string = join(ROOT, "tests", "runtimes");

/**
 * Installs what is not installed yet and returns its path. Takes `npm` if the machine has it and otherwise lets Deno
 * run npm, so that Deno alone is enough.
 *
 * @throws {Error} If the installation fails, or has nothing for this platform.
 */
export async function installTools(log: (message: string) => void = console.log): Promise<Tools> {
  const modules = join(TOOLS_DIR, "node_modules");
  await installOnce(TOOLS_DIR, await fingerprint(), async () => {
    log("installing Node 24 and 22, Bun, miniflare and esbuild into tests/runtimes/node_modules ...");
    await npmInstall();
  });
  const { os, arch } = Deno.build;
  const exe = os === "windows" ? ".exe" : "";
  const cpu = arch === "aarch64" ? "arm64" : "x64";
  const platform = `${os === "windows" ? "win32" : os}-${cpu}`;
  return {
    dir: TOOLS_DIR,
    node: await firstFile("Node 24", [
      ...["node-linux", "node-win", "node-darwin", "node-bin-darwin"].map((name) =>
        join(modules, `${name}-${cpu}`, "bin", `node${exe}`)
      ),
    ]),
    node22: await firstFile("Node 22", [join(modules, `node22-${platform}`, "bin", `node${exe}`)]),
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
    esbuild: await firstFile("esbuild", [
      join(modules, "@esbuild", platform, "bin", "esbuild"),
      join(modules, "@esbuild", platform, "esbuild.exe"),
    ]),
    workerd: await firstFile("workerd", [
      join(modules, "@cloudflare", `workerd-${os}-${cpu === "arm64" ? cpu : "64"}`, "bin", `workerd${exe}`),
    ]),
  };
}

/**
 * Runs `install` unless that was done for `wanted`: `node_modules` of the folder then says so. Of several processes that
 * call it at once, one installs, and the others wait for it.
 */
export async function installOnce(dir: string, wanted: string, install: () => Promise<void>): Promise<void> {
  const stamp = join(dir, "node_modules", ".listwatch-installed");
  const isDone = async () => await Deno.readTextFile(stamp).catch(() => "") === wanted;
  if (await isDone()) return;
  // Beside node_modules, which npm replaces. The lock ends with the process at the latest.
  using lock = await Deno.open(join(dir, ".installing"), { create: true, write: true });
  await lock.lock(true);
  if (await isDone()) return;
  await install();
  await Deno.writeTextFile(stamp, wanted);
}

/** Changes whenever another installation would come out. */
async function fingerprint(): Promise<string> {
  const lock = await Deno.readFile(join(TOOLS_DIR, "package-lock.json"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", lock));
  return `${digest.toHex()} ${Deno.build.target}\n`;
}

async function npmInstall(): Promise<void> {
  const args = ["ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const npm = Deno.build.os === "windows" ? "npm.cmd" : "npm";
  let result = await run(npm, args, { cwd: TOOLS_DIR });
  if (result.code === 127) {
    result = await runDeno(["run", "-A", "--no-config", "--no-lock", "--quiet", NPM, ...args], {
      cwd: TOOLS_DIR,
    });
  }
  if (result.code !== 0) throw new Error(`npm ci in tests/runtimes failed:\n${result.output}`);
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
