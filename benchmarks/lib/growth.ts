/**
 * Whether the cost per object stays flat: against the number of objects, of handlers and of indices.
 *
 * @module
 */

import type { Tools } from "../../scripts/lib/tools.ts";
import { entrants } from "./contestants.ts";
import type { Measurement } from "./measurement.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { runJob, startServer } from "./rounds.ts";
import { digits, heapPerObject, medianOf, type Metric } from "./statistics.ts";
import { markdownTable } from "./table.ts";

interface Point {
  readonly objects: number;
  readonly handlers: number;
  readonly indices: number;
}

const FEW = 20_000;
const HANDLERS = [1, 10, 100];
const INDICES = [1, 5, 20];

/** The points to measure, by their number of objects, so that each needs its server once. */
export function growthPoints(sizes: readonly number[]): Point[] {
  const points = sizes.map((objects) => ({ objects, handlers: 1, indices: 2 }));
  for (const handlers of HANDLERS) points.push({ objects: FEW, handlers, indices: 2 });
  for (const indices of INDICES) points.push({ objects: FEW, handlers: 1, indices });
  return points;
}

const COLUMNS: [title: string, metric: Metric, unit: number][] = [
  ["sync, us/object", ({ syncMs, stored }) => syncMs && stored && syncMs * 1000 / stored, 1],
  ["us/event", ({ burstMs, burstEvents }) => burstMs && burstEvents && burstMs * 1000 / burstEvents, 1],
  ["heap/object, KB", heapPerObject, 1000],
  ["peak RSS, MB", (run) => run.syncRssBytes, 1e6],
  ["by node, objects/us", (run) => run.nodeLookupsPerUs, 1],
  ["longest task, ms", (run) => run.longestTaskMs, 1],
];

/** Measures the growth of ours on Node, and returns the tables as Markdown. */
export async function measureGrowth(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const entrant = entrants("none").find(({ id }) => id === "listwatch-node-default")!;
  const points = growthPoints(options.sizes);
  const results = new Map<Point, Measurement[]>(points.map((point) => [point, []]));
  for (const objects of new Set(points.map((point) => point.objects))) {
    await using server = await startServer(tools, { ...options, objects });
    for (let round = 1; round <= options.rounds; round++) {
      for (const point of points.filter((point) => point.objects === objects)) {
        const { handlers, indices } = point;
        const name = `${count(objects)} objects, ${handlers} handlers, ${indices} indices`;
        log(`round ${round} of ${options.rounds}: ${name}`);
        const timed = await runJob(
          { entrant, phases: ["sync", "burst"], handlers, indices },
          server,
          tools,
          programs,
        );
        const phases = indices > 1 ? ["sync", "heap", "index"] as const : ["sync", "heap"] as const;
        const weighed = await runJob({ entrant, phases, handlers, indices }, server, tools, programs);
        if (timed.skipped) log(`  ${timed.skipped}`);
        results.get(point)!.push({
          ...timed,
          settledBytes: weighed.settledBytes,
          nodeLookupsPerUs: weighed.nodeLookupsPerUs,
        });
      }
    }
  }
  const table = (title: string, from: number, to: number, name: (point: Point) => number) =>
    markdownTable(
      [title, ...COLUMNS.map(([title]) => title)],
      points.slice(from, to).map((point) => [
        count(name(point)),
        ...COLUMNS.map(([, metric, unit]) => {
          const value = medianOf(results.get(point)!, metric);
          return value === undefined ? "-" : digits(value / unit);
        }),
      ]),
    );
  const first = options.sizes.length;
  const second = first + HANDLERS.length;
  return [
    `${entrant.label}; ${count(options.events)} events.`,
    table("objects (1 handler, 2 indices)", 0, first, ({ objects }) => objects),
    table(`handlers (${count(FEW)} objects, 2 indices)`, first, second, ({ handlers }) => handlers),
    table(`indices (${count(FEW)} objects, 1 handler)`, second, points.length, ({ indices }) => indices),
  ].join("\n\n");
}
