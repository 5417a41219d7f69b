/**
 * Who takes part in `deno task bench --controllers`: the same controller in TypeScript, Go and Rust.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { Peers } from "../lib/options.ts";
import { buildGo, buildRust, PEERS_DIR } from "../lib/programs.ts";
import { installPackage } from "../lib/start.ts";

/** The line that each program prints when it has reconciled every Widget once. */
export interface Reconciled {
  readonly reconciled: number;
  readonly pid: number;
}

/** One program. */
export interface Contestant {
  /** As in `--only`. */
  readonly id: string;
  /** As in the tables. */
  readonly label: string;
  readonly isOurs: boolean;
  /** The command line that starts it, without the number of Widgets. */
  readonly command: readonly string[];
}

/** Builds the contestants; what cannot be built here (without Go or Rust) is logged, and left out. */
export async function buildContestants(
  { peers, only }: { readonly peers: Peers; readonly only: readonly string[] },
  tools: Tools,
  log: (line: string) => void,
): Promise<Contestant[]> {
  const source = "benchmarks/controllers/widgets.ts";
  const contestants: Contestant[] = [];
  const add = async (
    id: string,
    label: string,
    build: () => Promise<readonly string[] | undefined>,
    isOurs = false,
  ) => {
    if (only.length > 0 && !only.some((word) => id.includes(word))) return;
    const command = await build();
    if (command !== undefined) contestants.push({ id, label, isOurs, command });
  };
  await add("listwatch-node", "@listwatch/cache, Node", async () => {
    await installPackage(tools, log);
    return [tools.node, await buildForPackage(tools, source)];
  }, true);
  await add("listwatch-deno", "@listwatch/cache, Deno", () => {
    const config = `--config=${join(ROOT, "deno.json")}`;
    return Promise.resolve([
      Deno.execPath(),
      "run",
      "-A",
      "--no-check",
      "--quiet",
      config,
      join(ROOT, source),
    ]);
  }, true);
  if (peers === "none") return contestants;
  const asCommand = (path: string | undefined) => path === undefined ? undefined : [path];
  await add("controller-runtime", "controller-runtime, Go", async () => {
    const folder = join(PEERS_DIR, "controller_runtime");
    const files = ["go.mod", "go.sum", "main.go", "widget.go"];
    return asCommand(await buildGo({ name: "controller_runtime", folder, files }, log));
  });
  await add("kube-rs", "kube-rs, Rust", async () => {
    const folder = join(PEERS_DIR, "kube_rs_controller");
    const binary = "listwatch-benchmark-kube-rs-controller";
    return asCommand(
      await buildRust({ name: "kube_rs_controller", folder, binary, profile: "release" }, log),
    );
  });
  return contestants;
}

/** Makes one module of a program, in which packages stay imports, where it finds them. */
async function buildForPackage(tools: Tools, source: string): Promise<string> {
  const output = join(tools.dir, "build", "controllers", "widgets.mjs");
  const args = ["--bundle", "--format=esm", "--platform=node", "--target=node24", "--packages=external"];
  const result = await run(tools.esbuild, [
    join(ROOT, source),
    `--outfile=${output}`,
    "--log-level=warning",
    "--tsconfig-raw={}",
    ...args,
  ]);
  if (result.code !== 0) throw new Error(`esbuild failed:\n${result.output}`);
  return output;
}

/** The versions, such as `Node 24.21.0` and `kube-rs 5.0.0`, of those that take part. */
export async function versionsOf(contestants: readonly Contestant[], tools: Tools): Promise<string[]> {
  const versions: Record<string, () => Promise<string>> = {
    "listwatch-node": async () => `Node ${(await run(tools.node, ["--version"])).stdout.trim().slice(1)}`,
    "listwatch-deno": () => Promise.resolve(`Deno ${Deno.version.deno}`),
    "controller-runtime": async () => {
      const text = await Deno.readTextFile(join(PEERS_DIR, "controller_runtime", "go.mod"));
      const version = /controller-runtime v(\S+)/.exec(text)?.[1];
      return `controller-runtime ${version}, ${(await run("go", ["env", "GOVERSION"])).stdout.trim()}`;
    },
    "kube-rs": async () => {
      const text = await Deno.readTextFile(join(PEERS_DIR, "kube_rs_controller", "Cargo.toml"));
      return `kube-rs ${/^kube = .*?version = "=([^"]+)"/m.exec(text)?.[1]}`;
    },
  };
  return await Promise.all(contestants.map(({ id }) => versions[id]()));
}
