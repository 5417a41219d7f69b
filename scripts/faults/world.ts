/**
 * One fault, which happens to all clients at the same time, each on
 * a line of its own in front of the same server.
 * @module
 */

import type { Cluster } from "@listwatch/cache";
import { seededRandom, type ServerFetch } from "@listwatch/cache/testing";
import { kubeconfigOf } from "../lib/kubeconfig.ts";
import { type LineProcess, startLineProcess } from "../lib/line_process.ts";
import { FaultProxy } from "../../tests/soak/fault_proxy.ts";
import { sleepUnlessAborted } from "../../src/util/abort.ts";
import { realClock } from "../../src/util/clock.ts";
import type { Client } from "./clients.ts";
import type { Fault, Line } from "./faults.ts";
import { AUTHORITY, Gate } from "./gate.ts";
import { NAMESPACE, type Seen, type ValueObject, Writer } from "./history.ts";

/** The server that all clients watch. */
export interface FaultyServer {
  /** What a gate passes requests to. */
  readonly fetch: ServerFetch;
  /** For the writer. */
  readonly cluster: Cluster;
}

/** What a client made of a fault. */
export interface Outcome {
  readonly client: string;
  readonly version: string;
  /** Objects whose last state the client does not have. */
  readonly missed: number;
  /** States that never were. */
  readonly impossible: number;
  /** The time from the beginning of the fault to the first request after it; `undefined` without one. */
  readonly noticeMs: number | undefined;
  /** The time from the end of the fault to a copy equal to the server; `undefined` if it took too long. */
  readonly recoverMs: number | undefined;
  /** The longest of several rounds. */
  readonly slowestMs?: number;
  /** Between the beginning of the fault and the recovery. */
  readonly requests: number;
  /** The most resident memory; `undefined` where the system does not say. */
  readonly memoryBytes: number | undefined;
  /** Why there is no outcome: the client ended. */
  readonly ended?: string;
}

const POLL_MS = 50;
const WARM_UP_WRITES = 30;
// Clients may wait after a watch that was short: those that fail here were not.
const WATCHED_MS = 8_000;
const MOMENT_WRITES = 20;
const LAST_WRITES = 10;
// A client that has recovered receives the last writes within this time.
const SETTLE_MS = 60_000;
const START_MS = 30_000;

/** Lets a fault happen to the clients. */
export async function runFault(
  fault: Fault,
  clients: readonly Client[],
  { server, seed, signal }: {
    readonly server: FaultyServer;
    readonly seed: number;
    readonly signal: AbortSignal;
  },
): Promise<Outcome[]> {
  const writer = new Writer(server.cluster.resource<ValueObject>("v1/configmaps"), seededRandom(seed));
  await writer.fill();
  await using started = new AsyncDisposableStack();
  const failed: Outcome[] = [];
  const all: WatchedClient[] = [];
  await Promise.all(clients.map(async (client) => {
    try {
      all.push(started.use(await WatchedClient.start(client, server.fetch)));
    } catch (error) {
      failed.push(notStarted(client, error));
    }
  }));
  await writer.burst(WARM_UP_WRITES);
  await Promise.all(all.map((client) => client.equals(writer, { limitMs: START_MS, signal })));
  await sleepUnlessAborted(WATCHED_MS, { clock: realClock, signal });
  const version = await writer.version();
  for (const client of all) client.begin(fault, version);
  // Watched from now on, so that what clients notice during the fault is seen.
  const recovering = all.map((client) => client.watch(signal));
  if (fault.lastsMs === undefined) await writer.burst(MOMENT_WRITES);
  else {
    const busy = AbortSignal.any([signal, AbortSignal.timeout(fault.lastsMs)]);
    await writer.run(busy);
  }
  await fault.write?.(writer);
  const lastVersion = await writer.version();
  await Promise.all(all.map((client) => client.end(fault, lastVersion)));
  // Only a watch that works brings these writes at once.
  if (fault.lastsMs !== undefined) await writer.burst(MOMENT_WRITES);
  for (const client of all) client.mustEqual(writer);
  await Promise.all(recovering);
  await writer.burst(LAST_WRITES);
  await Promise.all(all.map((client) => client.equals(writer, { limitMs: SETTLE_MS, signal })));
  signal.throwIfAborted();
  const outcomes = [...await Promise.all(all.map((client) => client.outcome(writer))), ...failed];
  return clients.map(({ name }) => outcomes.find(({ client }) => client === name)!);
}

