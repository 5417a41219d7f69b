/**
 * A cache of Pods that starts with a snapshot, or without one: what `--warm`
 * measures. Runs on Node; prints a line of JSON.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import {
  type KubernetesObject,
  metaNamespaceIndex,
  newCluster,
  SharedIndexInformer,
  silentLogger,
} from "@listwatch/cache";
import { sqliteSnapshot } from "@listwatch/cache/node";
import type { WarmArguments, WarmFigures } from "../lib/warm.ts";

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: { given: { type: "string", default: "" } },
});
const { server, kind, path, isSmall, fills } = JSON.parse(values.given) as WarmArguments;

/** What was read from files, by the kernel's count. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1] ?? 0);
}

const drop = isSmall ? ["metadata.managedFields", "metadata.annotations", "spec", "status"] : [];
const source = newCluster({ server }).resource<KubernetesObject>("v1/pods", { drop });
await (await fetch(`${server}/control/stats`)).json(); // loads the runtime's HTTP client
const bytesBefore = bytesRead();
const startMs = performance.now();
const informer = new SharedIndexInformer(source, {
  indexers: { namespace: metaNamespaceIndex },
  logger: silentLogger,
  ...(kind === "sqlite" && { snapshot: sqliteSnapshot(path) }),
});
const running = informer.start();
if (fills) {
  await informer.synced();
  await running.stop();
  process.exit(0);
}
if (kind === "none") await informer.synced();
else await informer.restored();
const { indexer } = informer;
const read = indexer.getByKey(indexer.listKeys()[Math.floor(indexer.size / 2)]);
const firstReadMs = performance.now() - startMs;
const firstReadBytes = bytesRead() - bytesBefore;
const firstReadRssBytes = process.memoryUsage.rss();
// The server of the benchmark has neither bookmarks nor proofs: an event confirms the content.
if (kind !== "none") {
  void fetch(`${server}/control/burst?perSecond=1&seconds=1`, { method: "POST" }).then((answer) =>
    answer.text()
  );
}
await informer.synced();
const syncedMs = performance.now() - startMs;
// Every object is parsed.
for (const key of indexer.listKeys()) indexer.getByKey(key);
const figures: WarmFigures = {
  stored: read === undefined ? 0 : indexer.size,
  firstReadMs,
  firstReadBytes,
  firstReadRssBytes,
  syncedMs,
  peakRssBytes: process.resourceUsage().maxRSS * 1024,
};
process.stdout.write(`${JSON.stringify(figures)}\n`);
process.exit(0);
