/**
 * WebSockets of the runtimes.
 * @module
 */

import type { Context } from "hono";

/**
 * The part of a server's WebSocket that watches need; those of Deno and Workers have it.
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
 * @category HTTP adapter
 */
export interface AcceptedWebSocket {
  /** Goes back to the client. */
  readonly response: Response;
  /** The server's end. */
  readonly socket: ServerWebSocket;
}
