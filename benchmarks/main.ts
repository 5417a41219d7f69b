/**
 * `deno task bench`: how long this library and its peers take to sync, how many events they take in, and how much
 * memory they need; in one run on one machine, so that the ratios mean something. `docs/benchmarks.md` tells how.
 *
 * @module
 */

import { resolve } from "node:path";
import { ROOT } from "../scripts/lib/gate.ts";
import { installTools, type Tools } from "../scripts/lib/tools.ts";
import { type Entrant, entrants } from "./lib/contestants.ts";
import { measureGrowth } from "./lib/growth.ts";
import type { Measurement } from "./lib/measurement.ts";
import { type BenchOptions, readOptions, USAGE } from "./lib/options.ts";
import { buildPrograms, type Programs } from "./lib/programs.ts";
import { count, sizeReport, type SizeResult } from "./lib/report.ts";
import { circumstances, type Section, writeSection } from "./lib/results_file.ts";
import { type BenchServer, runJob, startServer } from "./lib/rounds.ts";
import { digits, eventsPerSecond, heapPerObject } from "./lib/statistics.ts";

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
  const chosen = options.isGrowth ? [] : choose(options);
  await using programs = await buildPrograms(tools, new Set(chosen.map(({ library }) => library)), log);
  const command = ["deno task bench", ...Deno.args].join(" ");
  const versions = new Set<string>();
  const report = options.isGrowth
    ? await measureGrowth(options, tools, programs, log)
    : await compare(options, chosen, tools, programs, versions);
  if (options.isGrowth) versions.add("Node 24 of tests/runtimes/package-lock.json");
  const text =
    `${await circumstances(command, [...versions])}\n- Each figure is the median of ${options.rounds} ` +
    `${options.rounds === 1 ? "run" : "alternating runs"}\n\n${report}`;
  console.log(`\n${text}`);
  const section: Section = options.isGrowth ? "growth" : "comparison";
  if (options.out !== undefined) {
    await writeSection(resolve(ROOT, options.out), section, text);
    log(`\nwritten to ${options.out}`);
  } else log(`\nnot written to a file, because ${options.whyNotWritten} (--out FILE writes it)`);
}

/** Who takes part. */
function choose({ only, peers }: BenchOptions): Entrant[] {
  const known = entrants(peers);
  const chosen = known.filter(({ id }) => only.length === 0 || only.some((word) => id.includes(word)));
  if (chosen.length > 0) return chosen;
  console.error(
    `Nobody's id contains ${only.join(" or ")}; there are ${known.map(({ id }) => id).join(", ")}`,
  );
  Deno.exit(2);
}

async function compare(
  options: BenchOptions,
  chosen: readonly Entrant[],
  tools: Tools,
  programs: Programs,
  versions: Set<string>,
): Promise<string> {
  const reports: string[] = [];
  for (const objects of options.sizes) {
    log(`\n${count(objects)} pods: encoding ...`);
    await using server = await startServer(tools, { ...options, objects });
    const runs = chosen.map((entrant) => ({ entrant, measurements: [] as Measurement[] }));
    for (let round = 1; round <= options.rounds; round++) {
      for (const { entrant, measurements } of runs) {
        const measured = await measureOnce(entrant, server, tools, programs);
        measurements.push(measured);
        if (measured.version) versions.add(versionOf(entrant.library, measured.version));
        log(`${round}/${options.rounds} ${entrant.id.padEnd(24)} ${line(measured)}`);
      }
    }
    const result: SizeResult = { objects, events: options.events, listBytes: server.listBytes, runs };
    reports.push(sizeReport(result));
  }
  return reports.join("\n\n");
}

/**
 * Two processes: one is timed as it comes, in the other collections are forced to weigh what is kept. A runtime that was
 * made to collect sizes its heap differently afterwards.
 */
async function measureOnce(
  entrant: Entrant,
  server: BenchServer,
  tools: Tools,
  programs: Programs,
): Promise<Measurement> {
  const timed = await runJob({ entrant, phases: ["sync", "burst"] }, server, tools, programs);
  if (timed.skipped || entrant.library === "kube-rs") return timed;
  const phases = entrant.library === "bare"
    ? ["sync", "heap"] as const
    : ["sync", "heap", "index", "relist"] as const;
  const weighed = await runJob({ entrant, phases }, server, tools, programs);
  return {
    ...timed,
    settledBytes: weighed.settledBytes,
    nodeLookupsPerUs: weighed.nodeLookupsPerUs,
    namespaceLookupsPerUs: weighed.namespaceLookupsPerUs,
    relistUpdates: weighed.relistUpdates,
    relistPeakBytes: weighed.relistPeakBytes,
    relistKeepsIdentity: weighed.relistKeepsIdentity,
    ...(weighed.skipped && { skipped: weighed.skipped }),
  };
}

function versionOf(library: string, version: string): string {
  return library === "listwatch" || library === "bare" ? version : `${library} ${version}`;
}

/** One run, in a line. */
function line(measured: Measurement): string {
  if (measured.skipped) return `skipped: ${measured.skipped}`;
  const part = (value: number | undefined, unit: number, name: string) =>
    value === undefined ? "" : `${digits(value / unit)} ${name}`;
  return [
    part(measured.syncMs, 1000, "s to sync"),
    part(eventsPerSecond(measured), 1, "events/s"),
    part(measured.syncRssBytes, 1e6, "MB peak"),
    part(heapPerObject(measured), 1000, "KB/object"),
    part(measured.nodeLookupsPerUs, 1, "objects/us"),
  ].filter((text) => text !== "").join(", ");
}

await main();
