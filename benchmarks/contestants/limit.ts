/**
 * A cache of Pods in a small heap, with events behind it: what `--limit` measures. Runs on Node. Its
 * arguments are those of a contestant; its variant is a storage.
 *
 * It prints a line of JSON when it has synced, and another one at the
 * end, so that what it reached is known if it dies.
 *
 * @module
 */

import { PerformanceObserver } from "node:perf_hooks";
import process from "node:process";
import { parseArgs } from "node:util";
import { getHeapStatistics } from "node:v8";
import {
  fieldIndex,
  metaNamespaceIndex,
  newCluster,
  SharedIndexInformer,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import type { LimitArguments, LimitFigures } from "../lib/limit.ts";

interface Pod {
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly nodeName?: string };
}

const SAMPLE_MS = 25;
/** The events that are still on their way arrive within it. */
const GRACE_MS = 1_000;

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: { given: { type: "string", default: "" } },
});
const { server, storage, seconds, perSecond } = JSON.parse(values.given) as LimitArguments;

let pausesMs = 0;
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) pausesMs += duration;
}).observe({ entryTypes: ["gc"] });

let peakHeapBytes = 0;
const sample = () => peakHeapBytes = Math.max(peakHeapBytes, getHeapStatistics().used_heap_size);
setInterval(sample, SAMPLE_MS).unref();

await (await fetch(`${server}/control/stats`)).json(); // loads the runtime's HTTP client
const startMs = performance.now();
const informer = new SharedIndexInformer<Pod, string>(
  newCluster({ server }).resource<Pod>("v1/pods", { keep: "everything" }),
  {
    indexers: { node: fieldIndex<Pod>("spec.nodeName"), namespace: metaNamespaceIndex },
    logger: silentLogger,
    ...(storage === "short texts" && { storage: shortTexts() }),
  },
);
let events = 0;
informer.addEventHandler({ onUpdate: () => void events++ }, {
  mailbox: { limit: 1_000_000 },
});
informer.start();
await informer.synced();

let figures: LimitFigures = { syncMs: performance.now() - startMs, stored: informer.indexer.size };
const print = () => {
  sample();
  figures = { ...figures, events, peakHeapBytes, peakRssBytes: process.resourceUsage().maxRSS * 1024 };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
};
print();

const pausedBeforeMs = pausesMs;
const cpuBefore = process.cpuUsage();
const eventsFromMs = performance.now();
await (await fetch(`${server}/control/burst?perSecond=${perSecond}&seconds=${seconds}`, { method: "POST" }))
  .json();
await new Promise((resolve) => setTimeout(resolve, GRACE_MS));
const eventsMs = performance.now() - eventsFromMs;
const { user, system } = process.cpuUsage(cpuBefore);
figures = {
  ...figures,
  collectorShare: (pausesMs - pausedBeforeMs) / eventsMs,
  cpuShare: (user + system) / 1_000 / eventsMs,
  survived: true,
};
print();
process.exit(0);
