/**
 * What `--list` measures: a cache of Pods that serves lists. Its argument is JSON. It prints one
 * line of JSON, and ends with its standard input.
 *
 * @module
 */

import process from "node:process";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { serveFetch } from "@listwatch/cache/node";

/** The content that the server has, and how it serves it. */
export interface ListServerArguments {
  /** Where the Pods come from. */
  readonly server: string;
  /** The limit of kept bodies. */
  readonly maxReaderBytes: number;
}

const { server, maxReaderBytes } = JSON.parse(process.argv[2]) as ListServerArguments;
const cluster = newCluster({ server });
const informer = new SharedIndexInformer(cluster.resource("v1/pods", { keep: "everything" }), {
  logger: silentLogger,
});
const api = readApi({
  resources: [{ informer, resource: "v1/pods" }],
  allowAnonymous: true,
  maxReaderBytes,
  logger: silentLogger,
});
informer.start();
await informer.synced();
const { url } = await serveFetch(api.fetch, { logger: silentLogger });
console.log(JSON.stringify({ url, pid: process.pid }));
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
