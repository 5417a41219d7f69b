/**
 * `serve --workers N`: readers are served by N processes that share the port.
 *
 * ```
 * API server ──one watch per resource──> parent ──loopback, token──> worker 1 ──> readers
 *                                                               └──> worker 2 ──> readers
 * ```
 *
 * - **Processes, not threads**: a worker that runs out of memory or hangs takes nothing else with it, `kill` and `ps` show
 *   it, and Deno and Node have the same interface for them. The kernel spreads connections over sockets with
 *   `SO_REUSEPORT`; before the first one the parent makes sure that no other program has the port. Linux only, with Deno, or
 *   Node 22.12 and later; refused elsewhere. A connection stays with its worker: few readers may all have the same one.
 * - **The parent** reflects the cluster and serves the copy to the workers only: on loopback, by the read API. It serves no
 *   reader, so that none can delay what the others receive.
 * - **A worker** is `serve` with the parent as its cluster: the same hooks, page and certificate. It holds no credential of the
 *   cluster. Token and access reviews and OpenAPI documents are requested through the parent; pass-through requests are sent
 *   with the reader's token, directly.
 * - **The token** for the parent is made at each start. It, the other options and all messages travel over pipes (stdin, stdout):
 *   none is in an argument, the environment or a file.
 * - **resourceVersions** are the API server's in all workers, so that a reader may move between them. A version that its
 *   worker has not reached is waited for, as by every read API. A consistent read asks the parent, which asks the API
 *   server; both share the question among all waiting readers. ETags are those of the parent's epoch: the same content has
 *   the same tags in all workers, until one of them sees two states under one resourceVersion, as after a restored backup.
 * - **Start**: workers listen at once and are not ready until the parent, and then they, have the first lists. A worker
 *   that takes another one's place listens when it has them, or after 10 s: until then the others have its readers.
 * - **A worker that ends** is started again, after 0.25 s to 30 s; logged, and counted as `serve_worker_restarts_total`. Its
 *   readers reconnect to the others. One that cannot start at first ends `serve`.
 * - **A worker that hangs** for 10 s is killed: it answers none of the messages that it receives each second. Until then,
 *   new connections to it wait, about one of N.
 * - **Stop**: the parent closes the pipes; workers end their watches and exit, or are killed after 0.7 s. When the parent
 *   ends in any other way, the pipes close, too.
 * - **State** of the API server (`/readyz`, `Age`, the page) is the parent's: it sends it once a second. `/metrics` of any
 *   worker has the measurements of all, with the label `worker`, and those of the parent without it. Lines of the access
 *   log are written by the parent, one at a time.
 * - **Limits** of readers, per client and in all, are each worker's own: N times as many in all. Memory, too: each worker
 *   holds the objects.
 *
 * @module
 */

import { existsSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { serveFetch } from "../node/serve_fetch.ts";
import { canSharePorts, freePort } from "../node/shared_port.ts";
import { abortable } from "../util/abort.ts";
import { CommandError, explainListenError } from "./errors.ts";
import { DEFAULT_HOST, DEFAULT_PORT } from "./serve_readers.ts";
import { type WorkerContent, type WorkerPoolOptions, WorkerProcesses } from "./worker_processes.ts";
import { newWorkerSource } from "./worker_source.ts";

/** Running workers. */
export interface WorkerPool {
  readonly url: string;
  /** Who may read, as text for people. */
  readonly access: string;
  /** Resolves when all have ended. */
  readonly finished: Promise<void>;
  /** Resolves when each worker has had its first lists. */
  synced(signal?: AbortSignal): Promise<void>;
  close(): void;
}

/**
 * Starts the workers, and keeps them running until the signal is aborted. Resolves when all of them listen.
 *
 * @throws {CommandError} Processes cannot share a port here, the port is in use, or a worker cannot start.
 */
export async function startWorkers(content: WorkerContent, options: WorkerPoolOptions): Promise<WorkerPool> {
  const { host = DEFAULT_HOST, clock, signal } = options;
  const module = programModule();
  if (!await canSharePorts()) {
    throw new CommandError(
      "Cannot serve with --workers: processes cannot share a port here; it needs Linux, and Deno or Node 22.12 or later",
    );
  }
  const port = await freePort(host, options.port ?? DEFAULT_PORT).catch((error) => {
    throw explainListenError(error, host, options.port ?? DEFAULT_PORT);
  });
  const token = randomBytes(32).toString("base64url");
  const sourceStop = new AbortController();
  const pool = new WorkerProcesses(content, options, { module, port, token });
  const source = await serveFetch(
    newWorkerSource(content, {
      token,
      cluster: content.connection.cluster,
      serve: options,
      metricsText: () => pool.metricsText(),
      signal: sourceStop.signal,
      clock,
    }).fetch,
    { signal: sourceStop.signal, logger: options.logger },
  );
  const ended = pool.run(source.url);
  // The workers end first: an end of their source would look like an outage to them.
  const finished = ended.finally(() => sourceStop.abort()).then(() => source.finished);
  finished.catch(() => {});
  try {
    const { url, access } = await abortable(pool.listening, signal);
    return { url, access, finished, synced: (until) => abortable(pool.synced, until), close: () => {} };
  } catch (error) {
    pool.stop();
    await finished;
    throw error;
  }
}

/** The module whose command is {@linkcode WORKER_COMMAND}: of the sources, or of the npm package. */
function programModule(): URL {
  const isSource = import.meta.url.endsWith(".ts");
  // In the package, this is `lib/rooms/cli.js`.
  const module = new URL(isSource ? "./main.ts" : "../../bin/listwatch.js", import.meta.url);
  if (module.protocol !== "file:" || existsSync(module)) return module;
  throw new CommandError(
    `Cannot serve with --workers: ${module.pathname} is missing; it needs the package as it is installed, not a bundle`,
  );
}
