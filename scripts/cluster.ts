/**
 * `deno task cluster`: starts a real kube-apiserver, says how to use it, and stops it with Ctrl-C.
 *
 * @module
 */

import { startCluster, type StartClusterOptions } from "./lib/cluster.ts";
import { ensureGoProgram } from "./lib/cluster_build.ts";
import { optionsOf, runClusterTask, UsageError } from "./lib/cluster_task.ts";

const usage = `Usage: deno task cluster [options] [-- kube-apiserver flags]

Starts kube-apiserver and etcd in one process on 127.0.0.1, and builds them first where that is needed.

  --data-dir DIR  keep the data in DIR (default: a temporary folder, removed at the end)
  --port N        listen on port N (default: a free one)
  --build-only    build, print the path of the program, and end
  --help          show this text
`;

interface CommandLine {
  start: StartClusterOptions;
  isBuildOnly: boolean;
  isHelp: boolean;
}

function parseCommandLine(args: string[]): CommandLine {
  const end = args.indexOf("--");
  const own = end < 0 ? args : args.slice(0, end);
  const apiServerArgs = end < 0 ? [] : args.slice(end + 1);
  const values = optionsOf(own, {
    "data-dir": { type: "string" },
    port: { type: "string" },
    "build-only": { type: "boolean" },
    help: { type: "boolean" },
  });
  const start: StartClusterOptions = { apiServerArgs };
  if (values["data-dir"] !== undefined) start.dataDir = values["data-dir"];
  if (values.port !== undefined) {
    const port = Number(values.port);
    if (!/^\d+$/.test(values.port) || port > 65535) {
      throw new UsageError(`--port ${values.port} is not a port: use a number from 0 to 65535`);
    }
    start.port = port;
  }
  return { start, isBuildOnly: values["build-only"] ?? false, isHelp: values.help ?? false };
}

async function main(args: string[], signal: AbortSignal): Promise<number> {
  const { start, isBuildOnly, isHelp } = parseCommandLine(args);
  if (isHelp) {
    console.log(usage);
    return 0;
  }
  if (isBuildOnly) {
    console.log(await ensureGoProgram("cluster", { signal }));
    return 0;
  }
  const startedMs = Date.now();
  const cluster = await startCluster({ ...start, signal });
  const stopped = new Promise<"stopped">((resolve) => {
    if (signal.aborted) resolve("stopped");
    signal.addEventListener("abort", () => resolve("stopped"));
  });
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
  console.log(`kube-apiserver answers at ${cluster.server} (after ${seconds} s)
kubeconfig: ${cluster.kubeconfigPath}
log:        ${cluster.logFile}

Try:  kubectl --kubeconfig ${cluster.kubeconfigPath} get ns
Stop: Ctrl-C (${
    start.dataDir === undefined ? "the data is removed" : `the data stays in ${cluster.dataDir}`
  })`);

  const why = await Promise.race([stopped, cluster.exited().then(() => "exited" as const)]);
  if (why === "exited" && !signal.aborted) {
    console.error(`kube-apiserver ended by itself: see ${cluster.logFile}`);
    return 1;
  }
  await cluster.stop();
  console.log("Stopped.");
  return 0;
}

if (import.meta.main) await runClusterTask(main, usage);
