/** Functions between a client and a server, and ready-made ones that make faults. */

import { newStatus, REASONS } from "../meta/status.ts";
import { wantsWatch } from "../protocol/request_url.ts";
import { onAbort, sleep } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { statusResponse } from "./api_errors.ts";

/** The means of an {@linkcode Interceptor}. */
export interface InterceptorContext {
  /** Aborted when the client aborts the request, or the server is closed. */
  readonly signal: AbortSignal;
  /** The server's clock. */
  readonly clock: Clock;
}

/**
 * Sees a request before the server does, and its answer before the client does. It may answer by itself,
 * change what `next` returns, wait, or throw: the client sees a throw as a failed connection.
 */
export type Interceptor = (
  request: Request,
  next: (request: Request) => Promise<Response>,
  context: InterceptorContext,
) => Response | Promise<Response>;

/** A request that the server received. */
export interface RecordedRequest {
  readonly method: string;
  /** The path, without the query. */
  readonly path: string;
  /** The parameters of the query; the last value of a repeated one. */
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Headers;
  /** The time of arrival, by the server's clock. */
  readonly timeMs: number;
  /** Whether the request is a watch. */
  readonly isWatch: boolean;
}

/** The requests that an interceptor sees. */
export interface InterceptOptions {
  /** Only requests for which this is true; all by default. */
  readonly match?: (request: RecordedRequest) => boolean;
  /** At most this many requests; unlimited by default. */
  readonly times?: number;
}

interface Entry {
  readonly interceptor: Interceptor;
  readonly match: (request: RecordedRequest) => boolean;
  remaining: number;
}

export class InterceptorChain {
  readonly #entries = new Set<Entry>();

  add(interceptor: Interceptor, options: InterceptOptions = {}): () => void {
    const { match = () => true, times = Infinity } = options;
    const entry: Entry = { interceptor, match, remaining: times };
    this.#entries.add(entry);
    return () => {
      this.#entries.delete(entry);
    };
  }

  /** Passes a request through the interceptors that match it, and then to `serve`. */
  run(
    request: Request,
    record: RecordedRequest,
    options: InterceptorContext & { readonly serve: (request: Request) => Promise<Response> },
  ): Promise<Response> {
    const { serve, signal, clock } = options;
    const chosen: Interceptor[] = [];
    for (const entry of this.#entries) {
      if (entry.remaining <= 0 || !entry.match(record)) continue;
      entry.remaining--;
      chosen.push(entry.interceptor);
    }
    const call = async (index: number, request: Request): Promise<Response> => {
      if (index === chosen.length) return await serve(request);
      return await chosen[index](request, (changed) => call(index + 1, changed), { signal, clock });
    };
    return call(0, request);
  }
}

export function recordRequest(request: Request, timeMs: number): RecordedRequest {
  const { pathname, searchParams } = new URL(request.url);
  return {
    method: request.method,
    path: pathname,
    query: Object.fromEntries(searchParams),
    headers: request.headers,
    timeMs,
    isWatch: wantsWatch(searchParams),
  };
}

/** Options of {@linkcode answerStatus}. */
export interface AnswerStatusOptions {
  /** The reason as one word; that of the code by default. */
  readonly reason?: string;
  readonly message?: string;
  /** Sends a `Retry-After` header. */
  readonly retryAfterSeconds?: number;
}

/**
 * Answers with a `Status`; the server does not see the request.
 *
 * @example
 * ```ts
 * import * as faults from "@listwatch/cache/testing";
 * const clock = new faults.FakeClock();
 * const server = new faults.InMemoryApiServer({ clock });
 * server.intercept(faults.answerStatus(429, { retryAfterSeconds: 1 }), { times: 1 });
 * const response = await server.fetch("http://in-memory/api/v1/pods");
 * console.log(response.status, response.headers.get("Retry-After")); // 429 1
 * server.intercept(faults.refuseConnection(), { times: 1 });
 * await server.fetch("http://in-memory/version").catch((error) => console.log(error.message)); // fetch failed
 * server.intercept(faults.delayRequest(5_000), { times: 1 });
 * server.intercept(faults.cutBody(10), { times: 1 });
 * const cut = server.fetch("http://in-memory/version");
 * await clock.advance(5_000);
 * console.log((await (await cut).text()).length); // 10
 * server.intercept(faults.splitBody([1, 2, 7])); // chunks of these sizes
 * server.intercept(faults.stallBody(0), { match: (request) => request.isWatch }); // watches without any event
 * server.intercept(faults.hang(), { match: (request) => request.path === "/api/v1/secrets" });
 * server.close();
 * ```
 */
