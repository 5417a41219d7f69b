// Serves a bundled worker in workerd. Arguments: the bundle, and the options of the app as JSON. Prints its URL when it
// answers. It ends with its standard input; at a line on it, as in a crash: workerd, a process of its own, would survive
// SIGKILL of this one. NODE_EXTRA_CA_CERTS names the authority of the API server.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import process from "node:process";

// Of tests/runtimes, in which it runs.
const require = createRequire(resolve("package.json"));
const childProcess = require("node:child_process");
const { spawn } = childProcess;
let workerd;
childProcess.spawn = (...args) => workerd = spawn(...args);
const { Miniflare, Response } = require("miniflare");

const [bundle, options] = process.argv.slice(2);
const { port } = JSON.parse(options);
const worker = new Miniflare({
  modules: true,
  scriptPath: bundle,
  compatibilityDate: "2026-07-01",
  host: "127.0.0.1",
  port,
  bindings: { OPTIONS: options },
  durableObjects: { CACHE: { className: "CacheObject", useSQLite: true } },
  async outboundService({ url, method, headers, body, signal }) {
    const response = await fetch(url, { method, headers, body, signal, ...(body && { duplex: "half" }) });
    return new Response(response.body, { status: response.status, headers: response.headers });
  },
});
process.stdin.on("end", () => worker.dispose().finally(() => process.exit(0)));
process.stdin.on("data", () => {
  workerd?.once("exit", () => process.exit(137));
  workerd?.kill("SIGKILL");
});
const url = await worker.ready;
await (await fetch(new URL("/readyz", url))).text();
console.log(url.origin);
