/**
 * How many may read at a time, and how much may wait for them.
 * @module
 */

import type { UserInfo } from "./authorization.ts";

// A piece of this size is worth a write.
const MOST_PIECE = 64 * 1024;
const LEAST_PIECE = 8 * 1024;

/** Options of {@linkcode Readers}. */
export interface ReadersOptions {
  readonly maxReaders: number;
  readonly maxReadersPerClient: number;
  readonly maxBufferedBytes: number;
}

/** An open watch, as those who end watches see it. */
export interface OpenWatch {
  readonly user: UserInfo | undefined;
  /** Ends it; nothing more is told. */
  stop(): void;
}

/** Counts who reads, and the bytes that wait to be read. */
export class Readers {
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

  /** Whether more may be put into a stream that has something in it. */
  get hasRoom(): boolean {
    return this.#bufferedBytes < this.#options.maxBufferedBytes;
  }

  /**
   * How much is made for a reader at a time. Where there are many it is little: the runtime, too, holds a piece for each
   * of them.
   */
  get pieceLength(): number {
    const share = Math.floor(this.#options.maxBufferedBytes / (2 * this.#count || 1));
    return Math.max(LEAST_PIECE, Math.min(MOST_PIECE, share));
  }

  /** Bytes came into a stream, or went. */
  buffered(bytes: number): void {
    this.#bufferedBytes += bytes;
  }

  /** Counts one more; `undefined` if that is too many. */
  enter(): Reader | undefined {
    if (this.#count >= this.#options.maxReaders) return undefined;
    this.#count++;
    return new Reader({
      identify: (client) => {
        const count = this.#byClient.get(client) ?? 0;
        if (count >= this.#options.maxReadersPerClient) return false;
        this.#byClient.set(client, count + 1);
        return true;
      },
      leave: (client) => {
        this.#count--;
        if (client === undefined) return;
        const count = this.#byClient.get(client) ?? 0;
        if (count > 1) this.#byClient.set(client, count - 1);
        else this.#byClient.delete(client);
      },
    });
  }
}

/** One that reads: a request, and the stream that answers it. */
export class Reader {
  readonly #count: {
    readonly identify: (client: string) => boolean;
    readonly leave: (client: string | undefined) => void;
  };
  #client: string | undefined;
  #holds = 1;

  /** @param count How it is counted. */
  constructor(count: {
    readonly identify: (client: string) => boolean;
    readonly leave: (client: string | undefined) => void;
  }) {
    this.#count = count;
  }

  /** Says whose request it is; `false` if that client has too many. */
  identify(client: string | undefined): boolean {
    if (client === undefined || !this.#count.identify(client)) return client === undefined;
    this.#client = client;
    return true;
  }

  /** A stream goes on when the request is answered. Returns how to end that, which may be called more than once. */
  hold(): () => void {
    this.#holds++;
    let isHeld = true;
    return () => {
      if (isHeld) this.release();
      isHeld = false;
    };
  }

  /** The request is answered. */
  release(): void {
    if (--this.#holds === 0) this.#count.leave(this.#client);
  }
}

/** What ends the stream of a reader that reads nothing. Without a stack: some runtimes print it, and it is nobody's fault. */
export function newStalledError(what: string, timeoutMs: number): Error {
  const error = new Error(`nobody has read the ${what} for ${timeoutMs} ms`);
  error.stack = `${error.name}: ${error.message}`;
  return error;
}

/**
 * Where a request comes from, as far as the runtime tells: Deno's and Node's servers hand the connection on to hono,
 * Bun's itself. Headers are not believed.
 */
export function remoteAddress(request: Request, env: unknown): string | undefined {
  const { remoteAddr, incoming, requestIP } = (env ?? {}) as {
    readonly remoteAddr?: { readonly hostname?: unknown };
    readonly incoming?: { readonly socket?: { readonly remoteAddress?: unknown } };
    readonly requestIP?: (request: Request) => { readonly address?: unknown } | null;
  };
  const address = remoteAddr?.hostname ?? incoming?.socket?.remoteAddress ??
    (typeof requestIP === "function" ? requestIP.call(env, request)?.address : undefined);
  return typeof address === "string" ? address : undefined;
}
