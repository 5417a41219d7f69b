/**
 * `fetch` over Node's own http and https.
 *
 * The native `fetch` of Node takes no certificates, and ends a watch that is silent for five minutes:
 * https://undici.nodejs.org/#/docs/api/Client (`bodyTimeout`).
 */

import {
  Agent as HttpAgent,
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
} from "node:http";
import { Agent, Agent as HttpsAgent, type AgentOptions, request as httpsRequest } from "node:https";
import { onAbort } from "../../util/abort.ts";
import { laterTurn } from "../../util/clock.ts";
import { defined } from "../../util/json.ts";
import type { FetchFunction } from "../../client/rest_config.ts";
import { parseProxy, type Proxy } from "./proxy.ts";
import type { TlsOptions } from "../kubeconfig/rest_config.ts";
import type { Socket } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";
import { toBase64 } from "../../util/bytes.ts";

// Shorter than the idle timeout of common load balancers.
const KEEP_ALIVE_PROBE_MS = 30_000;
const BODILESS = new Set([101, 204, 205, 304]);

export function newNodeFetch(options: TlsOptions & { readonly proxy?: string | false }): FetchFunction {
  const { ca, cert, key, serverName, insecureSkipVerify } = options;
  const rejectUnauthorized = insecureSkipVerify ? false : undefined;
  const tls = defined({ ca, cert, key, servername: serverName, rejectUnauthorized });
  const http = new HttpAgent({ keepAlive: true });
  if (!options.proxy) return newFetch({ http, https: new HttpsAgent({ ...tls, keepAlive: true }) });
  const proxy = parseProxy(options.proxy);
  return newFetch({ http, https: newTunnelAgent(proxy, tls), proxy });
}

export function newAgentFetch(agent: object): FetchFunction {
  return newFetch({ http: agent as HttpAgent, https: agent as HttpAgent });
}

interface Connections {
  readonly http: HttpAgent;
  readonly https: HttpAgent;
  /** Receives the requests that are not encrypted; the agent opens the tunnels of the others. */
  readonly proxy?: Proxy;
}

function newFetch(connections: Connections): FetchFunction {
  return async (input, init = {}) => {
    const url = new URL(input);
    const { method = "GET" } = init;
    const signal = init.signal ?? undefined;
    const headers = headersOf(init.headers);
    const body = init.body === undefined || init.body === null
      ? undefined
      : new Uint8Array(await new Response(init.body).arrayBuffer());
    if (body !== undefined) headers["content-length"] = String(body.length);
    const open = opener(url, { method, headers }, connections);
    for (;;) {
      signal?.throwIfAborted();
      const message = await exchange(open(), body, signal);
      if (message === STALE) continue;
      try {
        return toResponse(message, method, signal);
      } catch (error) {
        message.destroy(); // of no status that there is
        throw error;
      }
    }
  };
}

/** A function that opens the same request with each call. */
function opener(url: URL, given: RequestOptions, { http, https, proxy }: Connections): () => ClientRequest {
  if (url.protocol === "https:") return () => httpsRequest(url, { ...given, agent: https });
  if (proxy === undefined) return () => httpRequest(url, { ...given, agent: http });
  const headers = { ...given.headers, host: url.host, ...proxyHeaders(proxy) };
  const options = { ...given, headers, path: url.href };
  return proxy.origin.startsWith("https:")
    ? () => httpsRequest(proxy.origin, options)
    : () => httpRequest(proxy.origin, { ...options, agent: http });
}

const STALE = Symbol("stale");

/**
 * Sends a request and waits for the head of its response. Resolves with `STALE` if the request can safely be
 * sent again: it used a kept connection that the server had closed. Each such attempt removes one stale
 * connection from the pool.
 */
function exchange(
  request: ClientRequest,
  body: Uint8Array | undefined,
  signal: AbortSignal | undefined,
): Promise<IncomingMessage | typeof STALE> {
  return new Promise((resolve, reject) => {
    const unlisten = signal === undefined ? () => {} : onAbort(signal, () => {
      request.destroy();
      reject(signal.reason);
    });
    request.on("socket", (socket) => socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS));
    request.on("error", (error: Error & { code?: string }) => {
      unlisten();
      const isReset = error.code === "ECONNRESET" || error.code === "EPIPE";
      if (request.reusedSocket && isReset && (request.method === "GET" || request.method === "HEAD")) {
        resolve(STALE); // no effect after a response
      } else {
        reject(signal?.aborted ? signal.reason : error);
      }
    });
    // An answer of 101, which is no response: nothing was to be upgraded.
    request.on("upgrade", (_, socket: Socket) => {
      unlisten();
      socket.destroy();
      reject(new Error("the server switches to another protocol (101)"));
    });
    request.on("response", (message) => {
      message.on("close", unlisten);
      resolve(message);
    });
    request.end(body);
  });
}

function headersOf(given: RequestInit["headers"]): Record<string, string | string[]> {
  // Pairs are not put into a Headers object: it would join the values of a repeated name.
  const pairs: Iterable<readonly [string, string]> = Array.isArray(given)
    ? given as [string, string][]
    : new Headers(given);
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of pairs) {
    const key = name.toLowerCase();
    const present = headers[key];
    headers[key] = present === undefined ? value : [present, value].flat();
  }
  return headers;
}