function notStarted({ name }: Client, error: unknown): Outcome {
  return {
    client: name,
    version: "",
    missed: 0,
    impossible: 0,
    noticeMs: undefined,
    recoverMs: undefined,
    requests: 0,
    memoryBytes: undefined,
    ended: error instanceof Error ? error.message : String(error),
  };
}

/**
 * The outcomes of several rounds as one for each client: medians of times and requests, the worst of the
 * rest. Without a recovery in one round there is none.
 */
export function merged(rounds: readonly (readonly Outcome[])[]): Outcome[] {
  if (rounds.length === 1) return [...rounds[0]];
  return rounds[0].map((first, c) => {
    const all = rounds.map((round) => round[c]);
    const recoveries = known(all.map(({ recoverMs }) => recoverMs));
    const ended = all.find((outcome) => outcome.ended !== undefined)?.ended;
    return {
      ...first,
      missed: Math.max(...all.map(({ missed }) => missed)),
      impossible: Math.max(...all.map(({ impossible }) => impossible)),
      noticeMs: median(known(all.map(({ noticeMs }) => noticeMs))),
      ...recoveries.length === all.length
        ? { recoverMs: median(recoveries), slowestMs: Math.max(...recoveries) }
        : { recoverMs: undefined },
      requests: median(all.map(({ requests }) => requests))!,
      memoryBytes: known(all.map(({ memoryBytes }) => memoryBytes)).sort((a, b) => b - a)[0],
      ...(ended !== undefined && { ended }),
    };
  });
}

function known(values: readonly (number | undefined)[]): number[] {
  return values.filter((value) => value !== undefined);
}

/** The middle one, or the lower of the two in the middle. */
function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length / 2) - 1];
}

/** What a client answers to each line. */
interface Answer {
  readonly held: readonly Seen[];
  readonly events: readonly Seen[];
}

/** A client, its line, and what is known of it. */
class WatchedClient implements AsyncDisposable {
  readonly #client: Client;
  readonly #line: Line;
  readonly #process: LineProcess;
  readonly #info: { readonly pid: number; readonly version: string };
  readonly #dispose: () => Promise<void>;
  readonly #seen: Seen[] = [];
  #held: ReadonlyMap<string, string> = new Map();
  #beganMs = 0;
  #requestsBefore = 0;
  #noticeMs: number | undefined;
  #endedMs: number | undefined;
  #limitMs = 0;
  #recoverMs: number | undefined;
  #requests = 0;
  #isUnseen = false;
  #writer: Writer | undefined;
  #failure: string | undefined;

  private constructor(client: Client, line: Line, process: LineProcess, dispose: () => Promise<void>) {
    this.#client = client;
    this.#line = line;
    this.#process = process;
    this.#info = JSON.parse(process.firstLine);
    this.#dispose = dispose;
  }

  /** Starts one; it has synced then. */
  static async start(client: Client, fetch: ServerFetch): Promise<WatchedClient> {
    await using stack = new AsyncDisposableStack();
    const gate = stack.use(new Gate(fetch));
    const proxy = stack.use(await FaultProxy.start({ port: gate.port }));
    const kubeconfig = await Deno.makeTempFile({ suffix: ".json" });
    stack.defer(() => Deno.remove(kubeconfig));
    await Deno.writeTextFile(
      kubeconfig,
      kubeconfigOf({
        server: `https://127.0.0.1:${proxy.port}`,
        "certificate-authority": AUTHORITY,
      }),
    );
    const [program, ...args] = client.command;
    const process = stack.use(
      await startLineProcess(program, {
        args: [...args, kubeconfig],
        ...(client.cwd && { cwd: client.cwd }),
        env: { KUBECONFIG: kubeconfig },
        signal: AbortSignal.timeout(START_MS),
      }),
    );
    const kept = stack.move();
    return new WatchedClient(client, { gate, proxy }, process, () => kept.disposeAsync());
  }

