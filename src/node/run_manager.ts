import process from "node:process";
import type { Manager } from "../controller/manager.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { serveFetch } from "./serving/serve_fetch.ts";

const STOP_ON = ["SIGTERM", "SIGINT"] as const;

/** Options of {@linkcode runManager}. */
export interface RunManagerOptions {
  /** The port of `/healthz`, `/readyz` and `/metrics`; none is opened without it. 0: any free one. */
  readonly port?: number;
  /** The address that it listens on; all by default, as probes come from outside of the pod. */
  readonly host?: string;
  /** Receives the address that it listens on (info); the console by default. */
  readonly logger?: Logger;
}

/**
 * Runs a manager until the system stops the program (`SIGTERM`, `SIGINT`; a second one ends the process at
 * once); serves its health meanwhile. Resolves when the controllers have drained and the lease is released.
 *
 * @throws {LeadershipLostError} The lease was lost: let the process end with an error, to be started again.
 * @throws {ListenError} The port cannot be opened.
 *
 * @example
 * ```ts
 * import { defineController, Manager } from "@listwatch/cache/controller";
 * import { loadCluster, runManager } from "@listwatch/cache/node";
 * async function main() {
 *   const cluster = await loadCluster();
 *   const nodes = defineController({
 *     name: "nodes",
 *     for: cluster.resource("v1/nodes"),
 *     reconcile: (node) => console.log(node.metadata?.name),
 *   });
 *   await runManager(new Manager(cluster, { controllers: [nodes] }), { port: 8080 });
 * }
 * ```
 */
export async function runManager(manager: Manager, options: RunManagerOptions = {}): Promise<void> {
  const { port, host = "0.0.0.0" } = options;
  const logger = guardedLogger(options.logger);
  const served = port === undefined ? undefined : await serveFetch(manager.fetch, { port, host });
  if (served !== undefined) logger.info(`serves health and metrics on port ${served.port}`);
  const stop = new AbortController();
  const onSignal = (signal: string) => {
    if (!stop.signal.aborted) return stop.abort(new Error(`the process received ${signal}`));
    logger.error(`received ${signal} once more: ends without waiting`);
    process.exit(1);
  };
  for (const signal of STOP_ON) process.on(signal, onSignal);
  try {
    await manager.run(stop.signal);
  } finally {
    for (const signal of STOP_ON) process.off(signal, onSignal);
    await served?.stop();
  }
}
