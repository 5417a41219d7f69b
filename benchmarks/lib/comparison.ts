/**
 * All contestants with one number of objects: the rounds, and their results.
 *
 * @module
 */

import type { Tools } from "../../scripts/lib/tools.ts";
import { commandOf, type Entrant } from "./contestants.ts";
import type { Measurement, Phase } from "./measurement.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count, type SizeResult } from "./report.ts";
import { type BenchServer, runJob, startServer } from "./rounds.ts";
import { digits, eventsPerSecond, heapPerObject } from "./statistics.ts";

/** What the rounds with one number of objects came to. */
export interface Comparison extends SizeResult {
  /** The versions of the runtimes and peers that took part. */
  readonly versions: readonly string[];
}

/** The options of a comparison. */
export interface ComparisonOptions extends Pick<BenchOptions, "rounds" | "events" | "framing" | "drop"> {
  readonly entrants: readonly Entrant[];
  readonly tools: Tools;
  readonly programs: Programs;
  /** Progress. */
  readonly log: (line: string) => void;
}

/** Runs every contestant in every round, with so many objects. */
export async function compareSize(objects: number, options: ComparisonOptions): Promise<Comparison> {
  const { rounds, events, entrants, tools, programs, log } = options;
  const ready = entrants.filter((entrant) => commandOf(entrant, tools, programs) !== undefined);
  const processes = rounds * ready.reduce((sum, { library }) => sum + jobsOf(library).length, 0);
  log(`\n${count(objects)} pods: ${processes} processes in ${rounds} rounds; encoding what is sent ...`);
  await using server = await startServer(tools, { ...options, objects });
  const versions = new Set<string>();
  const runs = entrants.map((entrant) => ({ entrant, measurements: [] as Measurement[] }));
  const startMs = performance.now();
  for (let round = 1; round <= rounds; round++) {
    const roundMs = performance.now();
    for (const { entrant, measurements } of runs) {
      const { measured, seconds } = await measureOnce(entrant, server, tools, programs);
      measurements.push(measured);
      if (measured.version) versions.add(versionOf(entrant.library, measured.version));
      const walls = seconds.map((wall) => `${digits(wall)} s`).join(" + ");
      log(`${round}/${rounds} ${entrant.id.padEnd(24)} ${line(measured)} (${walls})`);
    }
    const now = performance.now();
    const left = (now - startMs) / round * (rounds - round);
    log(
      `round ${round} of ${rounds} took ${minutes(now - roundMs)}` +
        (left > 0 ? `; ${minutes(left)} to go with ${count(objects)} pods` : ""),
    );
  }
  return { objects, events, listBytes: server.listBytes, runs, versions: [...versions] };
}

/**
 * Two processes: one is timed as it comes, in the other collections are forced to weigh what is kept. A
 * runtime that was made to collect sizes its heap differently afterwards.
 */
export function jobsOf(library: Entrant["library"]): readonly (readonly Phase[])[] {
  const timed: Phase[] = ["sync", "burst"];
  if (library === "kube-rs") return [timed];
  if (library === "bare") return [timed, ["sync", "heap"]];
  return [timed, ["sync", "heap", "index", "relist"]];
}

/** A measurement out of all processes of an entrant's turn, and how long each of them took. */
async function measureOnce(
  entrant: Entrant,
  server: BenchServer,
  tools: Tools,
  programs: Programs,
): Promise<{ measured: Measurement; seconds: number[] }> {
  const seconds: number[] = [];
  const run = async (phases: readonly Phase[]) => {
    const startMs = performance.now();
    const measured = await runJob({ entrant, phases }, server, tools, programs);
    seconds.push((performance.now() - startMs) / 1000);
    return measured;
  };
  const [first, second] = jobsOf(entrant.library);
  const timed = await run(first);
  if (timed.skipped || second === undefined) return { measured: timed, seconds };
  const weighed = await run(second);
  const measured = {
    ...timed,
    settledBytes: weighed.settledBytes,
    nodeLookupsPerUs: weighed.nodeLookupsPerUs,
    namespaceLookupsPerUs: weighed.namespaceLookupsPerUs,
    relistUpdates: weighed.relistUpdates,
    relistPeakBytes: weighed.relistPeakBytes,
    relistSamples: weighed.relistSamples,
    relistKeepsIdentity: weighed.relistKeepsIdentity,
    ...(weighed.skipped && { skipped: weighed.skipped }),
  };
  return { measured, seconds };
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

function minutes(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
