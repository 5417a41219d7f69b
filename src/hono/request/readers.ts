/** The limits of readers: their number, their queued bytes, their time per turn; and who they are. */

import type { Context } from "hono";
import type { UserInfo } from "./gate.ts";

/** A piece of this size is worth a write. */
export const MOST_PIECE: number = 64 * 1024;
const MOST_SHARED_PIECE = 256 * 1024;
const LEAST_PIECE = 8 * 1024;

/** Options of {@linkcode Readers}. */
export interface ReadersOptions {
  readonly maxRequests: number;
  readonly maxWatches: number;
  readonly maxWatchesPerClient: number;
  readonly maxBufferedBytes: number;
}

/** An open watch, for callers that end watches. */
export interface OpenWatch {
  readonly user: UserInfo | undefined;
  /** Ends it, and sends nothing more. */
  stop(): void;
}

/**
 * Places that clients share. A client may take as many as are still free: alone it has half of them, beside
 * another one a third, and a newcomer finds some as long as there are fewer clients than places.
 */
class Places {
  #most: number;
  readonly #mostPerClient: number;
  readonly #byClient = new Map<string, number>();
  #taken = 0;

  constructor(most: number, mostPerClient: number = Infinity) {
    this.#most = most;
    this.#mostPerClient = mostPerClient;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes one, for a client or an unknown one; `false` if it has its share. */
  take(client: string | undefined): boolean {
    const own = client === undefined ? 0 : this.#byClient.get(client) ?? 0;
    if (own >= Math.min(this.#most - this.#taken, this.#mostPerClient)) return false;
    this.#taken++;
    if (client !== undefined) this.#byClient.set(client, own + 1);
    return true;
  }

  /** Lets no client take any more. */
  close(): void {
    this.#most = 0;
  }

  giveBack(client: string | undefined): void {
    this.#taken--;
    if (client === undefined) return;
    const own = this.#byClient.get(client) ?? 0;
    if (own > 1) this.#byClient.set(client, own - 1);
    else this.#byClient.delete(client);
  }
}

/** Counts the readers, and the bytes that wait to be read. */
export class Readers {
  readonly #maxBufferedBytes: number;
  readonly #requestPlaces: Places;
  readonly #watchPlaces: Places;
  #bufferedBytes = 0;
  #isDraining = false;
  /** The open watches. */
  readonly watches: Set<OpenWatch> = new Set();

  /** Makes the counters. */
  constructor({ maxRequests, maxWatches, maxWatchesPerClient, maxBufferedBytes }: ReadersOptions) {
    this.#requestPlaces = new Places(maxRequests);
    this.#watchPlaces = new Places(maxWatches, maxWatchesPerClient);
    this.#maxBufferedBytes = maxBufferedBytes;
  }

  /** The requests and watches that are being answered. */
  get count(): number {
    return this.#requestPlaces.taken + this.#watchPlaces.taken;
  }

  /** The bytes that wait in streams. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /** Whether more may be put into a stream that has something in it. */
  get hasRoom(): boolean {
    return this.#bufferedBytes < this.#maxBufferedBytes;
  }

  /**
   * How much is made for a watch at a time. Where there are many it is little: the runtime, too, holds a
   * piece for each of them.
   */
  get watchPieceLength(): number {
    return this.#pieceLength(MOST_PIECE, this.#watchPlaces);
  }

  /** How much of a list is made for one reader at a time. */
  get listPieceLength(): number {
    return this.#pieceLength(MOST_PIECE, this.#requestPlaces);
  }

  /** The same for bytes that all readers share, so that large pieces cost little memory. */
  get sharedListPieceLength(): number {
    return this.#pieceLength(MOST_SHARED_PIECE, this.#requestPlaces);
  }

  #pieceLength(most: number, { taken }: Places): number {
    const share = Math.floor(this.#maxBufferedBytes / (2 * taken || 1));
    return Math.max(LEAST_PIECE, Math.min(most, share));
  }

  /** Bytes came into a stream, or went. */
  buffered(bytes: number): void {
    this.#bufferedBytes += bytes;
  }

  /** Whether the server is about to stop. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** Ends the open watches, and refuses others. */
  drain(): void {
    this.#isDraining = true;
    this.#watchPlaces.close();
    for (const watch of Array.from(this.watches)) watch.stop();
  }

  /** Counts a request of a client that is not authenticated yet; `undefined` if that is too many. */
  enter(client: string | undefined): Reader | undefined {
    const places = this.#requestPlaces;
    return places.take(client) ? new Reader(client, { places, watchPlaces: this.#watchPlaces }) : undefined;
  }
}

/** One that reads: a request, and the stream that answers it. */
export class Reader {
  readonly #watchPlaces: Places;
  /** Where it is counted, and as whose; `undefined` once it is refused. */
  #places: Places | undefined;
  #client: string | undefined;
  #holds = 1;

  /** Made by {@linkcode Readers.enter}. */
  constructor(
    client: string | undefined,
    { places, watchPlaces }: { readonly places: Places; readonly watchPlaces: Places },
  ) {
    this.#client = client;
    this.#places = places;
    this.#watchPlaces = watchPlaces;
  }

  /** Says whose request it is, and whether it wants a watch; `false` if that client has too many. */
  identify(client: string | undefined, { isWatch }: { readonly isWatch: boolean }): boolean {
    const places = isWatch ? this.#watchPlaces : this.#places;
    if (places === this.#places && client === this.#client) return true;
    this.#places?.giveBack(this.#client);
    this.#client = client;
    this.#places = places?.take(client) ? places : undefined;
    return this.#places !== undefined;
  }

  /**
   * A stream continues after the request is answered. Returns how to end that, which may be called more than
   * once.
   */
  hold(): () => void {
    this.keep();
    let isHeld = true;
    return () => {
      if (isHeld) this.release();
      isHeld = false;
    };
  }

  /** A stream continues after the request is answered, until {@linkcode Reader.release}. */
  keep(): void {
    this.#holds++;
  }

  /** The request is answered; the answer may have to wait in its socket. */
  answered(env: unknown): void {
    onceSent(env, () => this.release());
  }

  /** A stream has ended. */
  release(): void {
    if (--this.#holds === 0) this.#places?.giveBack(this.#client);
  }
}

/**
 * What ends the stream of a reader that reads nothing. Without a stack: some runtimes print it, and it is no
 * defect.
 */
export function newStalledError(what: string, timeoutMs: number): Error {
  const error = new Error(`the client has read nothing of the ${what} for ${timeoutMs} ms`);
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

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

/** Whose request it is, for limits: that of its user, or of its address. */
export function clientOfRequest({ req, env }: Context, user: UserInfo | undefined): string | undefined {
  if (user !== undefined) return `user ${user.name}`;
  const address = clientAddress(req.raw, env);
  return address && `address ${address}`;
}

/**
 * Whose request it is by its address: with IPv6 a client has a network of 64 bits, and may send each
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
function onceSent(env: unknown, callback: () => void): void {
  const { outgoing, completed } = (env ?? {}) as ConnectionEnv;
  if (typeof outgoing?.once === "function") {
    if (outgoing.closed || outgoing.destroyed) callback();
    else outgoing.once("close", callback);
  } else if (typeof completed?.then === "function") completed.then(callback, callback);
  else callback();
}
