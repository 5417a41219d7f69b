// Serves a bundled worker in workerd, with its Durable Objects in a folder. Arguments: the bundle, and the settings as JSON.
// Prints its URL when it listens. It ends with its standard input; at a line on it workerd is killed, as in a crash.
import { createRequire } from "node:module";
import { resolve } from "node:path";
import process from "node:process";

// Of tests/runtimes, in which it runs.
const require = createRequire(resolve("package.json"));
const childProcess = require("node:child_process");
const { spawn } = childProcess;
let workerd;
childProcess.spawn = (...args) => workerd = spawn(...args);
const { Miniflare } = require("miniflare");

const [bundle, json] = process.argv.slice(2);
const { port, folder, className, options, inspectorPort, compatibilityFlags = [] } = JSON.parse(json);
const worker = new Miniflare({
  modules: true,
  scriptPath: bundle,
  // Before the date at which Node compatibility is on by default, so that the flag alone decides.
  compatibilityDate: "2026-07-01",
  compatibilityFlags,
  host: "127.0.0.1",
  port,
  ...(inspectorPort && { inspectorPort }),
  bindings: { OPTIONS: JSON.stringify(options) },
  durableObjects: { OBJECT: { className, useSQLite: true } },
  durableObjectsPersist: folder,
});
process.stdin.on("end", () => worker.dispose().finally(() => process.exit(0)));
process.stdin.on("data", () => {
  workerd?.once("exit", () => process.exit(137));
  workerd?.kill("SIGKILL");
});
const url = await worker.ready;
console.log(JSON.stringify({ origin: url.origin, pid: workerd.pid }));
