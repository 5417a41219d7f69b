/**
 * `deno task faults`: informers of several libraries behind the same fault and the same writer; what each
 * loses, and how long it takes to recover. `docs/faults.md` has the tables of a whole run.
 *
 * Exit code 1: something could not run. 2: an option makes no sense. 130: interrupted.
 *
 * @module
 */

import { newCluster } from "@listwatch/cache";
import { InMemoryApiServer, type ServerFetch } from "@listwatch/cache/testing";
import { type Client, type Entrant, ENTRANTS } from "./faults/clients.ts";
import { type Fault, FAULTS } from "./faults/faults.ts";
import { NAMESPACE } from "./faults/history.ts";
import { type FaultResult, faultSection, PAGE, page } from "./faults/page.ts";
import { type FaultyServer, merged, type Outcome, runFault } from "./faults/world.ts";
import { startCluster } from "./lib/cluster.ts";
import { optionsOf, runClusterTask, UsageError } from "./lib/cluster_task.ts";
import { run } from "./lib/process.ts";
import { usage } from "./lib/task_usage.ts";
import { circumstances, sourceState } from "../benchmarks/lib/results_file.ts";

const USAGE = usage({
  task: "faults",
  does: `What informers of several libraries lose behind the same faults, and how long they take to recover.

Faults: ${FAULTS.map(({ name }) => name).join(", ")}
Clients: ${ENTRANTS.map(({ id }) => id).join(", ")}`,
  options: {
    "--only NAMES": "only these faults and clients, separated by commas",
    "--all": `also clients that take minutes to build: ${slow().join(", ")}`,
    "--cluster": "in front of a real kube-apiserver (needs Go) instead of the API server in memory",
    "--rounds N": "how often (default: 1); the tables have medians, and the worst",
    "--seed N": "what is written in the first round (default: 1)",
    "--update": "write docs/faults.md",
  },
});

function slow(): string[] {
  return ENTRANTS.filter(({ isSlowToBuild }) => isSlowToBuild).map(({ id }) => id);
}

/** Faults in which clients have longer than this to recover do not hold up the others. */
const LONG_MS = 300_000;

/** Progress; the tables alone go to standard output. */
const log = (line: string) => console.error(line);

