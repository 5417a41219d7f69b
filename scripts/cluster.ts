/**
 * `deno task cluster`: starts a real kube-apiserver, says how to use it, and stops it with Ctrl-C.
 *
 * @module
 */

import { parseArgs } from "node:util";
import { ClusterUnavailableError, startCluster, type StartClusterOptions } from "./lib/cluster.ts";
import { ensureClusterBinary } from "./lib/cluster_build.ts";

const usage = `Usage: deno task cluster [options] [-- kube-apiserver flags]

Starts kube-apiserver and etcd in one process on 127.0.0.1, and builds them first where that is needed.

  --data-dir DIR  keep the data in DIR (default: a temporary folder, removed at the end)
  --port N        listen on port N (default: a free one)
  --build-only    build, print the path of the program, and end
  --help          show this text
`;

class UsageError extends Error {}

interface CommandLine {
  start: StartClusterOptions;
  isBuildOnly: boolean;
  isHelp: boolean;
}

function parseCommandLine(args: string[]): CommandLine {
  const end = args.indexOf("--");
  const own = end < 0 ? args : args.slice(0, end);
  const apiServerArgs = end < 0 ? [] : args.slice(end + 1);
  let values: { "data-dir"?: string; port?: string; "build-only"?: boolean; help?: boolean };
  try {
    ({ values } = parseArgs({
      args: own,
      options: {
        "data-dir": { type: "string" },
        port: { type: "string" },
        "build-only": { type: "boolean" },
        help: { type: "boolean" },
      },
    }));
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
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

async function main(args: string[]): Promise<number> {
  const { start, isBuildOnly, isHelp } = parseCommandLine(args);
  if (isHelp) {
    console.log(usage);
    return 0;
  }
  const stopping = new AbortController();
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) Deno.addSignalListener(signal, () => stopping.abort());
  const { signal } = stopping;

  try {
    if (isBuildOnly) {
      console.log(await ensureClusterBinary({ signal }));
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
  } catch (error) {
    if (signal.aborted) return 130;
    throw error;
  }
}

if (import.meta.main) {
  let code: number;
  try {
    code = await main(Deno.args);
  } catch (error) {
    if (!(error instanceof ClusterUnavailableError || error instanceof UsageError)) throw error;
    console.error(error.message);
    if (error instanceof UsageError) console.error(`\n${usage}`);
    code = error instanceof UsageError ? 2 : 1;
  }
  Deno.exit(code);
}