function toResponse(message: IncomingMessage, method: string, signal: AbortSignal | undefined): Response {
  const status = message.statusCode ?? 0;
  const headers = new Headers();
  const raw = message.rawHeaders;
  for (let i = 0; i + 1 < raw.length; i += 2) headers.append(raw[i], raw[i + 1]);
  const isBodiless = BODILESS.has(status) || method === "HEAD";
  if (isBodiless) message.resume();
  const body = isBodiless ? null : toStream(message, signal);
  return new Response(body, { status, statusText: message.statusMessage ?? "", headers });
}

/**
 * The body as a stream of bytes that is read on demand. Each chunk holds everything that has arrived: a
 * server writes a watch event by event, and one chunk for each would cost one turn of the event loop for
 * each.
 */
function toStream(message: IncomingMessage, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  let isOver = false;
  // Continues the pull that waits for bytes.
  let wake = () => {};
  // A server sends each event in a TLS record, and Node hands them out one by one: all that the socket had is
  // there in the next turn.
  let isDue = false;
  const look = async () => {
    if (isDue) return;
    isDue = true;
    await laterTurn();
    isDue = false;
    wake();
  };
  return new ReadableStream({
    type: "bytes",
    start(controller) {
      const finish = (error?: unknown) => {
        if (isOver) return;
        isOver = true;
        if (error === undefined) {
          controller.close();
          controller.byobRequest?.respond(0); // ends the read that waits with a buffer of its own
        } else controller.error(error);
        wake();
      };
      const failure = (error: unknown) => signal?.aborted ? signal.reason : error;
      message.on("readable", look);
      message.on("end", () => finish());
      message.on("error", (error) => finish(failure(error)));
      message.on("close", () => {
        if (!message.readableEnded) {
          finish(failure(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" })));
        }
      });
    },
    pull(controller) {
      const take = () => {
        // Without a size, Node 26 hands out one buffer: https://github.com/nodejs/node/pull/60441
        const chunk: Uint8Array | null = isOver ? null : message.read(message.readableLength || undefined);
        // The stream takes the buffer, of which other chunks may have other parts.
        if (chunk !== null) {
          const ownsBuffer = chunk.byteLength === chunk.buffer.byteLength;
          controller.enqueue(ownsBuffer ? new Uint8Array(chunk.buffer) : new Uint8Array(chunk));
        }
        return chunk !== null || isOver;
      };
      if (take()) return;
      return new Promise<void>((resolve) => {
        wake = () => {
          if (take()) resolve();
        };
      });
    },
    cancel() {
      isOver = true;
      message.destroy();
    },
  }, { highWaterMark: 0 });
}

/** The wait for the answer to CONNECT, as long as Go's: https://go.dev/src/net/http/transport.go */
const TUNNEL_TIMEOUT_MS = 60_000;

type Callback = (error: Error | null, socket?: Socket) => void;

/** Makes an agent whose connections are TLS within a tunnel through the proxy. */
function newTunnelAgent(proxy: Proxy, tls: AgentOptions): Agent {
  const createConnection = (options: RequestOptions, callback: Callback) => {
    const { host, port } = options;
    const request = askForTunnel(`${host?.includes(":") ? `[${host}]` : host}:${port}`, proxy, tls);
    request.setTimeout(TUNNEL_TIMEOUT_MS, () => request.destroy(new Error("the proxy does not answer")));
    request.on("error", callback);
    request.once("response", ({ statusCode, statusMessage }) => {
      callback(refusal(statusCode, statusMessage));
      request.destroy();
    });
    request.once("connect", ({ statusCode, statusMessage }, socket: Socket) => {
      if (statusCode === 200) {
        socket.setTimeout(0);
        callback(null, connect({ ...options, socket } as ConnectionOptions));
      } else {
        callback(refusal(statusCode, statusMessage));
        socket.destroy();
      }
    });
    request.end();
  };
  return Object.assign(new Agent({ ...tls, keepAlive: true }), { createConnection });
}

function askForTunnel(target: string, proxy: Proxy, tls: AgentOptions): ClientRequest {
  const headers = { Host: target, ...proxyHeaders(proxy) };
  const options = { method: "CONNECT", path: target, headers, agent: false as const };
  if (!proxy.origin.startsWith("https:")) return httpRequest(proxy.origin, options);
  // The certificate of the proxy is checked against the proxy's own name.
  const { servername: _, ...others } = tls;
  return httpsRequest(proxy.origin, { ...others, ...options });
}

function refusal(status = 0, text = ""): Error {
  return new Error(`the proxy refused to open a tunnel: ${status} ${text}`.trimEnd());
}

/** The header for a proxy that asks who is there. */
function proxyHeaders({ user }: Proxy): Record<string, string> {
  if (user === undefined) return {};
  return { "Proxy-Authorization": `Basic ${toBase64(`${user.name}:${user.password}`)}` };
}
