/**
 * `listwatch serve` over the benchmark's API server; prints its URL when it has synced.
 *
 * @module
 */

import process from "node:process";
import { serve } from "@listwatch/cache/cli";

const stop = new AbortController();
const [path] = process.argv.slice(2);
const served = await serve({
  source: { kind: "kubeconfig", path },
  resources: ["pods"],
  port: 0,
  signal: stop.signal,
});
await served.synced();
console.log(JSON.stringify({ url: served.url, pid: process.pid }));
process.stdin.on("end", () => stop.abort()).resume();
await served.finished;
process.exit(0);
