/**
 * Serving a `fetch` function on a socket.
 * @module
 */

import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { onAbort } from "../util/abort.ts";
import { CacheError, errorMessage } from "../util/errors.ts";

/**
 * Options of {@linkcode serveFetch}.
 *
 * @example
 * ```ts
 * import type { ServeFetchOptions } from "@listwatch/cache/node";
 * const options: ServeFetchOptions = { host: "::1", port: 8787, signal: AbortSignal.timeout(60_000) };
 * ```
 */
export interface ServeFetchOptions {
  /** The address to listen on; `127.0.0.1` by default. */
  readonly host?: string;
  /** The port; 0, the default, takes a free one. */
  readonly port?: number;
  /** Stops it: the socket and every open answer are closed at once. */
  readonly signal?: AbortSignal;
}

/**
 * A server that listens.
 *
 * @example
 * ```ts
 * import type { ServedFetch } from "@listwatch/cache/node";
 * async function report(served: ServedFetch): Promise<void> {
 *   console.log(`listening on ${served.url}`);
 *   await served.finished;
 * }
 * ```
 */
export interface ServedFetch {
  /** Its address: `http://127.0.0.1:8787`. */
  readonly url: string;
  readonly port: number;
  /** Resolves when it has stopped. */
  readonly finished: Promise<void>;
}

/**
 * A server cannot listen where it was told to.
 *
 * @example
 * ```ts
 * import { ListenError, serveFetch } from "@listwatch/cache/node";
 * const stop = new AbortController();
 * const first = await serveFetch(() => new Response("hello"), { signal: stop.signal });
 * await serveFetch(() => new Response("hello"), { port: first.port }).catch((error) => {
 *   console.log(error instanceof ListenError, error.code); // true AddressInUse
 * });
 * stop.abort();
 * await first.finished;
 * ```
 */
export class ListenError extends CacheError {
  /** Makes the error; its code is `AddressInUse`, `AddressNotAvailable`, `PermissionDenied` or `Listen`. */
  constructor(code: string, message: string, options: { readonly cause?: unknown } = {}) {
    super(code, message, options);
  }
}

type Handler = (request: Request) => Response | Promise<Response>;

interface DenoLike {
  serve(
    options: { hostname: string; port: number; signal: AbortSignal; onListen: () => void },
    handler: Handler,
  ): { addr: { port: number }; finished: Promise<void> };
}

/**
 * Serves a `fetch` function, such as a hono app's or an in-memory API server's, over HTTP on Node, Deno and Bun.
 * Answers may stream for as long as they like.
 *
 * @returns When it listens.
 * @throws {ListenError} The port is taken, or the address is not this machine's.
 *
 * @example
 * ```ts
 * import { serveFetch } from "@listwatch/cache/node";
 * import { InMemoryApiServer } from "@listwatch/cache/testing";
 * const stop = new AbortController();
 * const { url, finished } = await serveFetch(new InMemoryApiServer().fetch, { signal: stop.signal });
 * console.log(await (await fetch(`${url}/healthz`)).text()); // ok
 * stop.abort();
 * await finished;
 * ```
 */
export async function serveFetch(fetch: Handler, options: ServeFetchOptions = {}): Promise<ServedFetch> {
  const { host = "127.0.0.1", port = 0, signal } = options;
  signal?.throwIfAborted();
  const { Deno: deno } = globalThis as { Deno?: DenoLike };
  try {
    return deno === undefined
      ? await serveOnNode(fetch, host, port, signal)
      : serveOnDeno(deno, fetch, host, port, signal);
  } catch (error) {
    throw newListenError(error, host, port);
  }
}

function serveOnDeno(
  deno: DenoLike,
  fetch: Handler,
  host: string,
  port: number,
  signal?: AbortSignal,
): ServedFetch {
  const stop = new AbortController();
  const server = deno.serve({ hostname: host, port, signal: stop.signal, onListen: () => {} }, fetch);
  const unlisten = signal && onAbort(signal, () => stop.abort());
  const finished = server.finished.finally(() => unlisten?.());
  return { url: urlOf(host, server.addr.port), port: server.addr.port, finished };
}

// Bun too: its own server keeps the head of an answer back until the first byte of the body, and so keeps whoever opens
// a quiet watch waiting.
async function serveOnNode(
  fetch: Handler,
  host: string,
  port: number,
  signal?: AbortSignal,
): Promise<ServedFetch> {
  // It would put classes of its own in the place of the program's Request and Response.
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false }) as Server;
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const bound = (server.address() as AddressInfo).port;
  const finished = new Promise<void>((resolve) => {
    server.once("close", () => resolve());
    if (signal === undefined) return;
    onAbort(signal, () => {
      server.close();
      server.closeAllConnections();
    });
  });
  return { url: urlOf(host, bound), port: bound, finished };
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

const REASONS: readonly (readonly [pattern: RegExp, code: string, text: string])[] = [
  [/EADDRINUSE|AddrInUse|in use/i, "AddressInUse", "the port is in use"],
  [
    /EADDRNOTAVAIL|AddrNotAvailable|not available/i,
    "AddressNotAvailable",
    "this machine has no such address",
  ],
  [
    /EACCES|PermissionDenied|permission denied/i,
    "PermissionDenied",
    "the port is reserved for the administrator",
  ],
];

function newListenError(error: unknown, host: string, port: number): ListenError {
  const { code = "", name = "" } = (error ?? {}) as { code?: string; name?: string };
  const text = `${code} ${name} ${errorMessage(error)}`;
  const known = REASONS.find(([pattern]) => pattern.test(text));
  const why = known?.[2] ?? errorMessage(error);
  return new ListenError(known?.[1] ?? "Listen", `Cannot listen on ${host}:${port}: ${why}`, {
    cause: error,
  });
}
