/**
 * The longest turn of the event loop in what an informer does with all of its objects, on Node.
 *
 * @module
 */

import type { Tools } from "../../scripts/lib/tools.ts";
import type { Entrant } from "./contestants.ts";
import type { Measurement } from "./measurement.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { runJob, startServer } from "./rounds.ts";
import { digits, medianOf } from "./statistics.ts";
import { markdownTable } from "./table.ts";

/** The scenarios of contestants/tasks.ts, as the table names them. */
const SCENARIOS = {
  "first-list": "a first list, one handler",
  "events": "a first list and live events behind it, 3 handlers",
  "events-stalled": "the same, where the handlers stall, and a relist behind that",
  "resync": "a resync, 3 handlers",
  "transform": "a first list with a transform",
  "throwing": "a relist in which an index function throws once, 3 handlers and an observer",
  "late-handler": "a handler that joins late",
  "add-indexers-in-turns": "`addIndexersInTurns`",
  "add-indexers": "`addIndexers`, which is synchronous",
} as const;

const TIMEOUT_MS = 120_000;
const STORAGES = ["objects", "short texts"] as const;

function entrantOf(scenario: string, storage: string): Entrant {
  const id = `${scenario}/${storage}`;
  return { id, label: id, runtime: "node", library: "tasks", variant: id };
}

/** Measures it, and returns the tables as Markdown. */
export async function measureTasks(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const parts: string[] = [];
  const { only } = options;
  for (const objects of options.sizes) {
    const runs = Object.entries(SCENARIOS)
      .flatMap(([scenario, label]) => STORAGES.map((storage) => ({ scenario, label, storage })))
      .filter(({ scenario, storage }) =>
        only.length === 0 || only.some((word) => `${scenario}/${storage}`.includes(word))
      )
      .map((one) => ({ ...one, measurements: [] as Measurement[] }));
    for (let round = 1; round <= options.rounds; round++) {
      for (const { scenario, storage, measurements } of runs) {
        log(`round ${round} of ${options.rounds}: ${count(objects)} pods, ${scenario}/${storage}`);
        await using server = await startServer(tools, { ...options, objects }); // each finds it fresh
        const job = { entrant: entrantOf(scenario, storage), phases: ["sync"] } as const;
        const measured = await runJob(job, server, tools, programs, TIMEOUT_MS);
        if (measured.skipped) log(`  ${measured.skipped}`);
        measurements.push(measured);
      }
    }
    parts.push(
      `${count(objects)} pods, in ms:`,
      markdownTable(
        ["", "storage", "longest turn less pauses", "longest turn", "longest pause", "all of it"],
        runs.map(({ label, storage, measurements }) => [
          label,
          storage,
          ...([
            ({ longestOwnTaskMs }) => longestOwnTaskMs,
            ({ longestTaskMs }) => longestTaskMs,
            ({ longestPauseMs }) => longestPauseMs,
            ({ syncMs }) => syncMs,
          ] as ((run: Measurement) => number | undefined)[]).map((figure) => {
            const value = medianOf(measurements, figure);
            return value === undefined ? "-" : digits(value);
          }),
        ]),
      ),
    );
  }
  return parts.join("\n\n");
}
