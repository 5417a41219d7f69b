/**
 * The limits of readers: their number, their queued bytes, their time per turn.
 * @module
 */

import type { TurnQueue } from "../util/turn_queue.ts";
import type { UserInfo } from "./access/authorization.ts";

/** A piece of this size is worth a write. */
export const MOST_PIECE: number = 64 * 1024;
const MOST_SHARED_PIECE = 256 * 1024;
const LEAST_PIECE = 8 * 1024;

/** Options of {@linkcode Readers}. */
export interface ReadersOptions {
  readonly maxReaders: number;
  readonly maxReadersPerClient: number;
  readonly maxBufferedBytes: number;
}

/** An open watch, for callers that end watches. */
export interface OpenWatch {
  readonly user: UserInfo | undefined;
  /** Ends it, and sends nothing more. */
  stop(): void;
}

/** Counts the readers, and the bytes that wait to be read. */
export class Readers implements ReaderCount {
  readonly #options: ReadersOptions;
  readonly #byClient = new Map<string, number>();
  #count = 0;
  #bufferedBytes = 0;
  /** The open watches. */
  readonly watches: Set<OpenWatch> = new Set();

  /** Makes the counters. */
  constructor(options: ReadersOptions) {
    this.#options = options;
  }

  /** The requests and watches that are being answered. */
  get count(): number {
    return this.#count;
  }

  /** The bytes that wait in streams. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /** Whether more may be put into a stream that has something in it. */
  get hasRoom(): boolean {
    return this.#bufferedBytes < this.#options.maxBufferedBytes;
  }

  /**
   * How much is made for a reader at a time. Where there are many it is little: the runtime, too, holds a piece for each
   * of them.
   */
  get pieceLength(): number {
    return this.#pieceLength(MOST_PIECE);
  }

  /** The same for bytes that all readers share, so that large pieces cost little memory. */
  get sharedPieceLength(): number {
    return this.#pieceLength(MOST_SHARED_PIECE);
  }

  #pieceLength(most: number): number {
    const share = Math.floor(this.#options.maxBufferedBytes / (2 * this.#count || 1));
    return Math.max(LEAST_PIECE, Math.min(most, share));
  }

  /** Bytes came into a stream, or went. */
  buffered(bytes: number): void {
    this.#bufferedBytes += bytes;
  }

  /** Counts one more; `undefined` if that is too many. */
  enter(): Reader | undefined {
    if (this.#count >= this.#options.maxReaders) return undefined;
    this.#count++;
    return new Reader(this);
  }

  identify(client: string): boolean {
    const count = this.#byClient.get(client) ?? 0;
    if (count >= this.#options.maxReadersPerClient) return false;
    this.#byClient.set(client, count + 1);
    return true;
  }

  leave(client: string | undefined): void {
    this.#count--;
    if (client === undefined) return;
    const count = this.#byClient.get(client) ?? 0;
    if (count > 1) this.#byClient.set(client, count - 1);
    else this.#byClient.delete(client);
  }
}

/** Where a {@linkcode Reader} is counted. */
interface ReaderCount {
  /** Whether one more of a client is not too many; then it is counted. */
  identify(client: string): boolean;
  /** One fewer, of a client or of no known one. */
  leave(client: string | undefined): void;
}

/** One that reads: a request, and the stream that answers it. */
export class Reader {
  readonly #count: ReaderCount;
  #client: string | undefined;
  #holds = 1;

  /** @param count How it is counted. */
  constructor(count: ReaderCount) {
    this.#count = count;
  }

  /** Says whose request it is; `false` if that client has too many. */
  identify(client: string | undefined): boolean {
    if (client === undefined || !this.#count.identify(client)) return client === undefined;
    this.#client = client;
    return true;
  }

  /** A stream continues after the request is answered. Returns how to end that, which may be called more than once. */
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

  /** The request is answered, or a stream has ended. */
  release(): void {
    if (--this.#holds === 0) this.#count.leave(this.#client);
  }
}

/** What ends the stream of a reader that reads nothing. Without a stack: some runtimes print it, and it is no defect. */
export function newStalledError(what: string, timeoutMs: number): Error {
  const error = new Error(`the client has read nothing of the ${what} for ${timeoutMs} ms`);
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

// A unit is about 20 nanoseconds: some milliseconds' worth in a turn.
const UNITS_PER_TURN = 150_000;

// To encode it, and to hand it to the socket.
const UNITS_PER_CHARACTER = 0.5;

/** What it takes to decode an object. */
export const OPEN_UNITS = 1_200;

/**
 * Counts work, so that other work gets a turn after some milliseconds. Counted and not timed: the same work gives way
 * at the same places whatever clock there is.
 */
export class Pacer {
  readonly #turns: TurnQueue;
  #units = 0;

  /** @param turns Where all work waits for its turn, one after the other. */
  constructor(turns: TurnQueue) {
    this.#turns = turns;
  }

  /** Some work was done. `true`: it is time for {@linkcode Pacer.rest}. */
  spend(units: number): boolean {
    this.#units += units;
    return this.#units >= UNITS_PER_TURN;
  }

  /** Text was made for one of the readers, who share this. */
  spendText(length: number): void {
    this.#units += length * UNITS_PER_CHARACTER;
  }

  /** Whether it is time for {@linkcode Pacer.rest}: much was done in this turn, or others wait for theirs. */
  get isDue(): boolean {
    return this.#units >= UNITS_PER_TURN || this.#turns.isBusy;
  }

  /** Gives other work a turn. */
  rest(): Promise<void> {
    this.#units = 0;
    return this.#turns.next();
  }
}
