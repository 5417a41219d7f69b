/**
 * The tables of `deno task bench --controllers`.
 *
 * @module
 */

import { count } from "../lib/report.ts";
import { digits, median } from "../lib/statistics.ts";
import { markdownTable } from "../lib/table.ts";
import type { Requests } from "./audit.ts";

/** One process of a contestant. */
export interface RunFigures {
  /** The time from the start of the process until every Widget was reconciled once. */
  readonly reconciledMs: number;
  /** When it had nothing more to do. */
  readonly rssBytes: number;
  readonly peakRssBytes: number;
  readonly cpuMs: number;
  readonly requests: Requests;
}

/** All that was measured of one contestant. */
export interface ControllerFigures {
  readonly label: string;
  readonly isOurs: boolean;
  /** The runs with new Widgets. */
  readonly work: RunFigures[];
  /** The runs with Widgets that were reconciled before. */
  readonly starts: RunFigures[];
}

/** What a table of requests has a column for, and whatever else was written is in the last one. */
const KINDS = ["widgets", "configmaps", "widgets/status", "events"] as const;

/** The tables for one number of Widgets. */
export function controllersReport(widgets: number, results: readonly ControllerFigures[]): string {
  const first = results.find(({ isOurs }) => isOurs);
  const startTable = compared(results, first, ({ starts }) => starts, {
    "start, s": { of: ({ reconciledMs }) => reconciledMs / 1_000, hasRatio: true },
    "reads sent": { of: ({ requests }) => requests.reads },
    "writes sent": { of: ({ requests }) => requests.writes },
    "CPU, s": { of: ({ cpuMs }) => cpuMs / 1_000 },
    "RSS, MB": { of: ({ rssBytes }) => rssBytes / 1e6 },
    "peak RSS, MB": { of: ({ peakRssBytes }) => peakRssBytes / 1e6 },
  });
  const workTable = compared(results, first, ({ work }) => work, {
    "Widgets/s": { of: (run) => perSecond(run, widgets), hasRatio: true },
    "CPU, ms per Widget": { of: ({ cpuMs }) => cpuMs / widgets },
    "requests per Widget": {
      of: ({ requests }) => (requests.reads + requests.writes) / widgets,
      hasRatio: true,
    },
    "answered with an error": { of: ({ requests }) => sum(Object.values(requests.failed)) },
    "RSS, MB": { of: ({ rssBytes }) => rssBytes / 1e6 },
    "peak RSS, MB": { of: ({ peakRssBytes }) => peakRssBytes / 1e6 },
  });
  const requestTable = markdownTable(
    ["writes per Widget", ...KINDS, "others", "all"],
    results.map(({ label, work }) => {
      const of = (counts: (kind: string) => boolean) =>
        median(work.map(({ requests }) =>
          sum(
            Object.entries(requests.byKind).filter(([kind]) => counts(kind)).map(([, number]) => number),
          )
        ))! / widgets;
      const isWrite = (kind: string) => !/ (?:get|list|watch)$/.test(kind);
      const resourceOf = (kind: string) => kind.split(" ")[0];
      const cells = KINDS.map((resource) => {
        const isOne = (kind: string) => isWrite(kind) && resourceOf(kind) === resource;
        const verbs = new Set(
          work.flatMap(({ requests }) =>
            Object.keys(requests.byKind).filter(isOne).map((kind) => kind.split(" ")[1])
          ),
        );
        return [`${digits(of(isOne))}`, [...verbs].sort().join(", ")].filter(Boolean).join(" ");
      });
      const others = of((kind) => isWrite(kind) && !KINDS.some((resource) => resource === resourceOf(kind)));
      return [label, ...cells, digits(others), digits(of(isWrite))];
    }),
  );
  const unfinished = results.filter(({ work }) => work.some(({ requests }) => requests.withStatus < widgets))
    .map(({ label }) => `\n\n${label} did not give every Widget a status: its figures are not comparable.`);
  return [
    `${
      count(widgets)
    } Widgets that the contestant has reconciled before: until each was reconciled once more:`,
    startTable,
    `${count(widgets)} new Widgets:`,
    workTable,
    requestTable + unfinished.join(""),
  ].join("\n\n");
}

interface Column {
  readonly of: (run: RunFigures) => number | undefined;
  /** Whether a column follows that compares with ours. */
  readonly hasRatio?: boolean;
}

function compared(
  results: readonly ControllerFigures[],
  ours: ControllerFigures | undefined,
  runsOf: (figures: ControllerFigures) => readonly RunFigures[],
  columns: Readonly<Record<string, Column>>,
): string {
  const value = (figures: ControllerFigures, { of }: Column) =>
    median(runsOf(figures).map(of).filter((one) => one !== undefined));
  const cell = (number: number | undefined) => number === undefined ? "-" : digits(number);
  const header = Object.entries(columns).flatMap(([name, { hasRatio }]) =>
    hasRatio && ours !== undefined ? [name, "to ours"] : [name]
  );
  const rows = results.map((figures) => [
    figures.label,
    ...Object.values(columns).flatMap((column) => {
      const mine = value(figures, column);
      if (!column.hasRatio || ours === undefined) return [cell(mine)];
      const reference = value(ours, column);
      return [cell(mine), mine === undefined || !reference ? "-" : digits(mine / reference)];
    }),
  ]);
  return markdownTable(["", ...header], rows);
}

/** Widgets that were brought to their state, per second. */
function perSecond({ requests: { workMs } }: RunFigures, widgets: number): number | undefined {
  return workMs ? widgets / workMs * 1_000 : undefined;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
