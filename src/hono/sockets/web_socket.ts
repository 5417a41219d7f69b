/**
 * WebSockets of the runtimes.
 * @module
 */

import type { Context } from "hono";

/**
 * The part of a server's WebSocket that watches need; those of Deno and Workers have it.
 *
 * @example
 * ```ts
 * import type { ServerWebSocket } from "@listwatch/cache/hono";
 * const close = (socket: ServerWebSocket) => socket.close(1000);
 * ```
 *
 * @category HTTP adapter
 */
export interface ServerWebSocket {
  /** 1 while it is open. */
  readonly readyState: number;
  /**
   * How many bytes wait to be sent. Absent where the runtime does not say: then a client says how many messages it has read,
   * by sending their number as text, and one that does not is closed after 16 MiB.
   */
  readonly bufferedAmount?: number;
  /** Sends a message of text. */
  send(text: string): void;
  /** Closes it after what was sent. */
  close(code?: number, reason?: string): void;
  /** Calls a listener when it opens, closes or breaks, or has a message. */
  addEventListener(
    type: "open" | "close" | "error" | "message",
    listener: (event: Event) => void,
  ): void;
}

/**
 * Accepts a WebSocket: returns the response that does (101), and the server's end; `undefined` where it cannot, and the
 * request is answered as any other one. `Deno.upgradeWebSocket` is one.
 *
 * @example Deno
 * ```ts
 * import { readApi, type UpgradeWebSocket } from "@listwatch/cache/hono";
 * const upgradeWebSocket: UpgradeWebSocket = (request, options) => Deno.upgradeWebSocket(request, options);
 * const api = readApi({ resources: [], allowAnonymous: true, upgradeWebSocket });
 * ```
 *
 * @category HTTP adapter
 */
export type UpgradeWebSocket = (
  request: Request,
  options: { readonly protocol?: string },
  c: Context,
) => AcceptedWebSocket | undefined | Promise<AcceptedWebSocket | undefined>;

/**
 * What {@linkcode UpgradeWebSocket} returns.
 *
 * @example
 * ```ts
 * import type { AcceptedWebSocket } from "@listwatch/cache/hono";
 * const closeAtOnce = ({ response, socket }: AcceptedWebSocket): Response => {
 *   socket.close(1000);
 *   return response;
 * };
 * ```
 *
 * @category HTTP adapter
 */
export interface AcceptedWebSocket {
  /** Goes back to the client. */
  readonly response: Response;
  /** The server's end. */
  readonly socket: ServerWebSocket;
}
