/**
 * Starts the real kube-apiserver of tests/cluster, and lets a test kill it, start it again and make it
 * forget old versions.
 *
 * @module
 */

import { join, resolve } from "node:path";
import { ClusterUnavailableError, ensureGoProgram } from "./cluster_build.ts";
import { type LineProcess, startLineProcess } from "./line_process.ts";

export { ClusterUnavailableError } from "./cluster_build.ts";

const stopTimeoutMs = 5000;

export interface StartClusterOptions {
  /**
   * Folder that keeps data, certificates, token and port-independent
   * state. Default: a new one, removed by `stop()`.
   */
  dataDir?: string;
  /** Port on 127.0.0.1. Default: a free one, which restarts keep. */
  port?: number;
  /** The admin's bearer token. Default: a random one, kept in `dataDir`. */
  token?: string;
  /** More flags of kube-apiserver, such as `--feature-gates=WatchList=false`; they win over its own. */
  apiServerArgs?: readonly string[];
  /** Takes progress lines while the program is built. Default: standard error. */
  log?: (line: string) => void;
  /** Gives up starting. It does nothing to a cluster that has started. */
  signal?: AbortSignal;
}

/** A running kube-apiserver. It ends with this process, however that ends. */
export interface TestCluster extends AsyncDisposable {
  /** The URL of the server, such as `https://127.0.0.1:24680`; the same after a restart. */
  readonly server: string;
  readonly port: number;
  /** A kubeconfig file with the pinned authority and the admin's token. */
  readonly kubeconfigPath: string;
  /** The authority's certificate in PEM, as `Deno.createHttpClient({ caCerts: [caData] })` takes it. */
  readonly caData: string;
  /** Bearer token of a user in system:masters. */
  readonly token: string;
  readonly dataDir: string;
  /** What kube-apiserver and etcd logged. */
  readonly logFile: string;
  /** The URL of etcd, which takes any client; another one after a restart. */
  readonly etcd: string;
  /** Process id, or undefined while the server is down. */
  readonly pid: number | undefined;
  /** Settles when the running process has ended, for whatever reason; at once if none runs. */
  exited(): Promise<void>;
  /** SIGKILL, as in a crash. Settles when the process has ended; does nothing if it is down. */
  kill(): Promise<void>;
  /**
   * Starts the server again on the same port and data, after a
   * `kill()` if it still runs; settles when it is ready.
   */
  restart(): Promise<void>;
  /**
   * Makes etcd forget all versions before now, and returns the first resourceVersion that can still be read.
   *
   * A list with an older `continue` token or with resourceVersionMatch=Exact then answers 410 within
   * 16 seconds, or at once after a restart or with the flag
   * `--feature-gates=ListFromCacheSnapshot=false`. A watch from an older resourceVersion answers 410
   * only after a restart, as the watch cache holds events of its own (or at once for a resource
   * without one: `--watch-cache-sizes=secrets#0`). tests/cluster/etcd.go says why.
   */
  compact(): Promise<string>;
  /**
   * Ends the server cleanly, within about a second, and removes the data folder if `startCluster` made it.
   */
  stop(): Promise<void>;
}

/**
 * Builds kube-apiserver if that is needed, starts it, and settles when it answers: in about 3 seconds.
 *
 * @throws {ClusterUnavailableError} if Go is missing, the build fails or the server does not start
 */
export async function startCluster(options: StartClusterOptions = {}): Promise<TestCluster> {
  const binary = await ensureGoProgram("cluster", { log: options.log, signal: options.signal });
  const isOwnDir = options.dataDir === undefined;
  const dataDir = resolve(options.dataDir ?? await Deno.makeTempDir({ prefix: "listwatch-cluster-" }));
  try {
    const launch: Launch = {
      binary,
      dataDir,
      port: options.port ?? 0,
      token: options.token,
      apiServerArgs: options.apiServerArgs ?? [],
    };
    const running = await startProcess(launch, options.signal);
    const caData = await Deno.readTextFile(running.ready.caFile);
    const port = Number(new URL(running.ready.server).port);
    return new LocalCluster({ ...launch, port }, running, { caData, isOwnDir });
  } catch (error) {
    // An error that points to the log needs the log.
    const isNeeded = error instanceof ClusterUnavailableError && error.message.includes(dataDir);
    if (isOwnDir && !isNeeded) await Deno.remove(dataDir, { recursive: true }).catch(ignoreNotFound);
    throw error;
  }
}

