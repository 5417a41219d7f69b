/** The limits of readers: their number, and the bytes that are held for them; and who they are. */

import type { Context } from "hono";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { newWorkPacer, SharedTurns } from "../../util/shared_turns.ts";
import type { Pacer } from "../../util/turns.ts";
import type { UserInfo } from "./gate.ts";

/** A piece of this size is worth a write. */
export const MOST_PIECE: number = 64 * 1024;
const MOST_SHARED_PIECE = 256 * 1024;
const LEAST_PIECE = 8 * 1024;

export interface ReadersOptions {
  readonly maxRequests: number;
  readonly maxWatches: number;
  readonly maxWatchesPerClient: number;
  /** How many bytes may be held for all readers together, with what is kept for the next ones. */
  readonly maxReaderBytes: number;
  readonly clock: Clock;
}

/** Keeps something for the next readers, as long as there is room. */
export interface Keeper {
  readonly kept: { readonly size: number };
  /** Drops what was not used for a while: as requests come, so that it needs no timer. */
  dropUnused?(): void;
  /** Drops a part of it; `false` if it has nothing that could be dropped now. */
  dropSome(): boolean;
}

/** An open watch, for callers that end watches. */
export interface OpenWatch {
  readonly user: UserInfo | undefined;
  /** Whether the answer has an end of its own, for which a server that drains waits: a forwarded answer. */
  readonly isWhole?: boolean;
  /** Ends the watch, and sends nothing more. */
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

/** The bytes held for the readers of one client; a reader of no known client has an account of its own. */
interface Account {
  readonly key: string | Reader;
  readonly readers: Set<Reader>;
  bytes: number;
}

// The part of all bytes that is freed once they are spent, so that not every further byte ends an answer.
const LEFT_FREE = 1 / 64;
const MUCH_MORE = 2;
// While a keeper has so few, each request looks at all of them; else one a second does.
const FEW_KEPT = 16;
const SWEEP_MS = 1_000;
// While less of all bytes is held, streams are filled before their readers want more.
const MOST_BUFFERED = 1 / 4;

/**
 * Counts the readers, and the bytes that are held for them: unread output, request bodies, and the memory to
 * make an answer. There is one limit for all of it. When it is spent, what is kept for the next readers is
 * dropped; then the client for which most is held loses its largest answers, until there is room. So a client
 * that reads takes no harm from those that do not.
 */
export class Readers {
  readonly #maxBytes: number;
  readonly #requestPlaces: Places;
  readonly #watchPlaces: Places;
  readonly #keepers: Keeper[] = [];
  readonly #accounts = new Map<string | Reader, Account>();
  #heldBytes = 0;
  #keptBytes = 0;
  #isDraining = false;
  readonly #clock: Clock;
  #sweptMs = -Infinity;
  readonly watches: Set<OpenWatch> = new Set();
  /** The turns for which readers wait, so that each client has its share of the time. */
  readonly turns: SharedTurns = new SharedTurns();

  constructor({ maxRequests, maxWatches, maxWatchesPerClient, maxReaderBytes, clock }: ReadersOptions) {
    this.#clock = clock;
    this.#requestPlaces = new Places(maxRequests);
    this.#watchPlaces = new Places(maxWatches, maxWatchesPerClient);
    this.#maxBytes = maxReaderBytes;
  }

  /** The requests and watches that are being answered. */
  get count(): number {
    return this.#requestPlaces.taken + this.#watchPlaces.taken;
  }

  /** The bytes that are held for readers, without what is kept for the next ones. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** How many bytes may be held for all readers together. */
  get mostBytes(): number {
    return this.#maxBytes;
  }

  /** Whether so many bytes more may be held, without an end of any reader. */
  hasRoom(bytes: number): boolean {
    return this.#heldBytes + bytes <= this.#maxBytes;
  }

  /** Whether more may be put into a stream that has something in it. */
  get hasSpare(): boolean {
    return this.#heldBytes < this.#maxBytes * MOST_BUFFERED;
  }

  addKeeper(keeper: Keeper): void {
    this.#keepers.push(keeper);
  }

  /**
   * Counts bytes that are kept for the next readers. `false` if there is no room, whatever
   * is dropped, or none for all that is expected.
   *
   * @param dropSome Makes room for the bytes; by default each keeper does.
   */
  keep(
    bytes: number,
    expectedBytes: number = bytes,
    dropSome: () => boolean = () => this.#dropSome(),
  ): boolean {
    if (!this.hasRoom(expectedBytes)) return false;
    while (this.#freeBytes < bytes) if (!dropSome()) return false;
    this.#keptBytes += bytes;
    return true;
  }

  /** Keeps bytes, as `keep` does, but drops nothing for them. */
  keepSpare(bytes: number): boolean {
    if (this.#freeBytes < bytes) return false;
    this.#keptBytes += bytes;
    return true;
  }

  unkeep(bytes: number): void {
    this.#keptBytes -= bytes;
  }

  get #freeBytes(): number {
    return this.#maxBytes - this.#heldBytes - this.#keptBytes;
  }

  #dropSome(): boolean {
    return this.#keepers.some((keeper) => keeper.dropSome());
  }

