/**
 * The network between two parts of a tree: requests that may be refused, delayed, cut, or never answered.
 * @module
 */

import type { FetchFunction } from "@listwatch/cache/client";
import type { SeededRandom } from "../seeded_random.ts";
import type { VirtualTime } from "../virtual_time.ts";

/** Where a link leads. */
export interface Target {
  readonly name: string;
  /** Whether it accepts connections. */
  readonly isUp: boolean;
  fetch(path: string, init: RequestInit): Promise<Response>;
}

/** What a link is made of. */
export interface LinkOptions {
  readonly name: string;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly log: (text: string) => void;
  /** A request leaves. */
  readonly onRequest?: (request: { readonly isQuestion: boolean }) => void;
  /** What is between this end and a target, besides the link itself; nothing by default. */
  readonly between?: (target: Target) => LinkState;
}

/** How a connection breaks: with a reset that the peer notices, or without any packet. */
export type Breakage = "reset" | "silent";

/** What new connections meet. */
export type LinkState = "up" | "refused" | "silent";

const CALM_LATENCY_MS: readonly [number, number] = [1, 6];
// Made once: a stack costs more than a request.
const DISCONNECTED = new TypeError("the client has disconnected");
/** What may be on its way in one connection. */
const WINDOW_BYTES = 16 * 1024;

