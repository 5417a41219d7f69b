/**
 * The arithmetic of docs/scale.md: `deno run -A scripts/scale.ts --update` writes its tables.
 *
 * @module
 */

import { ROOT } from "./lib/gate.ts";
import { taskOptions, usage } from "./lib/task_usage.ts";

/** What is to be served. */
export const LOAD = {
  clusters: 1_000,
  objects: 10_000_000,
  watchers: 1_000_000,
  /** Each object changes once in so many seconds. */
  changeSeconds: 1_800,
  /** Each watcher selects so many objects of one cluster. */
  selected: 200,
  /** A watch lasts so long, in seconds: an hour less up to a fifth. */
  watchSeconds: 3_240,
};

/** What was measured; docs/scale.md says where. */
export const MEASURED = {
  /** An object as it is served. */
  objectBytes: 2_600,
  /** Heap of an object as short text, and resident memory of a process for each. */
  heapBytes: 948,
  residentBytes: 3_047,
  /** A watch that receives nothing, on Deno and on Node. */
  denoWatcherBytes: 31_000,
  nodeWatcherBytes: 35_800,
  /** CPU of an event: to take it in as short text, and to send it to one watcher at a low rate. */
  ingestUs: 28.1,
  deliverUs: 11.5,
  /**
   * Rows that an event writes: body, object, event, state; later the old body and the old event are deleted.
   */
  rowsPerEvent: 6,
};

/** Prices in dollars, and limits. */
export const CLOUDFLARE = {
  memoryGb: 0.128,
  memoryBytes: 128e6,
  perMillionGbSeconds: 12.5,
  perMillionObjectRequests: 0.15,
  perMillionWorkerRequests: 0.3,
  perMillionCpuMs: 0.02,
  perMillionRowsWritten: 1,
  perGbStored: 0.2,
  /** An alarm comes at least once in so many seconds. */
  alarmSeconds: 60,
};

/** Assumptions about servers. */
export const SERVERS = { memoryGb: 32, cores: 8, dollars: 200, egressPerGb: 0.05, copies: 2 };

const MONTH = 30 * 86_400;
/** The share of a Durable Object's memory for watchers; the rest is for objects and the runtime. */
const WATCHER_SHARE = 0.5;

/** What follows from the inputs; money in dollars a month. */
export interface Scale {
  readonly events: number;
  readonly deliveries: number;
  readonly egressGb: number;
  readonly objectsPerCluster: number;
  readonly watchersPerCluster: number;
  readonly eventsPerCluster: number;
  /** How many watchers fit into their share of a Durable Object. */
  readonly watchersPerObject: number;
  /** Cores busy. */
  readonly cpuPerCluster: number;
  readonly perObject: number;
  readonly perMillionEvents: number;
  readonly costs: Readonly<
    Record<
      "duration" | "alarms" | "rows" | "storage" | "objectRequests" | "workerRequests" | "workerCpu",
      number
    >
  >;
  readonly total: number;
  readonly servers: {
    readonly residentGb: number;
    readonly cores: number;
    readonly count: number;
    readonly dollars: number;
    readonly egressDollars: number;
  };
  readonly twoMillionPodsGb: { readonly heap: number; readonly resident: number };
}

/** Everything that follows from the inputs. */
export function scale(): Scale {
  const { clusters, objects, watchers, changeSeconds, selected, watchSeconds } = LOAD;
  const m = MEASURED;
  const c = CLOUDFLARE;
  const events = objects / changeSeconds;
  const deliveries = watchers * selected / changeSeconds;
  const egressGb = deliveries * m.objectBytes * MONTH / 1e9;
  const gbSeconds = c.memoryGb * MONTH;
  const perObject = gbSeconds / 1e6 * c.perMillionGbSeconds;
  const alarms = MONTH / c.alarmSeconds / 1e6 * c.perMillionObjectRequests;
  const opened = watchers * MONTH / watchSeconds;
  const costs = {
    duration: clusters * perObject,
    alarms: clusters * alarms,
    rows: events * MONTH * m.rowsPerEvent / 1e6 * c.perMillionRowsWritten,
    storage: objects * m.objectBytes / 1e9 * c.perGbStored,
    objectRequests: opened / 1e6 * c.perMillionObjectRequests,
    workerRequests: opened / 1e6 * c.perMillionWorkerRequests,
    workerCpu: deliveries * m.deliverUs / 1e3 * MONTH / 1e6 * c.perMillionCpuMs,
  };
  const residentGb = (objects * m.residentBytes + watchers * m.denoWatcherBytes) / 1e9;
  const cores = (events * m.ingestUs + deliveries * m.deliverUs) / 1e6;
  const count = Math.ceil(residentGb / (SERVERS.memoryGb * 0.75)) * SERVERS.copies;
  return {
    events,
    deliveries,
    egressGb,
    objectsPerCluster: objects / clusters,
    watchersPerCluster: watchers / clusters,
    eventsPerCluster: events / clusters,
    watchersPerObject: Math.floor(c.memoryBytes * WATCHER_SHARE / m.nodeWatcherBytes),
    cpuPerCluster: (events * m.ingestUs + deliveries * m.deliverUs) / clusters / 1e6,
    perObject,
    costs,
    total: Object.values(costs).reduce((sum, cost) => sum + cost, 0),
    perMillionEvents: m.rowsPerEvent * c.perMillionRowsWritten,
    servers: {
      residentGb,
      cores,
      count,
      dollars: count * SERVERS.dollars,
      egressDollars: egressGb * SERVERS.egressPerGb,
    },
    twoMillionPodsGb: { heap: 2e6 * m.heapBytes / 1e9, resident: 2e6 * m.residentBytes / 1e9 },
  };
}

