import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { monotonicNow, realClock } from "../../util/clock.ts";
import { onAbort } from "../../util/abort.ts";
import { CacheError, errorMessage } from "../../util/errors.ts";
import { guardedLogger, limitedLogger, type Logger } from "../../util/logger.ts";
import type { UpgradeWebSocket, WebSocketEnv } from "../../protocol/server_sockets.ts";
import { newAcceptProbe } from "./accept_probe.ts";
import { sendResponse } from "./send_response.ts";
import { ServedConnections } from "./served_connections.ts";
import type { ServedSockets } from "./served_sockets.ts";
import { checkServerTls, type ServerTls } from "./server_tls.ts";

/** Options of {@linkcode serveFetch}. */
export interface ServeFetchOptions {
  /** The address to listen on; `127.0.0.1` by default. */
  readonly host?: string;
  /** The port; 0 by default, which takes a free one. */
  readonly port?: number;
  /** Stops it: closes the socket and every open response at once. */
  readonly signal?: AbortSignal;
  /** Serves over TLS with this certificate; plain HTTP by default. */
  readonly tls?: ServerTls;
  /** The time limit for a TLS handshake, and for the head of a request, in milliseconds; 30 s by default. */
  readonly headersTimeoutMs?: number;
  /** The time limit for a whole request, in milliseconds; a minute by default. */
  readonly requestTimeoutMs?: number;
  /**
   * How long a response may wait for a client that reads nothing of it, in milliseconds; 30 s by default. Its
   * connection is closed then.
   */
  readonly writeTimeoutMs?: number;
  /**
   * How long a connection stays open for the next request, in milliseconds; 75 s by default, which is longer
   * than load balancers keep theirs.
   */
  readonly keepAliveTimeoutMs?: number;
  /**
   * Whether the function may accept WebSockets, by `upgradeServed`; `false` by default: `Upgrade` headers are
   * ignored.
   */
  readonly webSockets?: boolean;
  /** Logs what the function throws, and responses that break off; the console by default. */
  readonly logger?: Logger;
}

/** A listening server. */
export interface ServedFetch {
  /** The server's URL: `http://127.0.0.1:8787`. */
  readonly url: string;
  readonly port: number;
  /** Resolves when the server has stopped. */
  readonly finished: Promise<void>;
  /**
   * Stops to listen, and closes each connection after the answer to its present request. Answers that take
   * longer than `graceMs` (0 by default) are cut off. Resolves when it has stopped.
   */
  stop(graceMs?: number): Promise<void>;
  /**
   * Replaces the certificate for new connections. Open connections stay open.
   *
   * @throws {TlsError} The certificate cannot be used.
   * @throws {TypeError} The server speaks plain HTTP.
   */
  setTls(tls: ServerTls): Promise<void>;
}

/** A server cannot listen on its host and port. */
export class ListenError extends CacheError {}