  /** Waits until the client has what the writer has written. Returns whether that came. */
  async equals(writer: Writer, { limitMs, signal }: {
    readonly limitMs: number;
    readonly signal: AbortSignal;
  }): Promise<boolean> {
    for (const endMs = performance.now() + limitMs; performance.now() < endMs && !signal.aborted;) {
      await this.#poll();
      if (this.#failure !== undefined) return false;
      if (this.#missed(writer) === 0) return true;
      await sleepUnlessAborted(POLL_MS, { clock: realClock, signal });
    }
    return false;
  }

  /** The fault begins. */
  begin(fault: Fault, version: number): void {
    this.#requestsBefore = this.#attempts;
    this.#isUnseen = fault.isUnseen ?? false;
    this.#limitMs = fault.limitMs;
    this.#beganMs = performance.now();
    if (fault.lastsMs === undefined) this.#endedMs = this.#beganMs;
    fault.begin(this.#line, version);
  }

  /** The fault ends; `version` is that of the last write. */
  async end(fault: Fault, version: number): Promise<void> {
    await fault.end?.(this.#line, version);
    this.#endedMs ??= performance.now();
  }

  /** Nothing more is written: it has recovered when it has what the writer has written. */
  mustEqual(writer: Writer): void {
    this.#writer = writer;
  }

  /** Looks at the client until it has recovered, or its time is over. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#failure === undefined) {
      await this.#poll();
      const nowMs = performance.now();
      const requests = this.#attempts - this.#requestsBefore;
      if (requests > 0) this.#noticeMs ??= nowMs - this.#beganMs;
      this.#requests = requests;
      if (this.#writer !== undefined && this.#endedMs !== undefined) {
        if (this.#missed(this.#writer) === 0) {
          this.#recoverMs = nowMs - this.#endedMs;
          return;
        }
        if (nowMs - this.#endedMs > this.#limitMs) return;
      }
      await sleepUnlessAborted(POLL_MS, { clock: realClock, signal });
    }
  }

  /** What came of it all. */
  async outcome(writer: Writer): Promise<Outcome> {
    return {
      client: this.#client.name,
      version: this.#info.version,
      missed: this.#missed(writer),
      impossible: writer.countImpossible(this.#seen),
      noticeMs: this.#isUnseen ? undefined : this.#noticeMs,
      recoverMs: this.#recoverMs,
      requests: this.#requests,
      memoryBytes: await peakMemory(this.#info.pid),
      ...(this.#failure !== undefined && { ended: this.#failure }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill();
    await this.#dispose();
  }

  get #attempts(): number {
    return this.#line.gate.requests.length + this.#line.proxy.turnedAway;
  }

  async #poll(): Promise<void> {
    try {
      const { held, events } = await this.#process.ask("state") as Answer;
      for (const one of events) this.#seen.push(one);
      this.#held = new Map(held.map(([, key, resourceVersion]) => [key, resourceVersion]));
    } catch (error) {
      this.#failure = error instanceof Error ? error.message : String(error);
    }
  }

  #missed(writer: Writer): number {
    const { present } = writer;
    let missed = 0;
    for (const [key, resourceVersion] of present) if (this.#held.get(key) !== resourceVersion) missed++;
    for (const key of this.#held.keys()) if (key.startsWith(`${NAMESPACE}/`) && !present.has(key)) missed++;
    return missed;
  }
}

async function peakMemory(pid: number): Promise<number | undefined> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`).catch(() => "");
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
}
