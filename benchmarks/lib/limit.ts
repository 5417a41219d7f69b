/**
 * A cache of many pods in a small heap, on Node: whether it syncs, and stays alive with events behind it.
 *
 * @module
 */

import { join } from "node:path";
import { run } from "../../scripts/lib/process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { begin, startServer } from "./rounds.ts";
import { digits } from "./statistics.ts";
import { markdownTable } from "./table.ts";

/** What one process is to do. */
export interface LimitArguments {
  readonly server: string;
  readonly storage: (typeof STORAGES)[number];
  /** How long events come, and how many of them. */
  readonly seconds: number;
  readonly perSecond: number;
}

/** The measured figures; as far as the process came, if it did not survive. */
export interface LimitFigures {
  readonly syncMs?: number;
  readonly stored?: number;
  /** Updates that the handler received. */
  readonly events?: number;
  readonly peakHeapBytes?: number;
  readonly peakRssBytes?: number;
  /** The collector's pauses, while events came, as a share of the time. */
  readonly collectorShare?: number;
  /** The processor's time of the process, as a share of the time. */
  readonly cpuShare?: number;
  readonly survived?: true;
}

const STORAGES = ["short texts", "objects"] as const;
const LIMIT_MB = 200;
const PER_SECOND = 1_000;
const SECONDS = 30;
const TIMEOUT_MS = 180_000;

/** Measures it, and returns the tables as Markdown. */
export async function measureLimit(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const parts = [
    `A cache with two indices and a handler of heads on Node, with \`--max-old-space-size=${LIMIT_MB}\`; then ` +
    `${count(PER_SECOND)} events/s for ${SECONDS} s:`,
  ];
  const storages = STORAGES.filter((storage) =>
    options.only.length === 0 || options.only.some((word) => storage.startsWith(word))
  );
  for (const objects of options.sizes) {
    await using server = await startServer(tools, {
      objects,
      events: PER_SECOND * SECONDS,
      framing: options.framing,
    });
    const rows: string[][] = [];
    for (const storage of storages) {
      for (let round = 1; round <= options.rounds; round++) {
        log(`round ${round} of ${options.rounds}: ${count(objects)} pods, ${storage}`);
        const given: LimitArguments = {
          server: server.url,
          storage,
          seconds: SECONDS,
          perSecond: PER_SECOND,
        };
        await begin(server);
        rows.push([storage, ...cells(await measure(given, tools, programs), objects)]);
      }
    }
    parts.push(
      `${count(objects)} pods (${digits(server.listBytes / 1e6)} MB as a list):`,
      markdownTable([
        "storage",
        "survived",
        "time to sync (s)",
        "peak heap (MB)",
        "peak RSS (MB)",
        `events of ${count(PER_SECOND * SECONDS)}`,
        "collector",
        "CPU",
      ], rows),
    );
  }
  return parts.join("\n\n");
}

async function measure(given: LimitArguments, tools: Tools, programs: Programs): Promise<LimitFigures> {
  const result = await run(tools.node, [
    `--max-old-space-size=${LIMIT_MB}`,
    join(programs.bundles, "limit.mjs"),
    `--given=${JSON.stringify(given)}`,
  ], { timeoutMs: TIMEOUT_MS });
  const lines = result.stdout.split("\n").filter((line) => line.startsWith("{"));
  if (lines.length === 0 && !result.output.includes("heap out of memory")) {
    throw new Error(`Cannot measure ${given.storage}: ended with code ${result.code}: ${result.output}`);
  }
  return lines.length === 0 ? {} : JSON.parse(lines[lines.length - 1]) as LimitFigures;
}

function cells(figures: LimitFigures, objects: number): string[] {
  const { syncMs, stored, events, peakHeapBytes, peakRssBytes, collectorShare, cpuShare, survived } = figures;
  const megabytes = (bytes: number | undefined) => bytes === undefined ? "-" : digits(bytes / 1e6);
  const percent = (share: number | undefined) => share === undefined ? "-" : `${digits(100 * share)} %`;
  return [
    survived && stored === objects ? "yes" : syncMs === undefined ? "no: out of memory in the list" : "no",
    syncMs === undefined ? "-" : digits(syncMs / 1_000),
    megabytes(peakHeapBytes),
    megabytes(peakRssBytes),
    survived ? count(events ?? 0) : "-",
    percent(collectorShare),
    percent(cpuShare),
  ];
}