interface ServeFetchEnv extends WebSocketEnv {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

type Handler = (request: Request, env: ServeFetchEnv) => Response | Promise<Response>;

/**
 * Serves a `fetch` function, such as a hono app's or an in-memory API server's, over HTTP or HTTPS on Node,
 * Deno and Bun. Responses may stream without a time limit; a request that is not complete in time gets status
 * 408, and its connection is closed. A path with a segment `.` or `..`, or a `#`, which no `Request` can
 * show, gets status 400.
 *
 * @returns Once it listens.
 * @throws {ListenError} The port is in use, or the address is not one of this machine.
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
  const { promise: finished, resolve } = Promise.withResolvers<void>();
  const end = (graceMs: number) => void listening.close(graceMs).then(resolve);
  if (signal !== undefined) onAbort(signal, () => end(0));
  return {
    url: `${tls === undefined ? "http" : "https"}://${hostInUrl(host)}:${listening.port}`,
    port: listening.port,
    finished,
    stop: (graceMs = 0) => {
      end(graceMs);
      return finished;
    },
    setTls: async (next) => {
      if (tls === undefined) throw new TypeError("Cannot set a certificate: the server speaks plain HTTP");
      checkServerTls(next);
      await listening.setTls(next);
    },
  };
}

/**
 * Accepts WebSockets on Node, Bun and Deno, behind {@linkcode serveFetch} with `webSockets: true`, for the
 * option `upgradeWebSocket` of `readApi`. A client that sends more than a watch's client has to say is
 * disconnected.
 *
 * @example
 * ```ts
 * import { readApi } from "@listwatch/cache/hono";
 * import { serveFetch, upgradeServed } from "@listwatch/cache/node";
 * const api = readApi({ resources: [], allowAnonymous: true, upgradeWebSocket: upgradeServed });
 * const served = await serveFetch(api.fetch, { webSockets: true, signal: AbortSignal.timeout(10) });
 * await served.finished;
 * ```
 */
export const upgradeServed: UpgradeWebSocket = (_, { protocol, env }) =>
  (env as WebSocketEnv | undefined)?.acceptWebSocket?.(protocol);

const HEADERS_TIMEOUT_MS = 30_000;
const REQUEST_TIMEOUT_MS = 60_000;
const WRITE_TIMEOUT_MS = 30_000;
// A connection without traffic is probed after this time; below the idle timeouts of most networks.
const PROBE_MS = 30_000;
// Above the idle timeouts of load balancers, which would send a request into a connection that is being
// closed.
const KEEP_ALIVE_MS = 75_000;
// The most bytes of the first line and the headers: a token of the longest kind, and a selector of a thousand
// values. The API server takes 1 MiB; servers of these runtimes 16 KiB by default. A client may hold so much
// before anything is known of it.
const MOST_HEADER_BYTES = 64 * 1024;
// The longest delay of a timeout.
const CHECK_MS = 5_000;

/**
 * Node's server, which Deno and Bun have too. Their own servers have no timeout for requests, and Bun's sends
 * the head of a response only with the first byte of the body (https://github.com/oven-sh/bun/pull/33660):
 * the reader of a silent watch would receive no status.
 */
class Listening {
  readonly #fetch: Handler;
  readonly #options: ServeFetchOptions;
  // The last one listens; the others serve their open connections.
  readonly #servers: Server[] = [];
  #alreadySent!: () => Response;
  #sockets: ServedSockets | undefined;
  #handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void = () => {};
  readonly #connections: ServedConnections;
  readonly #logger: Logger;
  /** Logs failures of single requests. */
  readonly #failures: Pick<Logger, "warn" | "error">;
  #probe: ReturnType<typeof newAcceptProbe> | undefined;
  #tls: ServerTls | undefined;
  port: number = 0;

