import type { ServerWebSocket, UpgradeWebSocket } from "../protocol/server_sockets.ts";

interface WorkersGlobals {
  readonly WebSocketPair: new () => { readonly 0: unknown; readonly 1: ServerWebSocket & { accept(): void } };
}

/**
 * Accepts WebSockets in Workers and Durable Objects, for the option `upgradeWebSocket` of `readApi`.
 *
 * The runtime does not say how much of what was sent is still unread. So a client is closed (1013) after 16
 * MiB, and resumes its watch, unless it says regularly how many messages it has read, by sending their number
 * as text; see `examples/edge/public/store.js`. An API server ignores such messages.
 *
 * @example
 * ```ts
 * import { readApi } from "@listwatch/cache/hono";
 * import { upgradeInWorkers } from "@listwatch/cache/workers";
 * const api = readApi({ resources: [], allowAnonymous: true, upgradeWebSocket: upgradeInWorkers });
 * ```
 */
export const upgradeInWorkers: UpgradeWebSocket = (_, { protocol }) => {
  const { WebSocketPair } = globalThis as unknown as WorkersGlobals;
  const { 0: client, 1: socket } = new WebSocketPair();
  socket.accept();
  const init = {
    status: 101,
    webSocket: client,
    ...(protocol !== undefined && { headers: { "Sec-WebSocket-Protocol": protocol } }),
  };
  return { response: new Response(null, init), socket };
};
