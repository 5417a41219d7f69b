/**
 * The command line of `deno task bench`.
 *
 * @module
 */

import { parseArgs } from "node:util";

/** Who takes part besides ours and the bare loops. */
export type Peers = "none" | "node" | "all";

/** The options of a run. */
export interface BenchOptions {
  readonly isHelp: boolean;
  /** Numbers of objects. */
  readonly sizes: readonly number[];
  readonly rounds: number;
  readonly peers: Peers;
  /** Words, one of which an entrant's id must contain; none for all. */
  readonly only: readonly string[];
  readonly events: number;
  readonly framing: "event" | "block";
  /** Whether the server leaves out managedFields where a client does not want them. */
  readonly drop: boolean;
  /** What is measured. */
  readonly mode:
    | "comparison"
    | "growth"
    | "profile"
    | "tasks"
    | "list"
    | "limit"
    | "million"
    | "screens"
    | "warm"
    | "start"
    | "controllers";
  /** Where the report goes; `undefined` for nowhere but standard output. */
  readonly out: string | undefined;
  /** Why the report is not written though nothing was said about it. */
  readonly whyNotWritten?: string;
}

/** Text for `--help`. */
export const USAGE = `Usage: deno task bench [options]

Time, events and memory beside @kubernetes/client-node and a bare loop.

  --sizes 1k,20k,100k   how many pods are listed
  --rounds 5            runs of each contestant; each figure is the median (15 with --start, three with --controllers)
  --peers node          none, node (@kubernetes/client-node), or all (client-go and kube-rs too: needs Go and Rust)
  --only TEXT,TEXT      only contestants whose id contains one of these, such as listwatch-node or bare
  --events 50000        how many MODIFIED events follow
  --framing event       each event is a chunk of the HTTP body (event) or they are packed into blocks (block)
  --drop                the server leaves out managedFields where a client does not want them, as Kubernetes 1.38 can
  --growth              instead: cost per object against objects, handlers and indices, of ours on Node
  --tasks               instead: the longest turn of the event loop, of ours on Node, in what concerns all objects
  --list                instead: lists of a served cache on Node, kept or not (needs Go)
  --limit               instead: caches with a heap of 200 MB on Node, with 1,000 events/s behind the list
  --million             instead: a million varied pods as short texts in one process on Node, and pages of them
  --screens             instead: pages, windows and the page in Chromium, of \`serve\` on Node, with 1,000 events/s
  --warm                instead: starts with a snapshot in a file or in SQLite beside a list, on Node
  --profile             instead: where the time is spent on Node, of ours, the bare loop and client-node
  --controllers         instead: the same controller on ours, controller-runtime and kube-rs (needs Go and Rust)
  --start               instead: what an import of each entry adds to the start of a program
  --out FILE            where the report goes. Default: benchmarks/TABLES.md for a run with five rounds or more in
                        which no contestant is left out, and nowhere for less, --profile and --tasks
  --help                show this text
`;

/** Where the report goes by default. */
export const RESULTS_PATH = "benchmarks/TABLES.md";

const DEFAULT_SIZES = {
  comparison: "1k,20k,100k",
  growth: "1k,10k,100k,300k",
  profile: "20k",
  tasks: "100k",
  list: "20k",
  limit: "100k",
  million: "1m",
  screens: "100k",
  warm: "20k,100k",
  controllers: "10k",
  start: "1",
};

/** Fewer make a figure that is not worth a place in the results. */
const LEAST_ROUNDS = {
  comparison: 5,
  growth: 5,
  profile: 5,
  tasks: 5,
  list: 5,
  limit: 1,
  million: 1,
  screens: 1,
  warm: 5,
  controllers: 3,
  start: 15,
};

/**
 * Reads the arguments.
 *
 * @throws {TypeError} An argument is unknown or has a value that it cannot have.
 */
export function readOptions(args: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      sizes: { type: "string" },
      rounds: { type: "string" },
      peers: { type: "string" },
      only: { type: "string" },
      events: { type: "string", default: "50000" },
      framing: { type: "string", default: "event" },
      drop: { type: "boolean", default: false },
      growth: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      tasks: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      limit: { type: "boolean", default: false },
      million: { type: "boolean", default: false },
      screens: { type: "boolean", default: false },
      warm: { type: "boolean", default: false },
      controllers: { type: "boolean", default: false },
      start: { type: "boolean", default: false },
      out: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  const modes = ([
    "growth",
    "profile",
    "tasks",
    "list",
    "limit",
    "million",
    "screens",
    "warm",
    "controllers",
    "start",
  ] as const)
    .filter((mode) => values[mode]);
  if (modes.length > 1) throw new TypeError(`--${modes.join(" and --")}: give one of them`);
  const [mode = "comparison"] = modes;
  if (values.drop && mode !== "comparison") throw new TypeError(`--${mode} and --drop: give one of them`);
  const sizes = (values.sizes ?? DEFAULT_SIZES[mode]).split(",").map(readSize);
  const leastRounds = LEAST_ROUNDS[mode];
  const rounds = values.rounds === undefined ? leastRounds : readCount("rounds", values.rounds);
  const only = values.only?.split(",").filter((word) => word !== "") ?? [];
  const peers = values.peers ?? (mode === "controllers" ? "all" : "node");
  const why = mode === "profile" || mode === "tasks"
    ? `--${mode} is for who works on the library`
    : rounds < leastRounds
    ? `of fewer than ${{ 3: "three", 5: "five" }[leastRounds] ?? leastRounds} rounds`
    : only.length > 0
    ? "of --only"
    : values.drop
    ? "of --drop"
    : peers === "none" && (mode === "comparison" || mode === "controllers")
    ? "of --peers none"
    : mode === "controllers" && sizes.join() !== "10000"
    ? "of --sizes other than 10k"
    : undefined;
  return {
    isHelp: values.help,
    sizes,
    rounds,
    peers: oneOf("peers", peers, ["none", "node", "all"]),
    only,
    events: readCount("events", values.events),
    framing: oneOf("framing", values.framing, ["event", "block"]),
    drop: values.drop,
    mode,
    out: values.out ?? (why === undefined ? RESULTS_PATH : undefined),
    ...(values.out === undefined && why !== undefined && { whyNotWritten: why }),
  };
}

function readSize(text: string): number {
  const match = /^(\d+)([km]?)$/.exec(text.trim());
  const size = match === null ? 0 : Number(match[1]) * { "": 1, k: 1_000, m: 1_000_000 }[match[2]]!;
  if (size < 1) {
    throw new TypeError(`--sizes ${text}: give numbers such as 500 or 20k, with commas between them`);
  }
  return size;
}

function readCount(name: string, text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) {
    throw new TypeError(`--${name} ${text}: give a number of 1 or more`);
  }
  return count;
}

function oneOf<T extends string>(name: string, value: string, known: readonly T[]): T {
  const found = known.find((one) => one === value);
  if (found === undefined) throw new TypeError(`--${name} ${value}: there are ${known.join(", ")}`);
  return found;
}
