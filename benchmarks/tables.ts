/**
 * `deno task tables`: measures every section of benchmarks/TABLES.md, one command after another, so that all
 * are of one commit, one machine and one run; then writes the pages that are made of them.
 *
 * @module
 */

import { ROOT } from "../scripts/lib/gate.ts";
import { run } from "../scripts/lib/process.ts";
import { taskOptions, usage } from "../scripts/lib/task_usage.ts";
import { sourceState } from "./lib/results_file.ts";
import { RESULTS_PATH } from "./lib/options.ts";

/** The task of each section and its arguments, in the order in which they run. */
export const COMMANDS: readonly (readonly [task: string, ...args: string[]])[] = [
  ["bench", "--sizes", "20k", "--peers", "all", "--rounds", "3"],
  ["bench:fanout", "--pods", "1000"],
  ["bench", "--growth", "--sizes", "1k,10k,100k", "--rounds", "3"],
  ["bench", "--screens"],
  ["bench", "--list", "--sizes", "20k", "--rounds", "1"],
  ["bench", "--limit"],
  ["bench", "--warm", "--sizes", "20k", "--rounds", "3"],
  ["bench", "--start", "--rounds", "5"],
  ["bench", "--controllers", "--sizes", "10k", "--rounds", "1", "--only", "node,controller-runtime,kube-rs"],
  ["bench", "--million"],
];

const USAGE = usage({
  task: "tables",
  does:
    "Measures every section of benchmarks/TABLES.md for half an hour, in which nothing else may run; then writes " +
    "README's figures and benchmarks/RESULTS.md.",
});

/** Runs a task; whether it ended well. */
async function runs([task, ...args]: readonly string[]): Promise<boolean> {
  const command = ["task", task, ...args];
  console.error(`\n== deno ${command.join(" ")}  (${new Date().toISOString()})`);
  const { success } = await new Deno.Command(Deno.execPath(), { args: command, cwd: ROOT }).spawn().status;
  if (!success) console.error(`deno ${command.join(" ")} failed: its section is of an earlier run`);
  return success;
}

async function main(): Promise<number> {
  taskOptions(USAGE, {});
  const { label } = await sourceState();
  const changes = (await run("git", ["status", "--porcelain"], { cwd: ROOT })).stdout.trim();
  if (changes !== "") {
    console.error(
      `There are changes to ${label}, which its tables would not name: commit them first.\n${changes}`,
    );
    return 1;
  }
  let failed = 0;
  for (const command of COMMANDS) if (!await runs([...command, "--out", RESULTS_PATH])) failed++;
  for (const command of [["size", "--update"], ["readme"]]) if (!await runs(command)) failed++;
  // Some lines are longer than they may be.
  const { success } = await new Deno.Command(Deno.execPath(), { args: ["fmt", "benchmarks"], cwd: ROOT })
    .output();
  return failed === 0 && success ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main());
