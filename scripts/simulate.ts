/**
 * `deno task simulate`: simulates worlds, seed by seed; `--help` says more. Its exit code is 1 if any failed.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { simulateControllers } from "./lib/controller_worlds.ts";
import { type Fault, FAULTS } from "../tests/simulation/scenario.ts";
import { describeFailure, simulateSeed } from "../tests/simulation/simulate.ts";
import { describeShardsFailure, simulateShards } from "../tests/simulation/shards/simulate_shards.ts";
import { describeTreeFailure, simulateTree } from "../tests/simulation/tree/simulate_tree.ts";

const SHOWN = 5;
const USAGE = `Usage: deno task simulate [options]

Simulates worlds, one per seed, and prints "N passed, N failed".

  --seeds N               how many seeds (default: 2000)
  --from S                the first seed (default: 1)
  --only FAULT,FAULT      these kinds of faults and no others
  --without FAULT,FAULT   all kinds of faults but these
  --tree                  trees of caches in place of single informers; not with --only or --without
  --shards                shards and clusters that are served as one; not with --only or --without
  --controllers           the Widget controller of examples/, in a worker for each core; with --seeds, --from,
                          --summary and --fail-fast only
  --trace                 print everything that happened in a failing world
  --summary               print one line for each failing seed instead of its script
  --fail-fast             stop at the first failing seed
  --help                  show this text

Faults: ${FAULTS.join(", ")}
`;

async function main(args: readonly string[]): Promise<number> {
  let options: Options | undefined;
  try {
    options = parse(args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
  if (options === undefined) {
    console.log(USAGE);
    return 0;
  }
  if (options.isControllers) return await simulateWidgets(options);
  const { seeds, from, failFast, summary } = options;
  const startMs = performance.now();
  let passed = 0;
  let failed = 0;
  let requests = 0;
  for (let seed = from; seed < from + seeds; seed++) {
    const { result, describe } = await simulate(seed, options);
    requests += "requests" in result ? result.requests : 0;
    if (result.violations.length === 0) {
      passed++;
      continue;
    }
    failed++;
    if (summary) {
      const faults = "scenario" in result ? ` [${result.scenario.faults.join(" ")}]` : "";
      console.log(`seed ${seed}${faults}: ${result.violations[0]}`);
    } else if (failed <= SHOWN) console.log(`${describe()}\n`);
    if (failFast) break;
  }
  const seconds = (performance.now() - startMs) / 1_000;
  const count = passed + failed;
  console.log(
    `${count} seeds, ${requests} requests in ${seconds.toFixed(1)} s: ${Math.round(count / seconds)} seeds/s`,
  );
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

async function simulateWidgets({ seeds, from, failFast, summary }: Options): Promise<number> {
  const startMs = performance.now();
  const { worlds, writes, failures } = await simulateControllers({ from, count: seeds, failFast });
  const seconds = (performance.now() - startMs) / 1_000;
  for (const failure of failures.slice(0, summary ? Infinity : SHOWN)) {
    console.log(summary ? failure.slice(0, failure.indexOf("\n")) : `${failure}\n`);
  }
  console.log(
    `${worlds} worlds, ${writes} writes in ${seconds.toFixed(1)} s: ${Math.round(worlds / seconds)} worlds/s`,
  );
  console.log(`${worlds - failures.length} passed, ${failures.length} failed`);
  return failures.length > 0 ? 1 : 0;
}

async function simulate(seed: number, { faults, trace, isTree, isShards }: Options) {
  if (isShards) {
    const result = await simulateShards(seed, { trace });
    return { result, describe: () => describeShardsFailure(result) };
  }
  if (isTree) {
    const result = await simulateTree(seed, { trace });
    return { result, describe: () => describeTreeFailure(result) };
  }
  const result = await simulateSeed(seed, { faults, trace });
  const limited = faults !== FAULTS ? ` --only ${faults.join(",")}` : "";
  const command = `deno task simulate --seeds 1 --from ${seed}${limited} --trace`;
  return { result, describe: () => describeFailure(result, command) };
}

interface Options {
  readonly seeds: number;
  readonly from: number;
  readonly faults: readonly Fault[];
  readonly trace: boolean;
  readonly failFast: boolean;
  readonly summary: boolean;
  readonly isTree: boolean;
  readonly isShards: boolean;
  readonly isControllers: boolean;
}

/** The options of a command line; `undefined` if it asks for help. Throws if it makes no sense. */
function parse(args: readonly string[]): Options | undefined {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: "string", default: "2000" },
      from: { type: "string", default: "1" },
      only: { type: "string" },
      without: { type: "string" },
      tree: { type: "boolean", default: false },
      shards: { type: "boolean", default: false },
      controllers: { type: "boolean", default: false },
      trace: { type: "boolean", default: false },
      summary: { type: "boolean", default: false },
      "fail-fast": { type: "boolean", default: false },
      help: { type: "boolean" },
    },
  });
  if (values.help) return undefined;
  const { only, without, tree, shards, controllers, trace, summary } = values;
  const worlds = Object.entries({ tree, shards, controllers }).filter(([, isGiven]) => isGiven);
  if (worlds.length > 1) throw new Error(`--${worlds[0][0]} and --${worlds[1][0]}: give one of them`);
  if (worlds.length > 0 && (only ?? without) !== undefined) {
    throw new Error(`--${worlds[0][0]} has faults of its own: it takes no --only and no --without`);
  }
  if (controllers && trace) {
    throw new Error("--controllers prints the story of a failing world: leave out --trace");
  }
  const kept = only === undefined ? FAULTS : faultsOf("--only", only);
  const left = without === undefined ? [] : faultsOf("--without", without);
  return {
    seeds: wholeNumber("--seeds", values.seeds),
    from: wholeNumber("--from", values.from),
    faults: only === undefined && without === undefined
      ? FAULTS
      : FAULTS.filter((fault) => kept.includes(fault) && !left.includes(fault)),
    trace,
    failFast: values["fail-fast"],
    summary,
    isTree: tree,
    isShards: shards,
    isControllers: controllers,
  };
}

function wholeNumber(flag: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new Error(`${flag} must be a whole number, not ${text}`);
}

function faultsOf(flag: string, text: string): string[] {
  const named = text.split(",").filter((one) => one !== "");
  const unknown = named.find((one) => !FAULTS.includes(one as Fault));
  if (unknown === undefined) return named;
  throw new Error(`${flag}: there is no fault ${unknown}`);
}

if (import.meta.main) Deno.exit(await main(Deno.args));
