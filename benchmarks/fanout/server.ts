/**
 * What the fan-out benchmark measures: a cache of ConfigMaps and Pods before an API server. Its argument
 * is JSON. It prints one line of JSON, and ends with its standard input.
 *
 * @module
 */

import process from "node:process";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { createTlsFetch, serveFetch } from "@listwatch/cache/node";

/** The content that the server has, and how it serves it. */
export interface ServerArguments {
  /** The API server, the token for it, and its authority's certificate. */
  readonly server: string;
  readonly token: string;
  readonly ca: string;
  /** Whether Deno's own server serves, instead of `serveFetch`. */
  readonly byDeno?: boolean;
}

const { server, token, ca, byDeno } = JSON.parse(process.argv[2]) as ServerArguments;
const stopping = new AbortController();
const { signal } = stopping;
const cluster = newCluster({ server, token, fetch: createTlsFetch({ ca }) });
const resources = (["v1/configmaps", "v1/pods"] as const).map((resource) => ({
  resource,
  informer: new SharedIndexInformer(cluster.resource(resource, { keep: "everything" }), {}),
}));
const api = readApi({
  resources,
  allowAnonymous: true,
  maxWatches: Infinity,
  maxReaderBytes: 256 * 1024 * 1024, // as of `serve`
  logger: silentLogger,
  signal,
});
for (const { informer } of resources) informer.start();
await Promise.all(resources.map(({ informer }) => informer.synced()));
let url: string;
if (byDeno) {
  const { Deno } = globalThis as unknown as {
    Deno: {
      serve(options: object, handler: typeof api.fetch): { addr: { port: number } };
    };
  };
  const served = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, api.fetch);
  url = `http://127.0.0.1:${served.addr.port}`;
} else {
  ({ url } = await serveFetch(api.fetch, { signal, logger: silentLogger }));
}
console.log(JSON.stringify({ url, pid: process.pid }));
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
