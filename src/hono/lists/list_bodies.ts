/**
 * The bodies of lists, kept while they are requested.
 * @module
 */

import { type Clock, monotonicNow } from "../../util/clock.ts";
import { encode } from "../watches/encoding.ts";
import { GZIP_LEAST_BYTES, gzipChunks } from "../answers/gzip.ts";
import type { ListText } from "./list_text.ts";
import type { Pacer } from "../readers.ts";

/** Options of {@linkcode ListBodies}. */
export interface ListBodiesOptions {
  /** How many bytes all bodies may have together; 0 keeps none. */
  readonly maxListBodyBytes: number;
  readonly clock: Clock;
}

/** What a body is of: a version of the content of one resource. */
export interface ListedContent {
  /** Differs whenever a list would. */
  readonly revision: number;
}

// The first chunk comes soon, and is the whole of most lists; the others are worth a write.
const FIRST_CHUNK = 64 * 1024;
const CHUNK = 256 * 1024;
// Pages and programs that poll do so each few seconds.
const IDLE_MS = 10_000;
// Compressing 30 MB takes half a second.
const GZIP_WAIT_MS = 2_000;

/**
 * Keeps the bodies of lists: for each form and selection the one of the present content. A body is made once, while its
 * first reader reads it, and every reader reads the same bytes. It is dropped when the content has changed, when it was not
 * requested for 10 s, and for the sake of others when there are too many bytes: the least recently used first.
 *
 * It needs no timer: what is unused is dropped at the next request, whatever that is for.
 */
export class ListBodies {
  readonly #options: ListBodiesOptions;
  readonly #byContent = new WeakMap<ListedContent, Map<string, ListBody>>();
  /** The least recently used first. */
  readonly #kept = new Set<ListBody>();
  #bytes = 0;

  /** Makes it empty. */
  constructor(options: ListBodiesOptions) {
    this.#options = options;
  }

  /** The bytes of all bodies, also of those that are dropped and still read. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of kept bodies. */
  get size(): number {
    return this.#kept.size;
  }

