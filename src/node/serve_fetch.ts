/**
 * Serving a `fetch` function on a socket.
 * @module
 */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { onAbort } from "../util/abort.ts";
import { CacheError, errorMessage } from "../util/errors.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import { checkServerTls, type ServerTls } from "./server_tls.ts";

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
  /** Serves over TLS with this certificate; plain HTTP by default. */
  readonly tls?: ServerTls;
  /** How long a client may take for a TLS handshake, and for the head of a request; 30 s by default. */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to send a whole request, in milliseconds; a minute by default. */
  readonly requestTimeoutMs?: number;
  /** Where answers that break off are told, and what the function throws; the console by default. */
  readonly logger?: Logger;
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
  /**
   * Shows new connections another certificate. Those that are open go on.
   *
   * @throws {TlsError} The certificate cannot be used.
   * @throws {TypeError} It serves plain HTTP.
   */
  setTls(tls: ServerTls): Promise<void>;
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

/** What comes with a request: Node's own two sides of it. The first tells where it comes from. */
interface ServeFetchEnv {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

type Handler = (request: Request, env: ServeFetchEnv) => Response | Promise<Response>;

/**
 * Serves a `fetch` function, such as a hono app's or an in-memory API server's, over HTTP or HTTPS on Node, Deno and
 * Bun. Answers may stream for as long as they like; a client that does not finish its request in time is answered 408
 * and its connection closed.
 *
 * @returns When it listens.
 * @throws {ListenError} The port is taken, or the address is not this machine's.
 * @throws {TlsError} The certificate or its key cannot be used.
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
  const { host = "127.0.0.1", port = 0, signal, tls } = options;
  signal?.throwIfAborted();
  if (tls !== undefined) checkServerTls(tls);
  const listening = new Listening(fetch, options);
  try {
    await listening.listen(tls, port);
  } catch (error) {
    throw newListenError(error, host, port);
  }
  const finished = new Promise<void>((resolve) => {
    if (signal !== undefined) onAbort(signal, () => listening.close().then(resolve));
  });
  return {
    url: `${tls === undefined ? "http" : "https"}://${
      host.includes(":") ? `[${host}]` : host
    }:${listening.port}`,
    port: listening.port,
    finished,
    setTls: async (next) => {
      if (tls === undefined) throw new TypeError("Cannot set a certificate: this server speaks plain HTTP");
      checkServerTls(next);
      await listening.setTls(next);
    },
  };
}

const HEADERS_TIMEOUT_MS = 30_000;
const REQUEST_TIMEOUT_MS = 60_000;
// How late a timeout may be.
const CHECK_MS = 5_000;

/**
 * Node's server, which Deno and Bun have too. Their own servers wait for the rest of a request for ever, and Bun's keeps
 * the head of an answer back until the first byte of the body, and so keeps whoever opens a quiet watch waiting.
 */
class Listening {
  readonly #fetch: Handler;
  readonly #options: ServeFetchOptions;
  // Of several, the last one listens; the others serve the connections that they have.
  readonly #servers: Server[] = [];
  port: number = 0;

  constructor(fetch: Handler, options: ServeFetchOptions) {
    this.#fetch = fetch;
    this.#options = options;
  }

  async listen(tls: ServerTls | undefined, port: number): Promise<void> {
    const { host = "127.0.0.1", headersTimeoutMs = HEADERS_TIMEOUT_MS } = this.#options;
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS } = this.#options;
    const limits = {
      headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersTimeoutMs, requestTimeoutMs),
    };
    const server = createAdaptorServer({
      fetch: (request, env) => this.#answer(request, env as unknown as ServeFetchEnv),
      // It would put classes of its own in the place of the program's Request and Response.
      overrideGlobalObjects: false,
      ...(tls === undefined ? { serverOptions: limits } : {
        createServer: createTlsServer,
        serverOptions: { ...limits, ...tls, minVersion: "TLSv1.2", handshakeTimeout: headersTimeoutMs },
      }),
    }) as Server;
    // A client that speaks no TLS, or breaks off while it begins.
    server.on("tlsClientError", (_, socket) => socket.destroy());
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => {
        server.off("error", reject);
        resolve();
      });
    });
    this.#servers.push(server);
    this.port = (server.address() as AddressInfo).port;
  }

  async #answer(request: Request, env: ServeFetchEnv): Promise<Response> {
    const { outgoing } = env;
    const { logger = consoleLogger } = this.#options;
    let response: Response;
    try {
      response = await this.#fetch(request, env);
    } catch (error) {
      if (!request.signal.aborted) {
        logger.error(`${request.method} ${pathOf(request)} failed: ${errorMessage(error)}`, { error });
      }
      return new Response("Internal error\n", { status: 500 });
    }
    if (response.body === null) return response;
    const sent = isByteStream(response.body) ? new SentChunks(outgoing) : undefined;
    const reader = response.body.getReader();
    // The adapter would write what breaks off to the console, and whoever leaves breaks something off.
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        try {
          sent?.free();
          const { done, value } = await reader.read();
          // Where the read took a while, the socket may have been quicker.
          sent?.free();
          if (done) return controller.close();
          sent?.add(value);
          controller.enqueue(value);
        } catch (error) {
          if (!request.signal.aborted && !outgoing.destroyed) {
            logger.warn(`${request.method} ${pathOf(request)} broke off: ${errorMessage(error)}`, { error });
          }
          outgoing.destroy();
          controller.close();
        }
      },
      cancel: (reason) => reader.cancel(reason),
    }, { highWaterMark: 0 });
    return new Response(body, response);
  }

  async setTls(tls: ServerTls): Promise<void> {
    const server = this.#servers[this.#servers.length - 1] as Server & {
      setSecureContext?: (options: ServerTls) => void;
    };
    if (server.setSecureContext !== undefined) return server.setSecureContext(tls);
    // Bun has no such thing: another server takes the port over.
    server.once("close", () => this.#servers.splice(this.#servers.indexOf(server), 1));
    server.close();
    await this.listen(tls, this.port);
  }

  async close(): Promise<void> {
    const closed = this.#servers.map((server) =>
      new Promise<void>((resolve) => server.close(() => resolve()))
    );
    for (const server of this.#servers) server.closeAllConnections();
    await Promise.all(closed);
  }
}

/** Whether the chunks that are read are the reader's alone: what is put into a stream of bytes is taken from its source. */
function isByteStream(stream: ReadableStream<Uint8Array>): boolean {
  try {
    stream.getReader({ mode: "byob" }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

/**
 * The chunks of one answer whose memory is given back once the socket has taken them. Otherwise they wait for a collection
 * of garbage, in hundreds of megabytes where hundreds of readers begin together.
 */
class SentChunks {
  readonly #outgoing: ServerResponse;
  #chunks: Uint8Array[] = [];

  constructor(outgoing: ServerResponse) {
    this.#outgoing = outgoing;
  }

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
  }

  /** Frees them if they are written; called when the next chunk is asked for, and when it is there. */
  free(): void {
    // The adapter asks for the first few before it writes the head.
    if (!this.#outgoing.headersSent || this.#outgoing.writableLength > 0) return;
    // Node 20 cannot.
    for (const { buffer } of this.#chunks) (buffer as { transfer?: (length: number) => void }).transfer?.(0);
    this.#chunks = [];
  }
}

function pathOf(request: Request): string {
  return new URL(request.url).pathname;
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