/** All connections that one node or reader opens. */
export class Link {
  readonly #options: LinkOptions;
  readonly #calls = new Set<Call>();
  state: LinkState = "up";
  latencyMs: readonly [number, number] = CALM_LATENCY_MS;
  /** How many bytes a chunk has at most; a frame may be cut anywhere. */
  chunkBytes: number;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.chunkBytes = options.random.pick([150, 600, Infinity, Infinity]);
  }

  /** The connections that are open. */
  get open(): number {
    return this.#calls.size;
  }

  /** A `fetch` to one target. */
  fetchTo(target: () => Target): FetchFunction {
    return (input, init) => this.#fetch(target(), String(input), init ?? {});
  }

  /** Breaks the open connections to some targets. */
  cut(how: Breakage, isAffected: (target: Target) => boolean = () => true): void {
    for (const call of [...this.#calls]) {
      if (!isAffected(call.target)) continue;
      if (how === "reset") call.fail(new TypeError("connection reset by peer"));
      else call.silence();
    }
  }

  /** Delivers, late, what was blocked. */
  heal(): void {
    this.state = "up";
    this.latencyMs = CALM_LATENCY_MS;
    for (const call of this.#calls) call.heal();
  }

  /** The program at this end is killed: nothing arrives any more. Peers notice after a reset only. */
  vanish(how: Breakage): void {
    for (const call of [...this.#calls]) call.abandon(how);
    this.#calls.clear();
  }

  #fetch(target: Target, url: string, init: RequestInit): Promise<Response> {
    const { time, random, log, name, onRequest } = this.#options;
    const { pathname, search } = new URL(url);
    const headers = new Headers(init.headers);
    const asks = isQuestion(headers);
    onRequest?.({ isQuestion: asks });
    log(`${name}: ${asks ? "asks" : "requests"} ${target.name}${pathname}${search}`);
    return new Promise<Response>((resolve, reject) => {
      const latencyMs = () => random.int(this.latencyMs[0], this.latencyMs[1]);
      const call = new Call({
        target,
        time,
        latencyMs,
        chunkBytes: () => this.chunkBytes === Infinity ? Infinity : random.int(1, this.chunkBytes),
        resolve,
        reject,
        onClosed: () => {
          this.#calls.delete(call);
          signal?.removeEventListener("abort", onAbort);
        },
      });
      const signal = init.signal ?? undefined;
      const onAbort = () => call.abort(signal!.reason);
      this.#calls.add(call);
      signal?.addEventListener("abort", onAbort, { once: true });
      time.schedule(() => {
        if (call.isClosed) return;
        const state = this.state === "up" ? this.#options.between?.(target) ?? "up" : this.state;
        if (state === "silent") return call.silence();
        if (state === "refused" || !target.isUp) {
          return call.fail(new TypeError("connection refused"));
        }
        call.begin(`${pathname}${search}`, headers);
      }, latencyMs());
    });
  }
}

/** Whether a request is for reads of the served cache, and not of the informer's reflector. */
export function isQuestion(headers: HeadersInit | undefined): boolean {
  return (new Headers(headers).get("Accept") ?? "").includes("as=PartialObjectMetadata");
}

interface CallOptions {
  readonly target: Target;
  readonly time: VirtualTime;
  readonly latencyMs: () => number;
  readonly chunkBytes: () => number;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: unknown) => void;
  readonly onClosed: () => void;
}

/** One request and its response. */
class Call {
  readonly #options: CallOptions;
  readonly #stop = new AbortController();
  /** What arrives, in order. */
  readonly #pieces: { dueMs: number; readonly bytes: number; readonly deliver: () => void }[] = [];
  #timer: unknown;
  #lastDueMs = 0;
  #inFlight = 0;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  #upstream: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #wake: (() => void) | undefined;
  #isSilent = false;
  #isAnswered = false;
  isClosed = false;

  constructor(options: CallOptions) {
    this.#options = options;
  }

  get target(): Target {
    return this.#options.target;
  }

  begin(path: string, headers: Headers): void {
    this.#run(path, headers).catch((error) => this.fail(error));
  }

  /** Nothing arrives until it heals. */
  silence(): void {
    this.#isSilent = true;
  }

  heal(): void {
    if (!this.#isSilent) return;
    this.#isSilent = false;
    if (this.#upstream === undefined && !this.#isAnswered) {
      return this.fail(new TypeError("connection timed out"));
    }
    this.#arm();
  }

  fail(error: unknown): void {
    if (this.isClosed) return;
    if (this.#isAnswered) this.#controller?.error(error);
    else this.#options.reject(error);
    this.#close("reset");
  }

  abort(reason: unknown): void {
    if (this.isClosed) return;
    if (this.#isAnswered) this.#controller?.error(reason);
    else this.#options.reject(reason);
    this.#close(this.#isSilent ? "silent" : "reset");
  }

  abandon(how: Breakage): void {
    this.#close(how);
  }

  async #run(path: string, headers: Headers): Promise<void> {
    const { target, resolve } = this.#options;
    const response = await target.fetch(path, { headers, signal: this.#stop.signal });
    if (this.isClosed) return void response.body?.cancel().catch(() => {});
    this.#upstream = response.body?.getReader();
    this.#push(0, () => {
      this.#isAnswered = true;
      const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#wake?.(),
        cancel: () => this.#close(this.#isSilent ? "silent" : "reset"),
      });
      resolve(
        new Response(response.status === 304 ? null : body, {
          status: response.status,
          headers: response.headers,
        }),
      );
    });
    await this.#pump();
  }

  async #pump(): Promise<void> {
    if (this.#upstream === undefined) return this.#push(0, () => this.#end());
    while (!this.isClosed) {
      let result: ReadableStreamReadResult<Uint8Array>;
      try {
        result = await this.#upstream.read();
      } catch {
        return this.#push(0, () => this.fail(new TypeError("connection closed by the peer")));
      }
      if (result.done) return this.#push(0, () => this.#end());
      const { value } = result;
      for (let at = 0; at < value.length;) {
        const next = Math.min(value.length, at + this.#options.chunkBytes());
        const bytes = value.slice(at, next);
        this.#push(bytes.length, () => this.#controller?.enqueue(bytes));
        at = next;
      }
      while (!this.isClosed && !this.#hasRoom()) await new Promise<void>((wake) => (this.#wake = wake));
    }
  }

  #hasRoom(): boolean {
    return this.#inFlight < WINDOW_BYTES && (this.#controller?.desiredSize ?? 1) > 0;
  }

  #push(bytes: number, deliver: () => void): void {
    if (this.isClosed) return;
    const { time, latencyMs } = this.#options;
    this.#lastDueMs = Math.max(this.#lastDueMs, time.worldNow() + latencyMs());
    this.#inFlight += bytes;
    this.#pieces.push({ dueMs: this.#lastDueMs, bytes, deliver });
    if (this.#pieces.length === 1) this.#arm();
  }

  #arm(): void {
    const { time } = this.#options;
    time.clearTimeout(this.#timer);
    if (this.#pieces.length === 0 || this.isClosed || this.#isSilent) return;
    this.#timer = time.schedule(() => this.#deliver(), this.#pieces[0].dueMs - time.worldNow());
  }

  #deliver(): void {
    const nowMs = this.#options.time.worldNow();
    while (!this.isClosed && !this.#isSilent && this.#pieces.length > 0 && this.#pieces[0].dueMs <= nowMs) {
      const { bytes, deliver } = this.#pieces.shift()!;
      this.#inFlight -= bytes;
      deliver();
    }
    this.#wake?.();
    this.#arm();
  }

  #end(): void {
    if (this.isClosed) return;
    this.#controller?.close();
    this.#close("reset");
  }

  /** A peer behind a silent network does not notice. */
  #close(how: Breakage): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#options.time.clearTimeout(this.#timer);
    this.#pieces.length = 0;
    this.#wake?.();
    this.#options.onClosed();
    if (how === "silent") return;
    this.#stop.abort(DISCONNECTED);
    this.#upstream?.cancel().catch(() => {});
  }
}