export function answerStatus(code: number, options: AnswerStatusOptions = {}): Interceptor {
  const { reason = code === 410 ? "Expired" : REASONS[code] ?? "Unknown", retryAfterSeconds } = options;
  const message = options.message ?? `the in-memory server answers ${code} by a fault`;
  const details = retryAfterSeconds === undefined ? undefined : { retryAfterSeconds };
  return () => statusResponse(newStatus(code, reason, message, details));
}

/** Never answers: the request ends when the client aborts it or the server is closed. */
export function hang(): Interceptor {
  return (_request, _next, { signal }) =>
    new Promise((_resolve, reject) => void onAbort(signal, () => reject(signal.reason)));
}

/** Fails as if nothing listened at the address. */
export function refuseConnection(): Interceptor {
  return (request) => Promise.reject(connectionRefused(request.url));
}

/** Waits, by the server's clock, before the server sees the request. */
export function delayRequest(delayMs: number): Interceptor {
  return async (request, next, { signal, clock }) => {
    await sleep(delayMs, { signal, clock });
    return await next(request);
  };
}

/** Options of {@linkcode cutBody}. */
export interface CutBodyOptions {
  /** `end`: the body ends as if it were complete, the default. `reset`: it breaks with an error. */
  readonly how?: "end" | "reset";
}

/** Ends an answer's body after this many bytes; the cut may be within a character. */
export function cutBody(afterBytes: number, options: CutBodyOptions = {}): Interceptor {
  const { how = "end" } = options;
  return rewriteBody(() => {
    let remaining = afterBytes;
    return (chunk, out) => {
      if (chunk.byteLength <= remaining) {
        remaining -= chunk.byteLength;
        out.push(chunk);
        if (remaining > 0) return;
      } else if (remaining > 0) out.push(chunk.subarray(0, remaining));
      out.close(how === "reset" ? connectionReset() : undefined);
    };
  });
}

/** Passes this many bytes of an answer's body and then nothing more, with the connection open. */
export function stallBody(afterBytes: number): Interceptor {
  return rewriteBody(() => {
    let remaining = afterBytes;
    return (chunk, out) => {
      if (remaining > 0) out.push(chunk.subarray(0, remaining));
      remaining -= Math.min(remaining, chunk.byteLength);
    };
  });
}

/**
 * Cuts an answer's body into chunks of the given sizes, in turn and repeatedly, also within an event or a
 * character.
 * @throws {RangeError} There is no size, or one below 1.
 */
export function splitBody(sizes: readonly number[]): Interceptor {
  if (sizes.length === 0 || sizes.some((size) => !(size >= 1))) {
    throw new RangeError("Cannot split a body into chunks of no bytes: give at least one size of 1 or more");
  }
  return rewriteBody(() => {
    let turn = 0;
    return (chunk, out) => {
      for (let offset = 0; offset < chunk.byteLength;) {
        const size = sizes[turn++ % sizes.length];
        out.push(chunk.subarray(offset, offset + size));
        offset += size;
      }
    };
  });
}

/** The rejection of `fetch` where nothing listens, in Node's shape. */
export function connectionRefused(url: string): TypeError {
  const { host } = new URL(url);
  const cause = Object.assign(new Error(`connect ECONNREFUSED ${host}`), { code: "ECONNREFUSED" });
  return new TypeError("fetch failed", { cause });
}

/** The error of a body whose connection is reset, in Node's shape. */
export function connectionReset(): TypeError {
  const cause = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  return new TypeError("terminated", { cause });
}

interface Output {
  push(chunk: Uint8Array): void;
  close(error?: unknown): void;
}

type Rewriter = (chunk: Uint8Array, out: Output) => void;

/** Passes the body through a rewriter; each answer has its own. */
function rewriteBody(newRewriter: () => Rewriter): Interceptor {
  return async (request, next) => {
    const response = await next(request);
    if (response.body === null) return response;
    const { status, statusText, headers } = response;
    return new Response(rewritten(response.body, newRewriter()), { status, statusText, headers });
  };
}

function rewritten(source: ReadableStream<Uint8Array>, rewrite: Rewriter): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const pending: Uint8Array[] = [];
  let ending: { readonly error: unknown } | undefined;
  const out: Output = { push: (chunk) => void pending.push(chunk), close: (error) => ending ??= { error } };
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      // Continues to read without output: an error of the source must reach the client.
      while (pending.length === 0 && ending === undefined) {
        const { done, value } = await reader.read();
        if (done) out.close();
        else rewrite(value, out);
        if (ending !== undefined) reader.cancel().catch(() => {});
      }
      const chunk = pending.shift();
      if (chunk !== undefined) controller.enqueue(chunk.slice()); // one read, one chunk
      else if (ending!.error === undefined) {
        controller.close();
        controller.byobRequest?.respond(0);
      } else controller.error(ending!.error);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