class LocalCluster implements TestCluster {
  readonly server: string;
  readonly port: number;
  readonly kubeconfigPath: string;
  readonly caData: string;
  readonly token: string;
  readonly dataDir: string;
  readonly logFile: string;
  readonly #launch: Launch;
  readonly #isOwnDir: boolean;
  #running: Running | undefined;
  #isStopped = false;

  constructor(launch: Launch, running: Running, options: { caData: string; isOwnDir: boolean }) {
    this.server = running.ready.server;
    this.port = launch.port;
    this.kubeconfigPath = running.ready.kubeconfig;
    this.caData = options.caData;
    this.token = running.ready.token;
    this.dataDir = launch.dataDir;
    this.logFile = running.ready.logFile;
    this.#launch = launch;
    this.#isOwnDir = options.isOwnDir;
    this.#adopt(running);
  }

  get pid(): number | undefined {
    return this.#running?.ready.pid;
  }

  get etcd(): string {
    if (this.#running === undefined) throw new Error(`The server at ${this.server} is down`);
    return this.#running.ready.etcd;
  }

  async exited(): Promise<void> {
    await this.#running?.ended;
  }

  async kill(): Promise<void> {
    const running = this.#running;
    if (running === undefined) return;
    running.kill();
    await running.ended;
  }

  async restart(): Promise<void> {
    if (this.#isStopped) {
      throw new Error("Cannot restart: the cluster was stopped; call startCluster");
    }
    await this.kill();
    this.#adopt(await startProcess(this.#launch));
  }

  async compact(): Promise<string> {
    const running = this.#running;
    if (running === undefined) throw new Error(`Cannot compact: the server at ${this.server} is down`);
    const answer = await running.ask("compact") as Answer;
    if (answer.compacted === undefined) throw new Error(`Cannot compact: ${answer.error}`);
    return answer.compacted;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const running = this.#running;
    if (running !== undefined) {
      // The program ends as its standard input does.
      await running.close();
      const timer = setTimeout(() => running.kill(), stopTimeoutMs);
      await running.ended;
      clearTimeout(timer);
    }
    if (this.#isOwnDir) await Deno.remove(this.dataDir, { recursive: true }).catch(ignoreNotFound);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #adopt(running: Running): void {
    this.#running = running;
    running.ended.then(() => {
      if (this.#running === running) this.#running = undefined;
    });
  }
}

interface Launch {
  binary: string;
  dataDir: string;
  port: number;
  token: string | undefined;
  apiServerArgs: readonly string[];
}

/** The line the program prints once the server answers. */
interface Ready {
  server: string;
  kubeconfig: string;
  caFile: string;
  token: string;
  logFile: string;
  etcd: string;
  pid: number;
}

interface Answer {
  compacted?: string;
  error?: string;
}

interface Running extends LineProcess {
  readonly ready: Ready;
}

async function startProcess(launch: Launch, signal?: AbortSignal): Promise<Running> {
  signal?.throwIfAborted();
  await Deno.mkdir(launch.dataDir, { recursive: true, mode: 0o700 });
  const args = ["--data-dir", launch.dataDir, "--port", String(launch.port), "--exit-with-stdin"];
  if (launch.token !== undefined) {
    // In a file, as all users of the machine see the arguments.
    const tokenFile = join(launch.dataDir, "token");
    await Deno.writeTextFile(tokenFile, launch.token, { mode: 0o600 });
    args.push("--token-file", tokenFile);
  }
  args.push("--", ...launch.apiServerArgs);
  try {
    const running = await startLineProcess(launch.binary, { args, newEndError, ...(signal && { signal }) });
    return { ...running, ready: JSON.parse(running.firstLine) };
  } catch (error) {
    signal?.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    throw new ClusterUnavailableError(`Cannot start the test cluster: ${why}`, { cause: error });
  }
}

function newEndError(status: Deno.CommandStatus, lastErrors: readonly string[]): Error {
  const why = lastErrors.findLast((line) => line.startsWith("cluster: "))?.slice("cluster: ".length) ??
    [`it ended with ${status.signal ?? `code ${status.code}`}`, ...lastErrors].join("\n");
  return new ClusterUnavailableError(why);
}

function ignoreNotFound(error: unknown): void {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}
