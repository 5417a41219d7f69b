/**
 * What `--million` measures: a cache of very many Pods as short texts, which serves pages. Runs on Node. Its
 * argument is JSON. It prints one line of JSON when everything is stored, and ends with its standard input.
 *
 * @module
 */

import process from "node:process";
import {
  type KubernetesObject,
  LABEL_INDEX,
  labelIndexFunc,
  newCluster,
  SharedIndexInformer,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { serveFetch } from "@listwatch/cache/node";
import type { MillionArguments, MillionReady } from "../lib/million.ts";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string };
}

const { server, indexedLabel, eventWindow } = JSON.parse(process.argv[2]) as MillionArguments;

await (await fetch(`${server}/control/stats`)).json(); // loads the runtime's HTTP client
const startMs = performance.now();
const pods = newCluster({ server }).resource<Pod>("v1/pods", { maxListBytes: Infinity });
const informer = new SharedIndexInformer<Pod, string>(pods, {
  indexers: {
    node: (pod) => [pod.spec?.nodeName ?? ""],
    namespace: (pod) => [pod.metadata?.namespace ?? ""],
    [LABEL_INDEX]: labelIndexFunc([indexedLabel]),
  },
  storage: shortTexts(),
  // A busy machine takes longer for millions than a server that is reached may.
  reflector: { listTimeoutMs: 600_000 },
  logger: { ...silentLogger, warn: console.error, error: console.error },
});
const api = readApi({
  resources: [{ informer, resource: "v1/pods" }],
  allowAnonymous: true,
  freshness: "as-is", // the server of the benchmark proves nothing
  // Pages of one list come for minutes, and each is of the state of the first.
  eventWindow,
  eventWindowBytes: Infinity,
  logger: silentLogger,
});
informer.start();
await informer.synced();
const syncMs = performance.now() - startMs;
const { url } = await serveFetch(api.fetch, { logger: silentLogger });
const { heapUsed, external } = process.memoryUsage();
const ready: MillionReady = {
  url,
  pid: process.pid,
  syncMs,
  stored: informer.indexer.size,
  heapBytes: heapUsed + external,
};
console.log(JSON.stringify(ready));
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
