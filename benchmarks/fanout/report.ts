/**
 * The report of the fan-out benchmark, as Markdown.
 *
 * @module
 */

import { count } from "../lib/report.ts";
import { digits } from "../lib/statistics.ts";
import { markdownTable } from "../lib/table.ts";

/** What the client prints of watchers. */
export interface WatchResult {
  readonly watchers: number;
  readonly updates: number;
  readonly delivered: number;
  readonly eventBytes: number;
  readonly seconds: number;
  readonly writeSeconds: number;
  readonly eventsPerSecond: number;
  readonly serverCpuSeconds: number;
  readonly clientCpuSeconds: number;
  readonly lagP50Ms: number;
  readonly lagP99Ms: number;
  readonly lagMaxMs: number;
  /** How many watchers did not receive every event. */
  readonly faults: number;
  readonly firstFault?: string;
}

/** The printed figures of watchers that receive nothing. */
export interface IdleResult {
  readonly watchers: number;
  readonly bytesPerWatcher: number;
  readonly openSeconds: number;
}

/** The printed figures of lists. */
export interface ListResult {
  readonly requestsPerSecond: number;
  readonly bodyBytes: number;
  readonly mbPerSecond: number;
  readonly status: number;
  readonly encoding: string;
}

/** All of one contestant; `undefined` is what could not be measured. */
export interface Figures {
  readonly name: string;
  readonly burst: WatchResult | undefined;
  readonly steady: WatchResult | undefined;
  readonly idle: IdleResult | undefined;
  readonly lists: {
    readonly pods: number;
    readonly json: ListResult | undefined;
    readonly gzip: ListResult | undefined;
    readonly protobuf: ListResult | undefined;
    readonly notModified: ListResult | undefined;
  }[];
  readonly faults: string[];
}

/** The tables, and what went wrong. */
export function report(results: readonly Figures[]): string {
  const parts = [watchTable(results), idleTable(results), ...listTables(results)];
  const faults = results.flatMap(({ name, faults }) => faults.map((fault) => `- ${name}: ${fault}`));
  if (faults.length > 0) parts.push(`Faults:\n\n${faults.join("\n")}`);
  return parts.join("\n\n");
}

function watchTable(results: readonly Figures[]): string {
  const rows = (which: "burst" | "steady") =>
    results.flatMap(({ name, [which]: result }) => {
      if (result === undefined) return [];
      const { delivered, eventsPerSecond, serverCpuSeconds, clientCpuSeconds, writeSeconds, updates } =
        result;
      return [[
        `${name}, ${which === "burst" ? "burst" : "15 updates/s"}`,
        count(Math.round(delivered)),
        digits(updates / writeSeconds),
        count(Math.round(eventsPerSecond)),
        digits(serverCpuSeconds / delivered * 1e6),
        digits(delivered / serverCpuSeconds / 1_000),
        digits(clientCpuSeconds / delivered * 1e6),
        digits(result.lagP50Ms),
        digits(result.lagP99Ms),
        digits(result.lagMaxMs),
      ]];
    });
  const [{ watchers = 0, eventBytes = 0 } = {}] = results.flatMap(({ burst }) => burst ?? []);
  return `${count(watchers)} watchers of ConfigMaps, events of ${count(eventBytes)} bytes:\n\n` +
    markdownTable([
      "",
      "delivered",
      "updates/s",
      "events/s",
      "server CPU, us/event",
      "1,000 events/CPU second",
      "client CPU, us/event",
      "lag p50, ms",
      "p99",
      "most",
    ], [...rows("burst"), ...rows("steady")]);
}

function idleTable(results: readonly Figures[]): string {
  const rows = results.flatMap(({ name, idle }) =>
    idle === undefined
      ? []
      : [[name, count(idle.watchers), digits(idle.bytesPerWatcher / 1_000), digits(idle.openSeconds)]]
  );
  return `Idle watchers:\n\n${markdownTable(["", "watchers", "KB each", "opened in, s"], rows)}`;
}

function listTables(results: readonly Figures[]): string[] {
  const sizes = results[0]?.lists.map(({ pods }) => pods) ?? [];
  return sizes.map((pods, i) => {
    const rows = results.flatMap(({ name, lists }) => {
      const { json, gzip, protobuf, notModified } = lists[i];
      const forms = { "JSON": json, "JSON, gzip": gzip, "protobuf, gzip": protobuf, "304": notModified };
      return Object.entries(forms).flatMap(([form, result]) => {
        if (result === undefined || result.requestsPerSecond === 0) return [];
        return [[
          `${name}, ${form}`,
          digits(result.requestsPerSecond),
          digits(result.bodyBytes / 1e6),
          digits(result.mbPerSecond),
        ]];
      });
    });
    const header = ["", "requests/s", "MB each", "MB/s"];
    return `Lists of ${count(pods)} pods, 8 connections:\n\n${markdownTable(header, rows)}`;
  });
}
