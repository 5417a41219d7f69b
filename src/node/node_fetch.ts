/**
 * `fetch` over Node's own http and https.
 *
 * The `fetch` of Node takes no certificates, and cuts a watch that is quiet for five minutes.
 *
 * @module
 */

import { Agent as HttpAgent, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { FetchFunction } from "../client/rest_config.ts";
import type { TlsOptions } from "./tls_fetch.ts";

// Below the idle time after which load balancers forget a connection.
const KEEP_ALIVE_PROBE_MS = 30_000;
const BODILESS = new Set([101, 204, 205, 304]);

/** Makes the function. */
export function newNodeFetch(tls: TlsOptions): FetchFunction {
  const { ca, cert, key, serverName, insecureSkipVerify } = tls;
  const agents = {
    "http:": new HttpAgent({ keepAlive: true }),
    "https:": new HttpsAgent({
      keepAlive: true,
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { servername: serverName }),
      ...(insecureSkipVerify && { rejectUnauthorized: false }),
    }),
  };
  return async (input, init = {}) => {
    const url = new URL(input);
    const { signal, method = "GET" } = init;
    signal?.throwIfAborted();
    const headers: Record<string, string | string[]> = {};
    for (const [name, value] of headerPairs(init.headers)) {
      const present = headers[name];
      headers[name] = present === undefined ? value : [present, value].flat();
    }
    const body = init.body === undefined || init.body === null
      ? undefined
      : new Uint8Array(await new Response(init.body).arrayBuffer());
    if (body !== undefined) headers["content-length"] = String(body.length);
    const isSecure = url.protocol === "https:";
    return await new Promise<Response>((resolve, reject) => {
      const request = (isSecure ? httpsRequest : httpRequest)(url, {
        method,
        headers,
        agent: isSecure ? agents["https:"] : agents["http:"],
      });
      const onAbort = () => {
        request.destroy();
        reject(signal!.reason);
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      const unlisten = () => signal?.removeEventListener("abort", onAbort);
      request.on("socket", (socket) => socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS));
      request.on("error", (error) => {
        unlisten();
        reject(signal?.aborted ? signal.reason : error);
      });
      request.on("response", (message) => {
        message.on("close", unlisten);
        resolve(toResponse(message, method, signal ?? undefined));
      });
      request.end(body);
    });
  };
}

function headerPairs(headers: RequestInit["headers"]): Iterable<readonly [string, string]> {
  if (Array.isArray(headers)) {
    return (headers as [string, string][]).map(([name, value]) => [name.toLowerCase(), value]);
  }
  return new Headers(headers);
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

/** The body as a stream of bytes; it is read as fast as its reader asks. */
function toStream(message: IncomingMessage, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let isOver = false;
      const end = (error?: unknown) => {
        if (isOver) return;
        isOver = true;
        if (error === undefined) controller.close();
        else controller.error(error);
      };
      message.on("data", (chunk: Uint8Array) => {
        if (isOver) return;
        controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
        if ((controller.desiredSize ?? 0) <= 0) message.pause();
      });
      message.on("end", () => end());
      message.on("error", (error) => end(signal?.aborted ? signal.reason : error));
      message.on("close", () => {
        if (message.complete) end();
        else {end(
            signal?.aborted
              ? signal.reason
              : Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }),
          );}
      });
      message.pause();
    },
    pull: () => void message.resume(),
    cancel: () => void message.destroy(),
  }, { highWaterMark: 256 * 1024, size: (chunk) => chunk!.byteLength });
}
