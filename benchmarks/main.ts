/**
 * `deno task bench`: how long this library and its peers take to sync, how many events they take
 * in, and how much memory they need; in one run on one machine, so that the ratios mean
 * something. `docs/benchmarks.md` explains how.
 *
 * @module
 */

import { resolve } from "node:path";
import { ROOT } from "../scripts/lib/gate.ts";
import { run } from "../scripts/lib/process.ts";
import { installTools, type Tools } from "../scripts/lib/tools.ts";
import { measureControllers } from "./controllers/measure.ts";
import { compareSize } from "./lib/comparison.ts";
import { type Entrant, entrants } from "./lib/contestants.ts";
import { measureGrowth } from "./lib/growth.ts";
import { measureLimit } from "./lib/limit.ts";
import { measureLists } from "./lib/list.ts";
import { type BenchOptions, readOptions, USAGE } from "./lib/options.ts";
import { measureMillion } from "./lib/million.ts";
import { measureProfile, profiledEntrants } from "./lib/profile.ts";
import { buildPrograms } from "./lib/programs.ts";
import { sizeReport } from "./lib/report.ts";
import { circumstances, heading, type Section, sourceState, writeSection } from "./lib/results_file.ts";
import { measureScreens } from "./lib/screens.ts";
import { measureStart } from "./lib/start.ts";
import { measureTasks } from "./lib/tasks.ts";
import { measureWarm } from "./lib/warm.ts";

/** Progress; the report alone goes to standard output. */
const log = (line: string) => console.error(line);

async function main(): Promise<void> {
  let options: BenchOptions;
  try {
    options = readOptions(Deno.args);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    Deno.exit(2);
  }
  if (options.isHelp) return console.log(USAGE);
  const tools = await installTools(log);
  const { mode } = options;
  const chosen =
    mode === "growth" || mode === "tasks" || mode === "list" || mode === "limit" || mode === "million" ||
      mode === "screens" ||
      mode === "warm" ||
      mode === "controllers"
      ? []
      : mode === "profile"
      ? profiledEntrants()
      : choose(options);
  const source = await sourceState();
  const command = ["deno task bench", ...Deno.args].join(" ");

  const publish = async (section: Section, versions: readonly string[], report: string) => {
    const text = `${await circumstances({ command, versions, source })}\n- Each figure is the median of ` +
      `${options.rounds} ${options.rounds === 1 ? "run" : "alternating runs"}\n\n${report}`;
    console.log(`\n${heading(section)}\n\n${text}`);
    if (options.out !== undefined) {
      await writeSection(resolve(ROOT, options.out), section, text);
      log(`\nwritten to ${options.out}`);
    } else log(`\nnot written to a file, because ${options.whyNotWritten} (--out FILE writes it)`);
  };

  if (mode === "start") {
    return await publish(mode, await runtimeVersions(tools), await measureStart(options, tools, log));
  }
  if (mode === "controllers") {
    const { report, versions } = await measureControllers(options, tools, log);
    const load = `Load average of the last 15 minutes, with the benchmark: ${Deno.loadavg()[2].toFixed(1)}`;
    return await publish(mode, versions, `${load}\n\n${report}`);
  }
  await using programs = await buildPrograms(tools, new Set(chosen.map(({ library }) => library)), log);
  if (mode !== "comparison") {
    const measured = {
      growth: measureGrowth,
      profile: measureProfile,
      tasks: measureTasks,
      list: measureLists,
      limit: measureLimit,
      million: measureMillion,
      screens: measureScreens,
      warm: measureWarm,
    }[mode];
    const report = await measured(options, tools, programs, log);
    return await publish(mode, ["Node 24 of tests/runtimes/package-lock.json"], report);
  }
  // Each size is published when it is complete: a run that is interrupted leaves what it finished.
  for (const objects of options.sizes) {
    const result = await compareSize(objects, { ...options, entrants: chosen, tools, programs, log });
    await publish(objects, result.versions, sizeReport(result));
  }
}

/** The versions of the runtimes, such as `Node 24.21.0`. */
async function runtimeVersions(tools: Tools): Promise<string[]> {
  const version = async (command: string) =>
    (await run(command, ["--version"])).stdout.trim().replace(/^v/, "");
  return [
    `Node ${await version(tools.node)}`,
    `Deno ${Deno.version.deno}`,
    `Bun ${await version(tools.bun)}`,
  ];
}

/** Who takes part. */
function choose({ only, peers }: BenchOptions): Entrant[] {
  const known = entrants(peers);
  const chosen = known.filter(({ id }) => only.length === 0 || only.some((word) => id.includes(word)));
  if (chosen.length > 0) return chosen;
  console.error(
    `No contestant's id contains ${only.join(" or ")}; the ids are ${known.map(({ id }) => id).join(", ")}`,
  );
  Deno.exit(2);
}

await main();
