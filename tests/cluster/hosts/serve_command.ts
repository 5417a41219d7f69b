/**
 * `serve` on Deno, Node or Bun: a program for the tests. Its argument is the options as JSON; it prints its
 * URL when everything has synced, and ends with its standard input.
 *
 * @module
 */

import process from "node:process";
import { serve } from "@listwatch/cache/cli";

const stopping = new AbortController();
process.stdin.on("end", () => {
  stopping.abort();
  process.exit(0);
});
process.stdin.resume();

const served = await serve({ ...JSON.parse(process.argv[2]), signal: stopping.signal });
await served.synced();
console.log(served.url);