  /**
   * The length of a watch's next piece. With many watches it is small: the runtime, too, holds a piece for
   * each of them.
   */
  get watchPieceLength(): number {
    return this.#pieceLength(MOST_PIECE, this.#watchPlaces);
  }

  /** The length of a list's next piece for one reader. */
  get listPieceLength(): number {
    return this.#pieceLength(MOST_PIECE, this.#requestPlaces);
  }

  /** The length of a list's next piece that all readers share, so that large pieces cost little memory. */
  get sharedListPieceLength(): number {
    return this.#pieceLength(MOST_SHARED_PIECE, this.#requestPlaces);
  }

  #pieceLength(most: number, { taken }: Places): number {
    const share = Math.floor(this.#maxBytes / (8 * taken || 1));
    return Math.max(LEAST_PIECE, Math.min(most, share));
  }

  /** See {@linkcode Reader.take}. */
  take(reader: Reader, bytes: number): boolean {
    while (this.#freeBytes < bytes && this.#dropSome());
    if (!this.hasRoom(bytes) && !this.#makeRoom(reader, bytes)) return false;
    const key = reader.client ?? reader;
    let account = reader.account ?? this.#accounts.get(key);
    if (account === undefined) this.#accounts.set(key, account = { key, readers: new Set(), bytes: 0 });
    reader.account = account;
    account.readers.add(reader);
    this.#count(reader, account, bytes);
    return true;
  }

  /** See {@linkcode Reader.give}. */
  give(reader: Reader, bytes: number): void {
    const { account } = reader;
    if (account === undefined) return;
    this.#count(reader, account, -bytes);
    if (reader.heldBytes > 0) return;
    reader.account = undefined;
    account.readers.delete(reader);
    if (account.readers.size === 0) this.#accounts.delete(account.key);
  }

  #count(reader: Reader, account: Account, bytes: number): void {
    reader.heldBytes += bytes;
    account.bytes += bytes;
    this.#heldBytes += bytes;
  }

  /**
   * Ends the largest answers of the client that holds most, one after the other, until there is room. `false`
   * if no client holds much more than the one that wants more: it must not end others like it.
   */
  #makeRoom(reader: Reader, bytes: number): boolean {
    const own = this.#accounts.get(reader.client ?? reader);
    while (this.#heldBytes + bytes > this.#maxBytes * (1 - LEFT_FREE)) {
      let account = own;
      let most = MUCH_MORE * (bytes + (own?.bytes ?? 0));
      for (const other of this.#accounts.values()) {
        if (other.bytes > most) [account, most] = [other, other.bytes];
      }
      let largest: Reader | undefined;
      most = account === own ? MUCH_MORE * (bytes + reader.heldBytes) : 0;
      for (const other of account?.readers ?? []) {
        if (other.heldBytes > most) [largest, most] = [other, other.heldBytes];
      }
      if (largest === undefined) return this.hasRoom(bytes);
      largest.end();
    }
    return true;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  drain(): void {
    this.#isDraining = true;
    this.#watchPlaces.close();
    for (const watch of Array.from(this.watches)) if (!watch.isWhole) watch.stop();
  }

  /** Drops what was kept for readers and not used for a while. */
  dropUnused(): void {
    const nowMs = monotonicNow(this.#clock);
    const isDue = nowMs - this.#sweptMs >= SWEEP_MS;
    if (isDue) this.#sweptMs = nowMs;
    for (const keeper of this.#keepers) {
      const { size } = keeper.kept;
      if (size > 0 && (isDue || size <= FEW_KEPT)) keeper.dropUnused?.();
    }
  }

  /** Counts a request of a client that is not authenticated yet; `undefined` if that is too many. */
  enter(client: string | undefined): Reader | undefined {
    this.dropUnused();
    const places = this.#requestPlaces;
    return places.take(client) ? new Reader(client, this, places, this.#watchPlaces) : undefined;
  }
}

/** A reader: a request, and the stream that answers it. */
export class Reader {
  /** The readers among which it is counted. */
  readonly readers: Readers;
  readonly #watchPlaces: Places;
  /** The places among which the reader is counted; `undefined` once it is refused. */
  #places: Places | undefined;
  #client: string | undefined;
  #holds = 1;
  #isEnded = false;
  /** The bytes held for the reader; only {@linkcode Readers} changes them. */
  heldBytes = 0;
  account: Account | undefined;
  /** Measures the work that is done for it. */
  readonly pacer: Pacer;
  /** Breaks its answer off, for the sake of others: all bytes are spent. */
  onSpent: () => void = () => {};
  /** Whether its client is no longer there. */
  hasLeft: () => boolean = () => false;

  constructor(client: string | undefined, readers: Readers, places: Places, watchPlaces: Places) {
    this.readers = readers;
    this.#client = client;
    this.#places = places;
    this.#watchPlaces = watchPlaces;
    this.pacer = newWorkPacer(readers.turns, () => this.#client ?? this, () => this.hasLeft());
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

  get client(): string | undefined {
    return this.#client;
  }

  /**
   * Bytes are held for it, until {@linkcode Reader.give} or its end. `false`, and they are not counted: all
   * are spent, and no reader has much more than it would have. It must wait, be refused, or end.
   */
  take(bytes: number): boolean {
    return !this.#isEnded && this.readers.take(this, bytes);
  }

  give(bytes: number): void {
    this.readers.give(this, Math.min(bytes, this.heldBytes));
  }

  /** Ends the reader's answer for the sake of others. */
  end(): void {
    this.#isEnded = true;
    this.give(Infinity);
    this.onSpent();
  }

  /** A stream continues after the request is answered. Returns how to end that, once or more often. */
  hold(): () => void {
    this.#holds++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#release();
      isHeld = false;
    };
  }

  /** The request is answered; the answer may have to wait in its socket. */
  answered(env: unknown): void {
    onceSent(env, () => this.#release());
  }

  #release(): void {
    if (--this.#holds > 0) return;
    this.give(Infinity);
    this.#places?.giveBack(this.#client);
  }
}

/** The error for the stream of a reader that reads nothing; without a stack, which some runtimes print. */
export function newStalledError(what: string, timeoutMs: number): Error {
  return withoutStack(new Error(`the client has read nothing of the ${what} for ${timeoutMs} ms`));
}

function withoutStack(error: Error): Error {
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

/** The error that ends the stream of a reader that holds more than others when all bytes are spent. */
export function newSpentError(what: string): Error {
  return withoutStack(
    new Error(`the bytes for unread answers are spent, and the client has read least of the ${what}`),
  );
}

/** What a runtime's own request says of the connection: on Node (`serveFetch`, hono's server), Deno, Bun. */
interface ConnectionEnv {
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: unknown } };
  readonly outgoing?: {
    readonly closed?: boolean;
    readonly destroyed?: boolean;
    once?(event: "close", listener: () => void): unknown;
    destroy?(): unknown;
  };
  readonly remoteAddr?: { readonly hostname?: unknown };
  /** Settles when the response is sent, or its client has left. */
  readonly completed?: PromiseLike<unknown>;
  readonly requestIP?: (request: Request) => { readonly address?: unknown } | null;
}

/** The address that a request comes from, if the runtime says it. Headers are not believed. */
export function remoteAddress(request: Request, env: unknown): string | undefined {
  const { remoteAddr, incoming, requestIP } = (env ?? {}) as ConnectionEnv;
  const address = remoteAddr?.hostname ?? incoming?.socket?.remoteAddress ??
    (typeof requestIP === "function" ? requestIP.call(env, request)?.address : undefined);
  return typeof address === "string" ? address : undefined;
}

/** The client that a request counts for in limits: its user, or its address. */
export function clientOfRequest({ req, env }: Context, user: UserInfo | undefined): string | undefined {
  if (user !== undefined) return `user ${user.name}`;
  const address = clientAddress(req.raw, env);
  return address && `address ${address}`;
}

/**
 * The client's address, for limits. An IPv6 client counts by its network of 64 bits: it may send each request
 * from another address of it.
 */
export function clientAddress(request: Request, env: unknown): string | undefined {
  const address = remoteAddress(request, env)?.split("%", 1)[0];
  if (address === undefined || !address.includes(":")) return address;
  // An IPv4 address on a socket of IPv6.
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [first, last] = address.split("::").map((part) => part === "" ? [] : part.split(":"));
  const zeros = last === undefined
    ? []
    : Array<string>(Math.max(0, 8 - first.length - last.length)).fill("0");
  const groups = [...first, ...zeros, ...last ?? []];
  return `${groups.slice(0, 4).map((group) => group.replace(/^0+(?=.)/, "").toLowerCase()).join(":")}::/64`;
}

/** Cuts the connection of a request, where the runtime lets us. */
export function cutConnection(env: unknown): void {
  ((env ?? {}) as ConnectionEnv).outgoing?.destroy?.();
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
