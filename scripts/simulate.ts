/**
 * Simulates worlds, seed by seed: `deno task simulate --seeds 2000 --from 1`.
 *
 * - `--seeds N`: how many; 2,000 by default.
 * - `--from S`: the first seed; 1 by default.
 * - `--only fault,fault`: these kinds of faults and no others; `--without fault,fault`: all but these.
 * - `--trace`: prints everything that happened in a failing world.
 * - `--fail-fast`: stops at the first failing seed.
 * - `--summary`: one line for each failing seed instead of its script.
 * - `--tree`: trees of caches in place of single informers; without `--only` and `--without`.
 * - `--shards`: shards and clusters that are served as one; the same.
 *
 * Prints `N passed, N failed`; the exit code is 1 if any failed.
 *
 * @module
 */

import { type Fault, FAULTS } from "../tests/simulation/scenario.ts";
import { describeFailure, simulateSeed } from "../tests/simulation/simulate.ts";
import { describeShardsFailure, simulateShards } from "../tests/simulation/shards/simulate_shards.ts";
import { describeTreeFailure, simulateTree } from "../tests/simulation/tree/simulate_tree.ts";

const SHOWN = 5;
const SWITCHES = ["--trace", "--fail-fast", "--summary", "--tree", "--shards"];

async function main(args: readonly string[]): Promise<number> {
  const options = parse(args);
  if (typeof options === "string") {
    console.error(options);
    return 2;
  }
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
}

function parse(args: readonly string[]): Options | string {
  let seeds = 2_000;
  let from = 1;
  let faults: readonly Fault[] = FAULTS;
  const flags = new Set<string>();
  for (let i = 0; i < args.length; i++) {
    const [name, inline] = args[i].split("=", 2);
    if (SWITCHES.includes(name)) {
      flags.add(name);
      continue;
    }
    const value = inline ?? args[++i];
    if (value === undefined) return `Cannot simulate: ${name} needs a value`;
    if (name === "--seeds" || name === "--from") {
      const number = Number(value);
      if (!Number.isInteger(number) || number < 0) {
        return `Cannot simulate: ${name} must be a whole number, not ${value}`;
      }
      if (name === "--seeds") seeds = number;
      else from = number;
    } else if (name === "--without" || name === "--only") {
      const named = value.split(",").filter((one) => one !== "");
      const unknown = named.find((one) => !FAULTS.includes(one as Fault));
      if (unknown !== undefined) {
        return `Cannot simulate: there is no fault ${unknown}; there are ${FAULTS.join(", ")}`;
      }
      faults = FAULTS.filter((fault) => named.includes(fault) === (name === "--only"));
    } else {
      return `Cannot simulate: ${name} is not known; there are --seeds, --from, --without, --only, ${
        SWITCHES.join(", ")
      }`;
    }
  }
  if (flags.has("--tree") && faults !== FAULTS) return "Cannot simulate: --tree has faults of its own";
  return {
    seeds,
    from,
    faults,
    trace: flags.has("--trace"),
    failFast: flags.has("--fail-fast"),
    summary: flags.has("--summary"),
    isTree: flags.has("--tree"),
    isShards: flags.has("--shards"),
  };
}

if (import.meta.main) Deno.exit(await main(Deno.args));
