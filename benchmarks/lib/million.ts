/**
 * Very many pods in one process, on Node: how much memory they take,
 * and what pages of them cost while they change.
 *
 * @module
 */

import { join } from "node:path";
import { run } from "../../scripts/lib/process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import { coresDuring, type ProcessUse, startChildServer, useOf } from "./child_server.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { startServer } from "./rounds.ts";
import { digits } from "./statistics.ts";
import { markdownTable } from "./table.ts";

/** What the cache is to do. */
export interface MillionArguments {
  readonly server: string;
  /** The label by which lists can be selected without a look at every object. */
  readonly indexedLabel: string;
  /** How many events are kept for pages of states of the past. */
  readonly eventWindow: number;
}

/** The figures that the server prints when everything is stored. */
export interface MillionReady {
  readonly url: string;
  readonly pid: number;
  readonly syncMs: number;
  readonly stored: number;
  readonly heapBytes: number;
}

/** What the client is to read. */
export interface PageReaderArguments {
  readonly url: string;
  /** The lists, which are read in turn. */
  readonly paths: readonly string[];
  readonly connections: number;
  readonly seconds: number;
  /** How many pages are due in a second; 0 for as many as come. */
  readonly perSecond: number;
}

/** The measured figures; times in milliseconds, ascending. */
export interface PageFigures {
  readonly seconds: number;
  readonly times: readonly number[];
  /** The times of pages that begin a list. */
  readonly firstTimes: readonly number[];
  readonly bytes: number;
  readonly refused: number;
  /** Lists that were read to their end. */
  readonly ended: number;
}

/** One part of a run. */
interface Part {
  readonly label: string;
  /** The part of the time in which events come. */
  readonly share: number;
  /** What is read; nothing if it is absent. */
  readonly paths?: (sample: PodList) => readonly string[];
  /** As many as come by default. */
  readonly perSecond?: number;
  readonly connections: number;
  readonly target?: { readonly cores: number; readonly p99Ms: number };
}

/** One part, measured. */
interface Measured {
  readonly part: Part;
  readonly cores: number | undefined;
  readonly pages: PageFigures | undefined;
}

const EVENTS_PER_SECOND = 1_000;
const PAGES_PER_SECOND = 60;
const PAGE = "/api/v1/pods?limit=500";
const GB_PER_MILLION = 3;
const INDEXED_LABEL = "app.kubernetes.io/name";
const OTHER_LABEL = "app.kubernetes.io/version";

const PARTS: readonly Part[] = [
  { label: "events alone", share: 0.15, connections: 0 },
  { label: "warming up", share: 0.15, paths: pages, perSecond: PAGES_PER_SECOND, connections: 4 },
  {
    label: `${PAGES_PER_SECOND} pages/s`,
    share: 0.4,
    paths: pages,
    perSecond: PAGES_PER_SECOND,
    connections: 4,
    target: { cores: 0.5, p99Ms: 50 },
  },
  { label: "as many pages as come", share: 0.1, paths: pages, connections: 4 },
  { label: "lists by an indexed label", share: 0.1, paths: selectedBy(INDEXED_LABEL), connections: 1 },
  { label: "lists by another label", share: 0.1, paths: selectedBy(OTHER_LABEL), connections: 1 },
];

/** What a list says of its pods here. */
interface PodList {
  readonly items: readonly { readonly metadata: { readonly labels?: Readonly<Record<string, string>> } }[];
}

function pages(): string[] {
  return [PAGE];
}

function selectedBy(label: string): (sample: PodList) => string[] {
  return ({ items }) => {
    const values = new Set(items.map(({ metadata }) => metadata.labels?.[label] ?? ""));
    return Array.from(
      values,
      (value) => `/api/v1/pods?resourceVersion=0&labelSelector=${encodeURIComponent(`${label}=${value}`)}`,
    );
  };
}

