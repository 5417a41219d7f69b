/**
 * Makes the tables that are printed and kept from measurements.
 *
 * @module
 */

import type { Entrant } from "./contestants.ts";
import type { Measurement } from "./measurement.ts";
import { digits, eventsPerSecond, heapPerObject, median, medianOf, type Metric } from "./statistics.ts";
import { markdownTable } from "./table.ts";
import { isMet, type Reference, REFERENCE_LABELS, REFERENCES, TARGET_SIZE, TARGETS } from "./targets.ts";

/** The runs of all contestants with one number of objects. */
export interface SizeResult {
  readonly objects: number;
  readonly events: number;
  readonly listBytes: number;
  readonly runs: readonly { readonly entrant: Entrant; readonly measurements: readonly Measurement[] }[];
}

interface Column {
  readonly title: string;
  readonly metric: Metric;
  /** What the metric is divided by to be shown. */
  readonly unit: number;
}

const COLUMNS: readonly Column[] = [
  { title: "sync, s", metric: (run) => run.syncMs, unit: 1000 },
  { title: "handled, s", metric: (run) => run.handledMs, unit: 1000 },
  { title: "events/s", metric: eventsPerSecond, unit: 1 },
  { title: "peak RSS, MB", metric: (run) => run.syncRssBytes, unit: 1e6 },
  {
    title: "less start, MB",
    metric: ({ syncRssBytes, startRssBytes }) =>
      syncRssBytes === undefined || startRssBytes === undefined ? undefined : syncRssBytes - startRssBytes,
    unit: 1e6,
  },
  { title: "peak after events, MB", metric: (run) => run.endRssBytes, unit: 1e6 },
  { title: "heap/object, KB", metric: heapPerObject, unit: 1000 },
  { title: "by node, objects/us", metric: (run) => run.nodeLookupsPerUs, unit: 1 },
  { title: "by namespace", metric: (run) => run.namespaceLookupsPerUs, unit: 1 },
  { title: "longest task, ms", metric: (run) => run.longestTaskMs, unit: 1 },
  { title: "p99.9, ms", metric: (run) => run.p999TaskMs, unit: 1 },
  { title: "longest GC pause", metric: (run) => run.longestPauseMs, unit: 1 },
  { title: "longest task without", metric: (run) => run.longestOwnTaskMs, unit: 1 },
];

const RELIST_COLUMNS: readonly Column[] = [
  { title: "updates received", metric: (run) => run.relistUpdates, unit: 1 },
  {
    title: "peak heap / settled",
    metric: ({ relistPeakBytes, settledBytes }) =>
      relistPeakBytes === undefined || settledBytes === undefined
        ? undefined
        : relistPeakBytes / settledBytes,
    unit: 1,
  },
];

const RATIOS: readonly Column[] = [
  { title: "sync", metric: (run) => run.syncMs, unit: 1 },
  { title: "events/s", metric: eventsPerSecond, unit: 1 },
  { title: "peak RSS", metric: (run) => run.syncRssBytes, unit: 1 },
  { title: "after events", metric: (run) => run.endRssBytes, unit: 1 },
  { title: "heap/object", metric: heapPerObject, unit: 1 },
  { title: "by node", metric: (run) => run.nodeLookupsPerUs, unit: 1 },
];

