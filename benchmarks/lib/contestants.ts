/**
 * Who takes part, and how each is started.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "../../scripts/lib/gate.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { Peers } from "./options.ts";
import type { Programs } from "./programs.ts";

/** One program with one set of options. */
export interface Entrant {
  /** As in `--only`, such as `listwatch-node-default`. */
  readonly id: string;
  /** As in the tables. */
  readonly label: string;
  readonly runtime: "node" | "deno" | "bun" | "go" | "rust";
  readonly library: "listwatch" | "tasks" | "bare" | "client-node" | "client-go" | "kube-rs";
  readonly variant: string;
}

const RUNTIME_LABELS = { node: "Node", deno: "Deno", bun: "Bun", go: "Go", rust: "Rust" };
const JS_RUNTIMES = ["node", "deno", "bun"] as const;
const VARIANTS = ["all", "default", "encoded", "every", "every-plain"] as const;
const VARIANT_LABELS = {
  all: "all fields",
  default: "no managedFields",
  encoded: "no managedFields, short texts",
  every: "all fields, every member read",
  "every-plain": "all fields, every member read, plain objects",
};

/** All entrants: ours, the bare loops, then the peers. */
export function entrants(peers: Peers): Entrant[] {
  const list: Entrant[] = [];
  for (const runtime of JS_RUNTIMES) {
    for (const variant of VARIANTS) {
      list.push({
        id: `listwatch-${runtime}-${variant}`,
        label: `@listwatch/cache, ${RUNTIME_LABELS[runtime]}, ${VARIANT_LABELS[variant]}`,
        runtime,
        library: "listwatch",
        variant,
      });
    }
  }
  for (const runtime of JS_RUNTIMES) {
    const label = `bare loop, ${RUNTIME_LABELS[runtime]}`;
    list.push({ id: `bare-${runtime}`, label, runtime, library: "bare", variant: "" });
  }
  const peer = (
    library: "client-node" | "client-go" | "kube-rs",
    runtime: Entrant["runtime"],
    label: string,
  ) => list.push({ id: library, label, runtime, library, variant: "" });
  if (peers !== "none") peer("client-node", "node", "@kubernetes/client-node, Node");
  if (peers === "all") {
    peer("client-go", "go", "client-go, JSON, typed");
    peer("kube-rs", "rust", "kube-rs, typed");
  }
  return list;
}

/** The command that starts an entrant, without its task; `undefined` if its program was not built. */
export function commandOf(entrant: Entrant, tools: Tools, programs: Programs): string[] | undefined {
  const { library, runtime } = entrant;
  if (library === "client-go") return programs.clientGo === undefined ? undefined : [programs.clientGo];
  if (library === "kube-rs") return programs.kubeRs === undefined ? undefined : [programs.kubeRs];
  const name = library === "bare" ? "bare_loop" : library;
  const source = library === "client-node"
    ? join(ROOT, "benchmarks/peers/node/client_node.mjs")
    : runtime === "deno"
    ? join(ROOT, `benchmarks/contestants/${name}.ts`)
    : join(programs.bundles, `${name}.mjs`);
  if (runtime === "node") return [tools.node, "--expose-gc", source];
  if (runtime === "bun") return [tools.bun, "run", source];
  return [
    Deno.execPath(),
    "run",
    "-A",
    "--no-check",
    "--quiet",
    `--config=${join(ROOT, "deno.json")}`,
    "--v8-flags=--expose-gc",
    source,
  ];
}