  constructor(fetch: Handler, options: ServeFetchOptions) {
    this.#fetch = fetch;
    this.#options = options;
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS, writeTimeoutMs = WRITE_TIMEOUT_MS } = options;
    const logger = guardedLogger(options.logger);
    this.#logger = logger;
    this.#failures = limitedLogger(logger, () => monotonicNow(realClock));
    this.#connections = new ServedConnections({
      handle: (incoming, outgoing) => this.#handle(incoming, outgoing),
      requestTimeoutMs,
      writeTimeoutMs,
      onUnread: ({ method, url = "" }) => {
        const path = url.split("?", 1)[0];
        this.#failures.warn(
          `${method} ${path} broke off: the client has read nothing for ${writeTimeoutMs} ms`,
        );
      },
    });
  }

  async listen(tls: ServerTls | undefined, port: number): Promise<void> {
    const { host = "127.0.0.1", headersTimeoutMs = HEADERS_TIMEOUT_MS } = this.#options;
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS, keepAliveTimeoutMs = KEEP_ALIVE_MS } = this.#options;
    const limits = {
      headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, headersTimeoutMs, requestTimeoutMs),
      // Finds clients that disappear silently, while nothing is written to them.
      keepAlive: true,
      keepAliveInitialDelay: PROBE_MS,
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: MOST_HEADER_BYTES,
    };
    this.#tls = tls;
    // Loaded here, so that programs which serve nothing do not load a server.
    const { getRequestListener } = await import("@hono/node-server");
    const { RESPONSE_ALREADY_SENT } = await import("@hono/node-server/utils/response");
    this.#alreadySent = () => RESPONSE_ALREADY_SENT;
    if (this.#options.webSockets) {
      this.#sockets ??= await (await import("./served_sockets.ts")).ServedSockets.load();
      Object.assign(limits, this.#sockets.serverOptions);
    }
    this.#handle = getRequestListener(
      (request, env) => this.#answer(request, env as unknown as ServeFetchEnv),
      // By default the library replaces the program's global Request and Response.
      {
        overrideGlobalObjects: false,
        errorHandler: (error) => badRequest(errorMessage(error)),
        // HTTP/1.0 demands no Host, and the health checks of load balancers send none.
        hostname: hostInUrl(host),
      },
    );
    const server = tls === undefined
      ? (await import("node:http")).createServer(limits)
      : (await import("node:https")).createServer({
        ...{ ...limits, ...tls },
        minVersion: "TLSv1.2",
        handshakeTimeout: headersTimeoutMs,
      });
    this.#connections.serve(server);
    this.#sockets?.serve(server);
    // A client that does not speak TLS, or leaves during the handshake.
    server.on("tlsClientError", (_, socket) => socket.destroy());
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ port, host }, resolve);
    });
    server.on("error", (error) => this.#logger.error(`the server failed: ${errorMessage(error)}`, { error }));
    this.#servers.push(server);
    this.port = (server.address() as AddressInfo).port;
    if ("Deno" in globalThis) {
      const listenAgain = async () => {
        this.#logger.error(`port ${this.port} accepts no connections any more: listening again`);
        await this.#listenAgain(this.#tls);
      };
      this.#probe ??= newAcceptProbe(host, () => this.port, listenAgain);
      this.#probe.observe(server);
    }
  }

  /** A new server takes over the port; the one before keeps its connections. */
  async #listenAgain(tls: ServerTls | undefined): Promise<void> {
    const server = this.#servers[this.#servers.length - 1];
    // Not closed again if this is tried once more.
    if (server?.listening) {
      server.once("close", () => this.#servers.splice(this.#servers.indexOf(server), 1));
      server.close();
    }
    await this.listen(tls, this.port);
  }

  async #answer(request: Request, given: ServeFetchEnv): Promise<Response> {
    const env = this.#sockets?.envOf(given) ?? given;
    const { outgoing } = env;
    let response: Response;
    try {
      response = isShownOtherwise(env.incoming.url ?? "")
        ? badRequest("it has a #, or a segment of its path is . or ..")
        : await this.#fetch(request, env);
    } catch (error) {
      if (!request.signal.aborted) {
        this.#failures.error(`${request.method} ${pathOf(request)} failed: ${errorMessage(error)}`, {
          error,
        });
      }
      if (env.accepted === undefined) return new Response("Internal error\n", { status: 500 });
      env.incoming.socket.destroy();
      return this.#alreadySent();
    }
    if (env.accepted !== undefined) {
      // The client has left before its WebSocket was open.
      response.body?.cancel().catch(() => {});
      return this.#alreadySent();
    }
    this.#sockets?.answered(env);
    sendResponse(response, outgoing).catch((error) => {
      if (request.signal.aborted) return;
      this.#failures.warn(`${request.method} ${pathOf(request)} broke off: ${errorMessage(error)}`, {
        error,
      });
    });
    return this.#alreadySent();
  }

  async setTls(tls: ServerTls): Promise<void> {
    const server = this.#servers[this.#servers.length - 1] as Server & {
      setSecureContext?: (options: ServerTls) => void;
    };
    this.#tls = tls;
    if (server.setSecureContext !== undefined) return server.setSecureContext(tls);
    // Bun has no https://nodejs.org/api/tls.html#serversetsecurecontextoptions.
    await this.#listenAgain(tls);
  }

  /** Stops to listen; answers that are under way may end within a time. */
  async close(graceMs: number): Promise<void> {
    this.#probe?.stop();
    const closed = this.#servers.map((server) =>
      new Promise<void>((resolve) => server.close(() => resolve()))
    );
    await this.#connections.finish(graceMs);
    for (const server of this.#servers) server.closeAllConnections();
    this.#connections.close();
    await Promise.all(closed);
  }
}

/**
 * Whether `Request.url` has what was sent in another form: a proxy that looked at the request has decided on
 * another path or query.
 */
function isShownOtherwise(target: string): boolean {
  return target.includes("#") || DOTS.test(target.split("?", 1)[0]);
}

const DOTS = /\/(\.|%2e){1,2}(\/|$)/i;

function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

function badRequest(why: string): Response {
  return new Response(`Bad request: ${why}\n`, { status: 400 });
}

function pathOf(request: Request): string {
  return new URL(request.url).pathname;
}

const REASONS: readonly (readonly [pattern: RegExp, code: string, text: string])[] = [
  [/EADDRINUSE|AddrInUse|in use/i, "AddressInUse", "the port is in use"],
  [
    /EADDRNOTAVAIL|AddrNotAvailable|not available|ENOTFOUND|EAI_AGAIN|no such host/i,
    "AddressNotAvailable",
    "it is not an address of this machine",
  ],
  [
    /EACCES|PermissionDenied|permission denied/i,
    "PermissionDenied",
    "ports below 1024 need administrator rights",
  ],
];

export function newListenError(error: unknown, host: string, port: number): ListenError {
  const { code = "", name = "" } = (error ?? {}) as { code?: string; name?: string };
  const text = `${code} ${name} ${errorMessage(error)}`;
  const known = REASONS.find(([pattern]) => pattern.test(text));
  const why = known?.[2] ?? errorMessage(error);
  return new ListenError(known?.[1] ?? "Listen", `Cannot listen on ${host}:${port}: ${why}`, {
    cause: error,
  });
}