/** All tables of one size, as Markdown; they go below a heading that names it. */
export function sizeReport(result: SizeResult): string {
  const { objects, events, listBytes } = result;
  const taking = result.runs.filter(({ measurements }) => measurements.some(({ skipped }) => !skipped));
  const rows = (columns: readonly Column[]) =>
    taking.map(({ entrant, measurements }) => [
      entrant.label,
      ...columns.map(({ metric, unit }) => show(medianOf(measurements, metric), unit)),
    ]);
  const size = digits(listBytes / 1e6);
  const parts = [
    `A list of ${size} MB, then ${count(events)} events:`,
    markdownTable(["", ...COLUMNS.map(({ title }) => title)], rows(COLUMNS)),
  ];
  for (const reference of REFERENCES) {
    const table = ratioTable(taking, reference);
    if (table !== undefined) {
      parts.push(
        `As ratios to ${REFERENCE_LABELS[reference]}${reference === "client-go" ? "" : " on Node"}:`,
        table,
      );
    }
  }
  if (!parts.some((part) => part.includes(REFERENCE_LABELS["client-go"]))) {
    // A column of targets without client-go would be empty; the sentence says why.
    parts.push("client-go and kube-rs did not take part (`--peers all`).");
  }
  const relisted = taking.filter(({ measurements }) =>
    measurements.some((run) => run.relistUpdates !== undefined)
  );
  if (relisted.length > 0) {
    parts.push(
      "A relist in which nothing changed (heap: what was held, without garbage):",
      markdownTable(
        ["", ...RELIST_COLUMNS.map(({ title }) => title), "samples", "same objects"],
        relisted.map(({ entrant, measurements }) => [
          entrant.label,
          ...RELIST_COLUMNS.map(({ metric, unit }) => show(medianOf(measurements, metric), unit)),
          samples(measurements),
          keepsIdentity(measurements),
        ]),
      ),
    );
  }
  if (objects === TARGET_SIZE) parts.push("### Targets", targetTable(result));
  const notes = remarks(result);
  if (notes.length > 0) parts.push(notes.join("\n"));
  return parts.join("\n\n");
}

/** The targets, each with the ratio that was reached. */
export function targetTable(result: SizeResult): string {
  const runsOf = (id: string) => result.runs.find(({ entrant }) => entrant.id === id)?.measurements ?? [];
  return markdownTable(
    ["ours on Node", ...REFERENCES.map((reference) => `to ${REFERENCE_LABELS[reference]}`)],
    TARGETS.map((target) => [
      target.label,
      ...REFERENCES.map((reference) => {
        const limit = target.limits[reference];
        if (limit === undefined) return "";
        const sign = target.sense === "at most" ? "≤" : "≥";
        const ours = medianOf(runsOf(`listwatch-node-${target.variant}`), target.metric);
        const theirs = medianOf(runsOf(reference), target.metric);
        if (ours === undefined || theirs === undefined) return `not measured (${sign} ${limit})`;
        const ratio = ours / theirs;
        const verdict = isMet(target, limit, ratio) ? "met" : "missed";
        return `${digits(ratio)} (${sign} ${limit}) ${verdict}`;
      }),
    ]),
  );
}

function ratioTable(taking: SizeResult["runs"], reference: Reference): string | undefined {
  const measurements = taking.find(({ entrant }) => entrant.id === reference)?.measurements;
  if (measurements === undefined) return undefined;
  const base = RATIOS.map(({ metric }) => medianOf(measurements, metric));
  const columns = RATIOS.map((_, i) => i).filter((i) => base[i] !== undefined);
  return markdownTable(
    ["", ...columns.map((i) => RATIOS[i].title)],
    taking.map(({ entrant, measurements }) => [
      entrant.label,
      ...columns.map((i) => show(medianOf(measurements, RATIOS[i].metric), base[i]!)),
    ]),
  );
}

function samples(measurements: readonly Measurement[]): string {
  const value = medianOf(measurements, ({ relistSamples }) => relistSamples);
  return value === undefined ? "-" : count(value);
}

function keepsIdentity(measurements: readonly Measurement[]): string {
  const known = measurements.filter(({ relistKeepsIdentity }) => relistKeepsIdentity !== undefined);
  if (known.length === 0) return "-";
  return known.every(({ relistKeepsIdentity }) => relistKeepsIdentity) ? "yes" : "no";
}

/** What a figure alone would hide: who did not take part and why, and who merged events. */
function remarks({ runs, events }: SizeResult): string[] {
  const lines: string[] = [];
  for (const { entrant, measurements } of runs) {
    const reasons = measurements.flatMap(({ skipped }) => skipped ?? []);
    if (reasons.length > 0) {
      const often = reasons.length === measurements.length
        ? ""
        : ` in ${reasons.length} of ${measurements.length} runs`;
      lines.push(`- ${entrant.label} did not take part${often}: ${reasons[0]}`);
    }
    const received = median(measurements.flatMap(({ burstEvents }) => burstEvents ?? []));
    if (received !== undefined && received !== events) {
      lines.push(
        `- ${entrant.label}: its handler received ${count(received)} of the ${count(events)} events`,
      );
    }
  }
  return lines;
}

function show(value: number | undefined, unit: number): string {
  return value === undefined ? "-" : digits(value / unit);
}

/** A whole number with its thousands apart. */
export function count(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
}
