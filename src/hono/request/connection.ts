/** What the runtime reports of the connection of a request. */

/**
 * The parts of a runtime's own request that are of use here: of `serveFetch` and hono's server for Node, of
 * Deno, of Bun.
 */
interface ConnectionEnv {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: unknown } };
  readonly outgoing?: {
    readonly closed?: boolean;
    readonly destroyed?: boolean;
    once?(event: "close", listener: () => void): unknown;
  };
  readonly remoteAddr?: { readonly hostname?: unknown };
  /** Settles when the response is sent, or its client has left. */
  readonly completed?: PromiseLike<unknown>;
  readonly requestIP?: (request: Request) => { readonly address?: unknown } | null;
}

/** Where a request comes from, if the runtime says so. Headers are not believed. */
export function remoteAddress(request: Request, env: unknown): string | undefined {
  const { remoteAddr, incoming, requestIP } = (env ?? {}) as ConnectionEnv;
  const address = remoteAddr?.hostname ?? incoming?.socket?.remoteAddress ??
    (typeof requestIP === "function" ? requestIP.call(env, request)?.address : undefined);
  return typeof address === "string" ? address : undefined;
}

/**
 * Calls back when the response of a request is in its socket to the last byte, or its client has left; at
 * once where the runtime does not report it. A response that was written and is not read waits for its
 * client, and takes memory.
 */
export function onceSent(env: unknown, callback: () => void): void {
  const { outgoing, completed } = (env ?? {}) as ConnectionEnv;
  if (typeof outgoing?.once === "function") {
    if (outgoing.closed || outgoing.destroyed) callback();
    else outgoing.once("close", callback);
  } else if (typeof completed?.then === "function") completed.then(callback, callback);
  else callback();
}
