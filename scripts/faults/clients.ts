/**
 * The clients, and how each is started.
 * @module
 */

import { join } from "node:path";
import { buildRust, bundleForNode, installNodePeers } from "../../benchmarks/lib/programs.ts";
import { ensureGoProgram } from "../lib/cluster_build.ts";
import { ROOT } from "../lib/gate.ts";
import { installTools } from "../lib/tools.ts";

/** A client that can be started. */
export interface Client {
  /** As in the table. */
  readonly name: string;
  /** The program and its arguments; the path of a kubeconfig follows. */
  readonly command: readonly string[];
  readonly cwd?: string;
}

/** A client that takes part. */
export interface Entrant {
  /** As in `--only`. */
  readonly id: string;
  /** As in the table. */
  readonly name: string;
  /** Only with `--all`. */
  readonly isSlowToBuild?: boolean;
  /** Builds or installs it; `folder` is for what is built for this run only. Throws where that fails. */
  prepare(folder: string, log: (line: string) => void): Promise<Pick<Client, "command" | "cwd">>;
}

const FOLDER = join(ROOT, "scripts", "faults", "clients");

/** All that take part. */
export const ENTRANTS: readonly Entrant[] = [
  {
    id: "listwatch-deno",
    name: "@listwatch/cache, Deno",
    prepare: () =>
      Promise.resolve({
        command: [
          Deno.execPath(),
          "run",
          "-A",
          "--no-check",
          "--quiet",
          `--config=${join(ROOT, "deno.json")}`,
          join(FOLDER, "listwatch.ts"),
        ],
      }),
  },
  {
    id: "listwatch-node",
    name: "@listwatch/cache, Node",
    async prepare(folder, log) {
      const tools = await installTools(log);
      await bundleForNode(tools, [join(FOLDER, "listwatch.ts")], folder);
      return { command: [tools.node, join(folder, "listwatch.mjs")] };
    },
  },
  {
    id: "client-node",
    name: "@kubernetes/client-node",
    prepare: (_folder, log) => nodePeer("client_node.mjs", log),
  },
  {
    id: "fluent-client",
    name: "kubernetes-fluent-client",
    prepare: (_folder, log) => nodePeer("fluent_client.mjs", log),
  },
  {
    id: "client-go",
    name: "client-go",
    prepare: async (_folder, log) => ({ command: [await ensureGoProgram("fault_client", { log })] }),
  },
  {
    id: "kube-rs",
    name: "kube-rs",
    isSlowToBuild: true,
    async prepare(_folder, log) {
      const program = await buildRust({
        name: "kube_rs_faults",
        folder: join(FOLDER, "kube_rs"),
        binary: "listwatch-faults-kube-rs",
        profile: "dev",
      }, log);
      if (program === undefined) throw new Error("Rust cannot build it");
      return { command: [program] };
    },
  },
];

async function nodePeer(file: string, log: (line: string) => void): Promise<Pick<Client, "command" | "cwd">> {
  const { node } = await installTools(log);
  return { command: [node, join(FOLDER, file)], cwd: await installNodePeers(log) };
}
