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
 * Whose request it is by its address, for limits: with IPv6 a client has a network of 64 bits, and may send each
 * request from another address of it.
 */
export function clientAddress(request: Request, env: unknown): string | undefined {
  const address = remoteAddress(request, env);
  if (address === undefined || !address.includes(":")) return address;
  // An IPv4 address on a socket of IPv6.
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [first, last] = address.split("%", 1)[0].split("::").map((part) =>
    part === "" ? [] : part.split(":")
  );
  const zeros = last === undefined
    ? []
    : Array<string>(Math.max(0, 8 - first.length - last.length)).fill("0");
  const groups = [...first, ...zeros, ...last ?? []];
  return `${groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, "").toLowerCase()).join(":")}::/64`;
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
