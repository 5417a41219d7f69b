/**
 * Where the time goes, of ours and of those it is compared with on
 * Node: what no cache can do without, and the rest.
 *
 * @module
 */

import type { Tools } from "../../scripts/lib/tools.ts";
import { type Entrant, entrants } from "./contestants.ts";
import type { Measurement, TimeSpent } from "./measurement.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { runJob, startServer } from "./rounds.ts";
import { digits, medianOf } from "./statistics.ts";
import { markdownTable } from "./table.ts";

const IDS = ["listwatch-node-all", "listwatch-node-default", "bare-node", "client-node"];

/** Who is looked at. */
export function profiledEntrants(): Entrant[] {
  return entrants("node").filter(({ id }) => IDS.includes(id));
}

type Spent = "syncTime" | "burstTime";

const COLUMNS: readonly [title: string, part: (spent: TimeSpent) => number][] = [
  ["all", ({ wallMs }) => wallMs],
  ["JSON.parse", ({ parseMs }) => parseMs],
  ["collector", ({ pausesMs }) => pausesMs],
  ["waiting", ({ idleMs }) => idleMs],
  ["the rest", ({ wallMs, parseMs, pausesMs, idleMs }) => wallMs - parseMs - pausesMs - idleMs],
];

/** Measures it, and returns the tables as Markdown. */
export async function measureProfile(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const parts: string[] = [];
  for (const objects of options.sizes) {
    await using server = await startServer(tools, { ...options, objects });
    const runs = profiledEntrants().map((entrant) => ({ entrant, measurements: [] as Measurement[] }));
    for (let round = 1; round <= options.rounds; round++) {
      for (const { entrant, measurements } of runs) {
        log(`round ${round} of ${options.rounds}: ${count(objects)} pods, ${entrant.id}`);
        const job = { entrant, phases: ["sync", "burst", "profile"] } as const;
        const measured = await runJob(job, server, tools, programs);
        if (measured.skipped) log(`  ${measured.skipped}`);
        measurements.push(measured);
      }
    }
    const table = (spent: Spent, per: number) =>
      markdownTable(
        ["", ...COLUMNS.map(([title]) => title)],
        runs.map(({ entrant, measurements }) => [
          entrant.label,
          ...COLUMNS.map(([, part]) => {
            const value = medianOf(measurements, (run) => run[spent] && part(run[spent]));
            return value === undefined ? "-" : digits(value * 1000 / per);
          }),
        ]),
      );
    parts.push(
      `${count(objects)} pods, until all handlers were notified, in us per pod:`,
      table("syncTime", objects),
      `${count(options.events)} events over them, in us per event:`,
      table("burstTime", options.events),
    );
  }
  return parts.join("\n\n");
}