/** The tables of docs/scale.md, by the name of their marks. */
export function scaleTables(): Record<string, string> {
  const s = scale();
  const { costs } = s;
  return {
    load: table(["", "all", "each cluster"], [
      ["objects", number(LOAD.objects), number(s.objectsPerCluster)],
      ["watchers", number(LOAD.watchers), number(s.watchersPerCluster)],
      ["events/s from API servers", number(s.events), s.eventsPerCluster.toFixed(1)],
      ["events/s to watchers", number(s.deliveries), number(s.deliveries / LOAD.clusters)],
      ["sent, TB a month", number(s.egressGb / 1e3), (s.egressGb / 1e3 / LOAD.clusters).toFixed(2)],
    ]),
    objects: table(["", "a month", "arithmetic"], [
      [
        "duration",
        dollars(costs.duration),
        `${number(LOAD.clusters)} objects x 0.128 GB x ${number(MONTH)} s x $12.50/million GB-s`,
      ],
      ["alarms", dollars(costs.alarms), `${number(LOAD.clusters)} x ${number(MONTH / 60)} x $0.15/million`],
      [
        "rows written",
        dollars(costs.rows),
        `${number(s.events)}/s x ${number(MONTH)} s x ${MEASURED.rowsPerEvent} rows x $1/million`,
      ],
      ["storage", dollars(costs.storage), `${number(LOAD.objects)} x 2.6 KB x $0.20/GB`],
      [
        "opened watches",
        dollars(costs.objectRequests + costs.workerRequests),
        `${number(LOAD.watchers)} x ${number(MONTH / LOAD.watchSeconds)} x ($0.15 + $0.30)/million`,
      ],
      [
        "CPU of Workers",
        dollars(costs.workerCpu),
        `${number(s.deliveries)}/s x ${MEASURED.deliverUs} us x $0.02/million ms`,
      ],
      ["**sum**", `**${dollars(s.total)}**`, ""],
    ]),
    servers: table(["", "", "arithmetic"], [
      [
        "memory",
        `${number(s.servers.residentGb)} GB`,
        `${number(LOAD.objects)} x 3.05 KB + ${number(LOAD.watchers)} x ${
          MEASURED.denoWatcherBytes / 1e3
        } KB`,
      ],
      [
        "cores busy",
        s.servers.cores.toFixed(1),
        `${number(s.events)}/s x ${MEASURED.ingestUs} us + ${
          number(s.deliveries)
        }/s x ${MEASURED.deliverUs} us`,
      ],
      [
        "servers",
        number(s.servers.count),
        `${SERVERS.copies} copies, each of ${SERVERS.memoryGb} GB three quarters full`,
      ],
      ["servers, a month", dollars(s.servers.dollars), `$${SERVERS.dollars} each`],
      [
        "egress, a month",
        dollars(s.servers.egressDollars),
        `${number(s.egressGb)} GB x $${SERVERS.egressPerGb.toFixed(2)}`,
      ],
    ]),
  };
}

/** A document with its tables as they are computed now. */
export function withTables(text: string): string {
  let result = text;
  for (const [name, lines] of Object.entries(scaleTables())) {
    const begin = `<!-- begin ${name} -->`;
    const end = `<!-- end ${name} -->`;
    const [from, to] = [result.indexOf(begin), result.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`docs/scale.md has no marks of the table "${name}"`);
    result = `${result.slice(0, from + begin.length)}\n\n${lines}\n\n${result.slice(to)}`;
  }
  return result;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((text, i) => Math.max(3, text.length, ...rows.map((row) => row[i].length)));
  const isNumber = (i: number) => i > 0 && head[i] !== "arithmetic";
  const line = (cells: readonly string[]) =>
    `| ${
      cells.map((cell, i) => isNumber(i) ? cell.padStart(widths[i]) : cell.padEnd(widths[i])).join(" | ")
    } |`;
  const rule = `| ${
    widths.map((width, i) => isNumber(i) ? `${"-".repeat(width - 1)}:` : "-".repeat(width)).join(" | ")
  } |`;
  return [line(head), rule, ...rows.map(line)].join("\n");
}

function number(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

function dollars(value: number): string {
  return `$${number(value)}`;
}

if (import.meta.main) {
  const text = usage({
    script: "scripts/scale.ts",
    does: "Prints the tables of docs/scale.md: what many clusters and readers take.",
    options: { "--update": "write them into docs/scale.md instead" },
  });
  const { update } = taskOptions(text, { update: { type: "boolean", default: false } });
  const path = `${ROOT}/docs/scale.md`;
  if (update) await Deno.writeTextFile(path, withTables(await Deno.readTextFile(path)));
  else console.log(Object.values(scaleTables()).join("\n\n"));
}
