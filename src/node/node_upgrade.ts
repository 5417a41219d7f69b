/**
 * Requests that upgrade their connection, over Node's own http and https.
 * @module
 */

import {
  type ClientRequest,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
} from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { OpenUpgrade } from "../util/upgrade.ts";
import { connectDenoTls, type DenoTls } from "./deno_tls_socket.ts";
import { KEEP_ALIVE_PROBE_MS, toResponse } from "./node_fetch.ts";
import { socketStreams } from "./socket_streams.ts";
import type { TlsOptions } from "./tls_options.ts";

/** Makes the function that sends them. */
export function newNodeUpgrade(tls: TlsOptions): OpenUpgrade {
  const { ca, serverName, insecureSkipVerify = false } = tls;
  const { Deno: deno } = globalThis as { Deno?: DenoTls };
  const secure: RequestOptions & { ca?: string; servername?: string; rejectUnauthorized?: boolean } = {
    agent: false,
    ...(ca !== undefined && { ca }),
    ...(serverName !== undefined && { servername: serverName }),
    ...(insecureSkipVerify && { rejectUnauthorized: false }),
  };
  return async (input, { method, headers, signal }) => {
    signal.throwIfAborted();
    const url = new URL(input);
    const options: RequestOptions = { method, headers: lines(method, headers) };
    const use = { method, signal };
    if (url.protocol !== "https:") return await exchange(httpRequest(url, { ...options, agent: false }), use);
    if (deno === undefined) return await exchange(httpsRequest(url, { ...options, ...secure }), use);
    const socket = await connectDenoTls(deno, url, tls);
    const plain = new URL(url);
    plain.protocol = "http:";
    const createConnection = (): Duplex => socket;
    return await exchange(
      httpRequest(plain, {
        ...options,
        headers: { ...options.headers as object, host: url.host },
        createConnection,
      }),
      use,
    );
  };
}

function exchange(
  request: ClientRequest,
  { method, signal }: { readonly method: string; readonly signal: AbortSignal },
): ReturnType<OpenUpgrade> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      request.destroy();
      reject(signal.reason);
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const unlisten = () => signal.removeEventListener("abort", onAbort);
    request.on("error", (error) => {
      unlisten();
      reject(error);
    });
    request.on("response", (message: IncomingMessage) => {
      message.on("close", unlisten);
      resolve(toResponse(message, method, signal));
    });
    request.on("upgrade", (message: IncomingMessage, socket: Socket, head: Uint8Array) => {
      unlisten();
      socket.on("error", () => socket.destroy());
      socket.setKeepAlive?.(true, KEEP_ALIVE_PROBE_MS);
      socket.setNoDelay?.(true);
      const { readable, writable } = socketStreams(socket, head);
      resolve({ headers: headersOf(message), readable, writable });
    });
    request.end();
  });
}

/** A name that is there twice becomes two lines. */
function lines(
  method: string,
  headers: readonly (readonly [string, string])[],
): Record<string, string | string[]> {
  // Without it, runtimes announce a body in chunks.
  const all: Record<string, string[]> = method === "GET" ? {} : { "content-length": ["0"] };
  for (const [name, value] of headers) (all[name.toLowerCase()] ??= []).push(value);
  return Object.fromEntries(
    Object.entries(all).map((
      [name, [first, ...more]],
    ) => [name, more.length === 0 ? first : [first, ...more]]),
  );
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) headers.append(rawHeaders[i], rawHeaders[i + 1]);
  return headers;
}
