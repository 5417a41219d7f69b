/**
 * Serves the app on Deno, Node or Bun: a program for the tests. Its argument is {@linkcode HostOptions}; it
 * prints its URL when everything has synced, and ends with its standard input.
 *
 * @module
 */

import process from "node:process";
import { loadKubeconfig, restConfigFromKubeconfig, serveFetch } from "@listwatch/cache/node";
import { type HostOptions, newHostedApp } from "./app.ts";

const options: HostOptions = JSON.parse(process.argv[2]);
const stopping = new AbortController();
process.stdin.on("end", () => {
  console.error("the standard input has ended");
  stopping.abort();
  process.exit(0);
});
process.stdin.resume();

const config = options.kubeconfig === undefined
  ? { server: options.server!, ...(options.token !== undefined && { token: options.token }) }
  : await restConfigFromKubeconfig(await loadKubeconfig({ path: options.kubeconfig }));
const app = newHostedApp(config, options, stopping.signal);
await app.synced();
const { url } = await serveFetch(app.fetch, { port: options.port, signal: stopping.signal });
console.log(url);