async function main(args: string[], signal: AbortSignal): Promise<number> {
  const options = optionsOf(args, {
    only: { type: "string" },
    all: { type: "boolean", default: false },
    cluster: { type: "boolean", default: false },
    rounds: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
    update: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  });
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  const [seed, rounds] = [wholeNumber("--seed", options.seed), wholeNumber("--rounds", options.rounds)];
  const { faults, entrants } = choose(options.only, options.all);
  if (options.update && (faults.length < FAULTS.length || entrants.length < ENTRANTS.length)) {
    throw new UsageError("--update needs all faults and all clients: give it with --all and without --only");
  }
  const source = await sourceState();
  const folder = await Deno.makeTempDir({ prefix: "listwatch-faults-" });
  try {
    const { clients, missing } = await prepare(entrants, folder);
    if (clients.length === 0) return 1;
    const results: FaultResult[] = [];
    const versions = new Map<string, string>();
    let isWhole = missing.length === 0;
    const runRound = (fault: Fault, round: number) =>
      runBehind(options.cluster, fault, clients, seed + round, signal);
    // Long faults mostly wait, beside the others.
    const long = new Map(
      faults.filter(({ limitMs }) => faults.length > 1 && limitMs > LONG_MS).map((fault) => {
        log(`${fault.name}: ${fault.title}, beside the others ...`);
        const rounded = Promise.all(Array.from({ length: rounds }, (_, round) => runRound(fault, round)));
        rounded.catch(() => {});
        return [fault, rounded];
      }),
    );
    const byFault = new Map<Fault, readonly (readonly Outcome[])[]>();
    for (const fault of faults.filter((fault) => !long.has(fault))) {
      log(`${fault.name}: ${fault.title} ...`);
      const rounded: Outcome[][] = [];
      for (let round = 0; round < rounds; round++) rounded.push(await runRound(fault, round));
      byFault.set(fault, rounded);
    }
    for (const fault of faults) {
      const rounded = byFault.get(fault) ?? await long.get(fault)!;
      for (const { client, version, ended } of rounded.flat()) {
        if (version !== "") versions.set(client, version);
        if (ended === undefined) continue;
        isWhole = false;
        log(`${client} ended during ${fault.name}: ${ended}`);
      }
      results.push({ fault, outcomes: merged(rounded) });
      console.log(`${faultSection(fault, results.at(-1)!.outcomes)}\n`);
    }
    if (options.update && isWhole) {
      const text = await circumstances({
        command: ["deno task faults", ...args].join(" "),
        versions: [...versions].map(([client, version]) => `${client} ${version}`),
        source,
      });
      await Deno.writeTextFile(PAGE, page(text, results));
      await run(Deno.execPath(), ["fmt", "--quiet", PAGE]);
      log(`written to ${PAGE}`);
    }
    return isWhole ? 0 : 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function wholeNumber(option: string, text: string): number {
  const number = Number(text);
  if (Number.isInteger(number) && number > 0) return number;
  throw new UsageError(`${option} must be a whole number above 0, not ${text}`);
}

/** What `--only` names; the rest where it names no fault, or no client. */
function choose(only: string | undefined, all: boolean): {
  readonly faults: readonly Fault[];
  readonly entrants: readonly Entrant[];
} {
  const names = only?.split(",") ?? [];
  for (const name of names) {
    if (FAULTS.some((fault) => fault.name === name) || ENTRANTS.some(({ id }) => id === name)) continue;
    throw new UsageError(`--only names ${name}, which is no fault and no client`);
  }
  const faults = FAULTS.filter(({ name }) => names.includes(name));
  const entrants = ENTRANTS.filter(({ id }) => names.includes(id));
  return {
    faults: faults.length > 0 ? faults : FAULTS,
    entrants: entrants.length > 0
      ? entrants
      : ENTRANTS.filter(({ isSlowToBuild = false }) => all || !isSlowToBuild),
  };
}

async function prepare(entrants: readonly Entrant[], folder: string): Promise<{
  readonly clients: readonly Client[];
  readonly missing: readonly string[];
}> {
  const clients: Client[] = [];
  const missing: string[] = [];
  for (const { id, name, prepare } of entrants) {
    try {
      clients.push({ name, ...await prepare(folder, log) });
    } catch (error) {
      missing.push(id);
      log(`without ${id}: ${error instanceof Error ? error.message : error}`);
    }
  }
  return { clients, missing };
}

/** Runs a fault in front of a new API server. */
async function runBehind(
  isReal: boolean,
  fault: Fault,
  clients: readonly Client[],
  seed: number,
  signal: AbortSignal,
): Promise<Outcome[]> {
  if (!isReal) {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    return await runFault(fault, clients, { server: { fetch: server.fetch, cluster }, seed, signal });
  }
  await using real = await startCluster({ log, signal });
  using client = Deno.createHttpClient({ caCerts: [real.caData] });
  const forward = (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.set("Authorization", `Bearer ${real.token}`);
    // The gate looks at frames.
    headers.delete("Accept-Encoding");
    headers.delete("Host");
    const { method, body, signal } = request;
    return fetch(`${real.server}${pathname}${search}`, { method, headers, body, signal, client });
  };
  const fetchReal =
    ((input, init) =>
      forward(input instanceof Request ? input : new Request(input, init as RequestInit))) as ServerFetch;
  const server: FaultyServer = {
    fetch: fetchReal,
    cluster: newCluster({ server: "http://forwarded", fetch: fetchReal }),
  };
  await server.cluster.resource("v1/namespaces").create({ metadata: { name: NAMESPACE } });
  return await runFault(fault, clients, { server, seed, signal });
}

if (import.meta.main) await runClusterTask(main, USAGE);
