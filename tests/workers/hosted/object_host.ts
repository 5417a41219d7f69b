/**
 * Durable Objects in workerd, in a process that can be killed and started again.
 * @module
 */

import { join } from "node:path";
import { buildProgram } from "../../../scripts/lib/bundle.ts";
import { ROOT } from "../../../scripts/lib/gate.ts";
import { type LineProcess, startLineProcess } from "../../../scripts/lib/line_process.ts";
import { installTools } from "../../../scripts/lib/tools.ts";
import { WorkerdHost } from "./workerd_host.ts";
import type { WorkerOptions } from "./worker.ts";

/** How a worker is hosted. */
export interface ObjectHostOptions {
  /** The binding `OPTIONS`. */
  readonly options: WorkerOptions;
  readonly compatibilityFlags?: readonly string[];
  readonly inspectorPort?: number;
}

/** A worker with one Durable Object, in workerd. */
export class ObjectHost implements AsyncDisposable {
  readonly #launch: () => Promise<LineProcess>;
  readonly #folder: string;
  #process: LineProcess;

  private constructor(launch: () => Promise<LineProcess>, folder: string, process: LineProcess) {
    this.#launch = launch;
    this.#folder = folder;
    this.#process = process;
  }

  /** Starts it. Resolves when it listens; its object starts at the first request. */
  static async start(hosting: ObjectHostOptions): Promise<ObjectHost> {
    const tools = await installTools();
    const bundle = await buildWorker();
    const folder = await Deno.makeTempDir({ prefix: "listwatch-object-" });
    const settings = { ...hosting, className: "CacheObject", folder, port: freePort() };
    const launch = () =>
      startLineProcess(tools.node, {
        args: [join(ROOT, "tests/workers/hosted/miniflare.mjs"), bundle, JSON.stringify(settings)],
        cwd: tools.dir,
      });
    return new ObjectHost(launch, folder, await launch());
  }

  /** The URL, such as `http://127.0.0.1:24680`; the same after a restart. */
  get url(): string {
    return JSON.parse(this.#process.firstLine).origin;
  }

  /** The process id of workerd. */
  get pid(): number {
    return JSON.parse(this.#process.firstLine).pid;
  }

  /** SIGKILL of workerd, as in a crash. Resolves when it has ended. */
  async kill(): Promise<void> {
    await this.#process.send("kill");
    await this.#process.ended;
  }

  /** Starts it again, on the same port and the same data. No request is sent to it. */
  async restart(): Promise<void> {
    this.#process = await this.#launch();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  return port;
}

/** Starts the worker in a workerd without miniflare, which starts sooner. */
export async function startInWorkerd(options: WorkerOptions): Promise<WorkerdHost> {
  const bundle = await buildWorker();
  return await WorkerdHost.start({
    configuration: CONFIGURATION,
    files: { "worker.mjs": await Deno.readTextFile(bundle), options: JSON.stringify(options) },
  });
}

async function buildWorker(): Promise<string> {
  return await buildProgram(await installTools(), "tests/workers/hosted/worker.ts", {
    name: "object_worker",
    platform: "workerd",
  });
}

const CONFIGURATION = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    (name = "objects", disk = (path = "objects", writable = true)),
    (name = "internet", network = (allow = ["public", "private"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:8787", http = (), service = "worker")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-07-01",
  bindings = [
    (name = "OPTIONS", text = embed "options"),
    (name = "OBJECT", durableObjectNamespace = "CacheObject"),
  ],
  durableObjectNamespaces = [(className = "CacheObject", uniqueKey = "cache", enableSql = true)],
  durableObjectStorage = (localDisk = "objects"),
);
`;