/** Measures it, and returns the tables as Markdown. */
export async function measureMillion(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const seconds = options.events / EVENTS_PER_SECOND;
  const parts: string[] = [];
  for (const objects of options.sizes) {
    log(`encoding ${count(objects)} pods ...`);
    await using upstream = await startServer(tools, { ...options, objects, isVaried: true });
    const given: MillionArguments = {
      server: upstream.url,
      indexedLabel: INDEXED_LABEL,
      eventWindow: 2 * options.events,
    };
    log(`listing ${count(objects)} pods ...`);
    await using cache = await startChildServer<MillionReady>(
      [tools.node, join(programs.bundles, "million_server.mjs"), JSON.stringify(given)],
    );
    const { ready } = cache;
    if (ready.stored !== objects) {
      throw new Error(`Cannot measure ${count(objects)} pods: ${ready.stored} came`);
    }
    const synced = useOf(ready.pid);
    const sampleMs = performance.now();
    const sample = await (await fetch(`${ready.url}${PAGE}`)).json() as PodList;
    const firstPageMs = performance.now() - sampleMs;
    if (sample.items.length !== Math.min(500, objects)) {
      throw new Error("Cannot measure pages: the first is short");
    }
    const burst = fetch(`${upstream.url}/control/burst?perSecond=${EVENTS_PER_SECOND}`, { method: "POST" });
    const measured: Measured[] = [];
    for (const part of PARTS) {
      log(`${part.label} ...`);
      measured.push(await measurePart(part, ready, sample, seconds * part.share, tools, programs));
    }
    await (await burst).body?.cancel();
    const end = useOf(ready.pid);
    const bytes = digits(upstream.listBytes / objects / 1e3);
    parts.push(
      `${count(objects)} pods of ${bytes} KB (${digits(upstream.listBytes / 1e9)} GB as a list), ` +
        `${count(options.events)} events:`,
      memoryTable(objects, { ...ready, firstPageMs }, synced, end),
      markdownTable(
        ["", "cores", "pages/s", "MB/s", "p50, ms", "p99, ms", "longest", "first page, p50", "refused"],
        measured.map(row),
      ),
    );
  }
  return [
    "Short texts in one process on Node, with two index functions and one of a label; the lists are answered by " +
    `\`readApi\`, in pages of 500 where they are not selected, while ${
      count(EVENTS_PER_SECOND)
    } events/s come in. ` +
    "The client and the server of the benchmark run on the same cores:",
    ...parts,
  ].join("\n\n");
}

async function measurePart(
  part: Part,
  { url, pid }: MillionReady,
  sample: PodList,
  seconds: number,
  tools: Tools,
  programs: Programs,
): Promise<Measured> {
  let pages: PageFigures | undefined;
  const paths = part.paths?.(sample);
  const cores = await coresDuring(pid, async () => {
    if (paths === undefined) {
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
      return;
    }
    const { connections, perSecond = 0 } = part;
    const given: PageReaderArguments = { url, paths, connections, seconds, perSecond };
    const reader = join(programs.bundles, "page_reader.mjs");
    const { code, stdout, output } = await run(tools.node, [reader, JSON.stringify(given)], {
      timeoutMs: seconds * 1_000 + 120_000,
    });
    if (code !== 0) throw new Error(`Cannot read pages: ${output}`);
    pages = JSON.parse(stdout) as PageFigures;
  });
  return { part, cores, pages };
}

function memoryTable(
  objects: number,
  { syncMs, heapBytes, firstPageMs }: MillionReady & { firstPageMs: number },
  synced: ProcessUse | undefined,
  end: ProcessUse | undefined,
): string {
  // Few objects take less than the runtime.
  const limit = objects < 1e6 ? undefined : GB_PER_MILLION * objects / 1e6;
  const gigabytes = (bytes: number | undefined) => bytes === undefined ? "-" : digits(bytes / 1e9);
  const peak = end && limit && ` (≤ ${digits(limit)})${end.peakBytes / 1e9 <= limit ? " met" : ""}`;
  return markdownTable(
    [
      "",
      "sync, s",
      "heap when synced, GB",
      "resident then",
      "peak",
      "first page of all, s",
      "resident in the end",
      "peak of all",
    ],
    [[
      `${count(objects)} pods`,
      digits(syncMs / 1_000),
      gigabytes(heapBytes),
      gigabytes(synced?.residentBytes),
      gigabytes(synced?.peakBytes),
      digits(firstPageMs / 1_000),
      gigabytes(end?.residentBytes),
      `${gigabytes(end?.peakBytes)}${peak ?? ""}`,
    ]],
  );
}

function row({ part, cores, pages }: Measured): string[] {
  const { target } = part;
  const judged = (value: number | undefined, limit: number | undefined) => {
    if (value === undefined) return "-";
    return limit === undefined
      ? digits(value)
      : `${digits(value)} (≤ ${limit})${value <= limit ? " met" : ""}`;
  };
  const milliseconds = (value: number | undefined) => value === undefined ? "-" : digits(value);
  return [
    part.label,
    judged(cores, target?.cores),
    ...(pages === undefined ? ["-", "-", "-", "-", "-", "-", "-"] : [
      digits(pages.times.length / pages.seconds),
      digits(pages.bytes / 1e6 / pages.seconds),
      milliseconds(quantile(pages.times, 0.5)),
      judged(quantile(pages.times, 0.99), target?.p99Ms),
      milliseconds(pages.times.at(-1)),
      milliseconds(quantile(pages.firstTimes, 0.5)),
      count(pages.refused),
    ]),
  ];
}

/** A quantile of ascending values. */
export function quantile(values: readonly number[], share: number): number | undefined {
  return values[Math.min(values.length - 1, Math.ceil(values.length * share) - 1)];
}
