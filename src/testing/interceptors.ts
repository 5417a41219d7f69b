/**
 * Functions between a client and a server that make faults.
 * @module
 */

import type { Clock } from "../util/clock.ts";

/**
 * What an {@linkcode Interceptor} can use.
 *
 * @category Testing
 */
export interface InterceptorContext {
  /** Aborted when the client aborts the request, or the server is closed. */
  readonly signal: AbortSignal;
  /** The server's clock. */
  readonly clock: Clock;
}

/**
 * Sees a request before the server does, and its answer before the client does. It may answer by itself,
 * change what `next` returns, wait, or throw: the client sees a throw as a failed connection.
 *
 * @category Testing
 */
export type Interceptor = (
  request: Request,
  next: (request: Request) => Promise<Response>,
  context: InterceptorContext,
) => Response | Promise<Response>;

/**
 * A request that the server received.
 *
 * @category Testing
 */
export interface RecordedRequest {
  readonly method: string;
  /** The path, without the query. */
  readonly path: string;
  /** The parameters of the query; of a repeated one the last. */
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Headers;
  /** The time of arrival, by the server's clock. */
  readonly timeMs: number;
  /** Whether it asks for a watch. */
  readonly isWatch: boolean;
}

/**
 * Which requests an interceptor sees.
 *
 * @category Testing
 */
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

/** The interceptors of a server, the first outermost. */
export class InterceptorChain {
  readonly #entries = new Set<Entry>();

  /** Adds one at the end; returns a function that removes it. */
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

/** Describes a request for the log. */
export function recordRequest(request: Request, timeMs: number): RecordedRequest {
  const { pathname, searchParams } = new URL(request.url);
  const query = Object.fromEntries(searchParams);
  const watch = query.watch;
  return {
    method: request.method,
    path: pathname,
    query,
    headers: request.headers,
    timeMs,
    isWatch: watch !== undefined && watch !== "0" && watch !== "false",
  };
}