  /** The body of the present content under a name, if it is kept. */
  get(content: ListedContent, name: string): ListBody | undefined {
    const body = this.#byContent.get(content)?.get(name);
    if (body === undefined || body.revision !== content.revision) return undefined;
    body.usedMs = monotonicNow(this.#options.clock);
    this.#kept.delete(body);
    this.#kept.add(body);
    return body;
  }

  /** Keeps a body, unless it is of a content that has changed. Returns the one that is kept. */
  add(content: ListedContent, name: string, from: { revision: number; text: ListText }): ListBody {
    const known = this.get(content, name);
    if (known?.revision === from.revision) return known;
    const body = new ListBody(this, { ...from, content, name, clock: this.#options.clock });
    if (content.revision !== from.revision || this.#options.maxListBodyBytes === 0) {
      body.drop();
      return body;
    }
    let ofContent = this.#byContent.get(content);
    if (ofContent === undefined) this.#byContent.set(content, ofContent = new Map());
    ofContent.get(name)?.drop();
    ofContent.set(name, body);
    this.#kept.add(body);
    return body;
  }

  /** A body that is not kept, for one reader. */
  alone(text: ListText): ListBody {
    const { clock } = this.#options;
    const body = new ListBody(this, {
      text,
      revision: 0,
      content: NO_CONTENT,
      name: "",
      clock,
      isAlone: true,
    });
    body.drop();
    return body;
  }

  /** Drops what is outdated, or was not requested for a while. */
  dropUnused(): void {
    if (this.#kept.size === 0) return;
    const beforeMs = monotonicNow(this.#options.clock) - IDLE_MS;
    for (const body of this.#kept) {
      if (body.usedMs <= beforeMs || body.revision !== body.content.revision) body.drop();
    }
  }

  /**
   * Whether a body may have more bytes; drops others for it. For {@linkcode ListBody}.
   *
   * @param expectedBytes How many bytes it will have in all.
   */
  take(bytes: number, of: ListBody, expectedBytes: number = bytes): boolean {
    const { maxListBodyBytes } = this.#options;
    if (expectedBytes > maxListBodyBytes) return false;
    for (const body of this.#kept) {
      if (this.#bytes + bytes <= maxListBodyBytes) break;
      if (body !== of) body.drop();
    }
    if (this.#bytes + bytes > maxListBodyBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  /** A body is neither kept nor read any more. For {@linkcode ListBody}. */
  free(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** A body is kept no longer. For {@linkcode ListBody}. */
  forget(body: ListBody): void {
    if (!this.#kept.delete(body)) return;
    this.#byContent.get(body.content)?.delete(body.name);
  }
}

const NO_CONTENT: ListedContent = { revision: 0 };

/** The body of one list, made as far as it was read. */
export class ListBody {
  readonly #bodies: ListBodies;
  readonly #text: ListText;
  readonly #clock: Clock;
  readonly #chunks: Uint8Array<ArrayBuffer>[] = [];
  #gzipped: Promise<readonly Uint8Array<ArrayBuffer>[] | undefined> | undefined;
  #isKept = true;
  /** It has as many bytes as there is room for: readers make the rest on their own. */
  #isFull = false;
  #readers = 0;
  #bytes = 0;
  readonly #isAlone: boolean;
  /** When it was requested last. */
  usedMs: number;
  readonly revision: number;
  readonly content: ListedContent;
  readonly name: string;

  /** Made by {@linkcode ListBodies}. */
  constructor(
    bodies: ListBodies,
    from: {
      readonly revision: number;
      readonly text: ListText;
      readonly content: ListedContent;
      readonly name: string;
      readonly clock: Clock;
      /** Only its beginning is shared. */
      readonly isAlone?: boolean;
    },
  ) {
    this.#bodies = bodies;
    this.#text = from.text;
    this.#clock = from.clock;
    this.usedMs = monotonicNow(from.clock);
    this.revision = from.revision;
    this.content = from.content;
    this.name = from.name;
    this.#isAlone = from.isAlone ?? false;
  }

  /** The number of its chunks that are made. */
  get size(): number {
    return this.#chunks.length;
  }

  /** The whole body, if it has at most so many bytes. */
  whole(maxBytes: number): Uint8Array<ArrayBuffer> | undefined {
    const first = this.chunk(0);
    const isWhole = this.#text.isDone && this.#chunks.length === 1;
    return isWhole && first !== undefined && first.byteLength <= maxBytes ? first : undefined;
  }

  /** Whether it has at least so many bytes, which are made for that. */
  hasBytes(least: number): boolean {
    let bytes = 0;
    for (let i = 0; bytes < least; i++) {
      const chunk = this.chunk(i);
      if (chunk === undefined) return this.#isFull;
      bytes += chunk.byteLength;
    }
    return true;
  }

  /** Begins to read it. The reader must be closed. */
  open(): BodyReader {
    this.#readers++;
    let isOpen = true;
    return new BodyReader(this, () => {
      if (isOpen) this.#readers--;
      isOpen = false;
      this.#freeUnused();
    });
  }

  /**
   * Its chunks compressed, once for all readers; `undefined` if it is not kept as a whole. Open a reader before.
   */
  async gzipped(pacer: Pacer): Promise<readonly Uint8Array<ArrayBuffer>[] | undefined> {
    if (this.#isFull || this.#isAlone) return undefined;
    if (this.#gzipped === undefined) {
      const task = this.#gzip(pacer);
      this.#gzipped = task;
      const chunks = await task.catch(() => undefined);
      if (chunks === undefined) this.#gzipped = undefined;
      return chunks;
    }
    // In a Worker, a request that was cancelled takes its unfinished work with it.
    let timer;
    const late = new Promise<undefined>((resolve) => {
      timer = this.#clock.setTimeout(() => resolve(undefined), GZIP_WAIT_MS);
    });
    try {
      return await Promise.race([this.#gzipped.catch(() => undefined), late]);
    } finally {
      this.#clock.clearTimeout(timer);
    }
  }

  async #gzip(pacer: Pacer): Promise<readonly Uint8Array<ArrayBuffer>[] | undefined> {
    let i = 0;
    const next = async () => {
      if (pacer.isDue) await pacer.rest();
      const chunk = this.chunk(i++);
      if (chunk !== undefined) pacer.spendText(chunk.byteLength);
      return chunk;
    };
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    for await (const chunk of gzipChunks(next)) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
    }
    if (!this.#text.isDone || !this.#bodies.take(bytes, this)) return undefined;
    this.#bytes += bytes;
    return chunks;
  }

  /** It is kept no longer: its bytes are freed when its readers have ended. */
  drop(): void {
    this.#bodies.forget(this);
    this.#isKept = false;
    this.#freeUnused();
  }

  /** For {@linkcode BodyReader}: one of its chunks; `undefined` at the end, or where it is full. */
  chunk(index: number): Uint8Array<ArrayBuffer> | undefined {
    if (index < this.#chunks.length) return this.#chunks[index];
    if (this.#isFull) return undefined;
    const text = this.#text.piece(this.#isAlone || this.#chunks.length === 0 ? FIRST_CHUNK : CHUNK);
    if (text === undefined) return undefined;
    const chunk = encode(text);
    this.#chunks.push(chunk);
    const bytes = this.#bytes + chunk.byteLength;
    const expectedBytes = this.#isAlone ? bytes : bytes / this.#text.progress;
    if (this.#bodies.take(chunk.byteLength, this, expectedBytes)) this.#bytes = bytes;
    else this.#isFull = true;
    if (this.#isAlone && bytes >= GZIP_LEAST_BYTES) this.#isFull = true;
    if (this.#isFull) this.drop();
    return chunk;
  }

  /** For {@linkcode BodyReader}: what follows the last chunk. */
  rest(): ListText | undefined {
    return this.#isFull ? this.#text.rest() : undefined;
  }

  #freeUnused(): void {
    if (this.#isKept || this.#readers > 0) return;
    this.#bodies.free(this.#bytes);
    this.#bytes = 0;
  }
}

/** Reads a body from its beginning. */
export class BodyReader {
  readonly #body: ListBody;
  readonly #close: () => void;
  #chunk = 0;
  #offset = 0;
  #rest: ListText | undefined;
  #hasMade = false;

  /** Made by {@linkcode ListBody}. */
  constructor(body: ListBody, close: () => void) {
    this.#body = body;
    this.#close = close;
  }

  /** Whether the last bytes were made for this reader, and not kept. */
  get hasMade(): boolean {
    return this.#hasMade;
  }

  /**
   * The next bytes; `undefined` at the end. They are shared: read-only.
   *
   * @param length About how many, if they are made for this reader only.
   * @param sharedLength How many at most, if they are kept.
   */
  next(length: number, sharedLength: number = length): Uint8Array<ArrayBuffer> | undefined {
    if (this.#rest === undefined) {
      const { size } = this.#body;
      const chunk = this.#body.chunk(this.#chunk);
      this.#hasMade = this.#body.size > size;
      if (chunk !== undefined) {
        const part = chunk.subarray(this.#offset, this.#offset + sharedLength);
        this.#offset += part.byteLength;
        if (this.#offset === chunk.byteLength) {
          this.#chunk++;
          this.#offset = 0;
        }
        return part;
      }
      this.#rest = this.#body.rest();
      if (this.#rest !== undefined) this.#close();
    }
    this.#hasMade = true;
    const text = this.#rest?.piece(length);
    return text === undefined ? undefined : encode(text);
  }

  /** Ends it; may be called more than once. */
  close(): void {
    this.#close();
  }
}
