import { type Cluster, newCluster } from "../../client/cluster.ts";
import type { ControllerDefinition } from "../../controller/definition.ts";
import { Manager, type ManagerOptions } from "../../controller/manager.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import { linkedAbort, onAbort } from "../../util/abort.ts";
import type { Logger } from "../../util/logger.ts";
import { connectionReset } from "../faults.ts";

/** Makes the controllers of one start of a program. */
export type DefineControllers = (
  cluster: Cluster,
  memory: Map<string, unknown>,
) => ControllerDefinition | readonly ControllerDefinition[];

export interface ProcessRequest {
  readonly method: string;
  readonly url: URL;
  readonly init: RequestInit;
}

/** Stands between a process and the server: sends the request, changes it, or fails. */
export type ProcessNetwork = (request: ProcessRequest, send: ProcessSend) => Promise<Response>;

/** Sends a request to the server. */
export type ProcessSend = (url: URL, init: RequestInit) => Promise<Response>;

export interface ProcessOptions {
  readonly name: string;
  readonly define: DefineControllers;
  /** The memory outside of the process, which survives it. */
  readonly memory: Map<string, unknown>;
  readonly clock: Clock;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly network?: ProcessNetwork;
  readonly random: () => number;
  readonly manager?: Partial<ManagerOptions>;
  readonly onLine?: (line: string) => void;
}

/**
 * One start of a program. After {@linkcode ControllerProcess.kill} nothing of it goes on: its timers never
 * fire, its requests are cut off, and a wait for an answer never ends.
 */
export class ControllerProcess {
  readonly name: string;
  readonly manager: Manager;
  /** How the run ended: its error, or `undefined`. Never, if it was killed. */
  readonly ended: Promise<unknown>;
  readonly #options: ProcessOptions;
  readonly #life = new AbortController();
  readonly #timers = new Map<object, TimerHandle>();
  #isEnded = false;
  #frozen: (() => void)[] | undefined;
  #heldEvents: ((isLost: boolean) => void)[] | undefined;

  constructor(options: ProcessOptions) {
    this.name = options.name;
    this.#options = options;
    const clock: Clock = {
      now: () => options.clock.now(),
      monotonicNow: () => monotonicNow(options.clock),
      setTimeout: (callback, ms) => this.#setTimeout(callback, ms),
      clearTimeout: (handle) => this.#clearTimeout(handle as object),
    };
    const cluster = newCluster({
      server: "http://in-memory",
      fetch: (url, init) => this.#fetch(url, init ?? {}),
      clock,
    });
    this.manager = new Manager(cluster, {
      random: options.random,
      freezeObjects: true,
      ...options.manager,
      controllers: [options.define(cluster, options.memory)].flat(),
      clock,
      logger: this.#logger(options.manager?.logger),
    });
    this.ended = this.manager.run().then(() => undefined, (error: unknown) => error).finally(() => {
      this.#isEnded = true;
    });
  }

  /** Whether the process was neither killed nor has ended. */
  get isRunning(): boolean {
    return !this.#life.signal.aborted && !this.#isEnded;
  }

  kill(): void {
    this.#life.abort(new Error("the process was killed"));
    for (const handle of this.#timers.values()) this.#options.clock.clearTimeout(handle);
    this.#timers.clear();
    this.#frozen = undefined;
  }

  /** Stops it for a while: time goes by, and nothing of it runs. */
  freeze(): void {
    this.#frozen ??= [];
  }

  /** Lets it go on: what was due runs now, in the order in which it was due. */
  thaw(): void {
    const due = this.#frozen ?? [];
    this.#frozen = undefined;
    for (const run of due) run();
  }

  /** Holds back what watches send, as a slow API server does. */
  holdEvents(): void {
    this.#heldEvents ??= [];
  }

  /** Lets everything arrive; with `isLost` nothing, as the connections break. */
  releaseEvents({ isLost = false }: { readonly isLost?: boolean } = {}): void {
    const held = this.#heldEvents ?? [];
    this.#heldEvents = undefined;
    for (const release of held) release(isLost);
  }

  #setTimeout(callback: () => void, ms: number): object {
    const timer = {};
    if (this.#life.signal.aborted) return timer;
    const fire = () => {
      if (this.#frozen !== undefined) return void this.#frozen.push(fire);
      if (this.#timers.delete(timer)) callback();
    };
    this.#timers.set(timer, this.#options.clock.setTimeout(fire, ms));
    return timer;
  }

  #clearTimeout(timer: object): void {
    this.#options.clock.clearTimeout(this.#timers.get(timer));
    this.#timers.delete(timer);
  }

  async #fetch(url: string, init: RequestInit): Promise<Response> {
    await this.#awake();
    const { fetch, network } = this.#options;
    const send: ProcessSend = async (url, init) => {
      if (this.#life.signal.aborted) return await new Promise(() => {});
      // A request that was sent reaches the server, also while the process is frozen.
      const cut = linkedAbort(this.#life.signal);
      const { signal } = init;
      if (signal) onAbort(signal, () => cut.abort(signal.reason));
      return await fetch(url.href, { ...init, signal: cut.signal });
    };
    const request: ProcessRequest = { method: init.method ?? "GET", url: new URL(url), init };
    try {
      const response = await (network === undefined ? send(request.url, init) : network(request, send));
      const isWatch = request.url.searchParams.has("watch");
      return isWatch && response.body !== null
        ? new Response(this.#gated(response.body), response)
        : response;
    } finally {
      await this.#awake();
    }
  }

  #gated(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
    const reader = (body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
    return new ReadableStream({
      pull: async (controller) => {
        const { done, value } = await reader.read();
        while (this.#heldEvents !== undefined) {
          const isLost = await new Promise<boolean>((release) => this.#heldEvents!.push(release));
          if (!isLost) continue;
          await reader.cancel();
          throw connectionReset();
        }
        await this.#awake();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
  }

  /** Waits while it is frozen, and for ever once it was killed. */
  #awake(): Promise<void> {
    if (this.#life.signal.aborted) return new Promise(() => {});
    if (this.#frozen === undefined) return Promise.resolve();
    return new Promise((resolve) => this.#frozen!.push(() => void this.#awake().then(resolve)));
  }

  #logger(given: Logger | undefined): Logger {
    const write = (level: keyof Logger): Logger["info"] => (message, fields) => {
      if (this.#life.signal.aborted) return;
      given?.[level](message, fields);
      if (level !== "debug") this.#options.onLine?.(`${level} ${message}`);
    };
    return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  }
}
