/**
 * The body of one list, and its readers.
 * @module
 */

import { type Clock, monotonicNow } from "../../util/clock.ts";
import { concatenated } from "../../util/concatenated.ts";
import { GZIP_LEAST_BYTES, gzipChunks } from "./gzip.ts";
import { PrefixableGzip } from "./gzip_prefix.ts";
import type { Pacer } from "../readers.ts";
import { encode } from "../watches/encoding.ts";
import type { ListText } from "./list_text.ts";

/** What bodies are of: the content of one resource. */
export interface ListedContent {
  readonly resourceVersion: string;
  /** How often a state of an object may have replaced another one of the same resourceVersion. */
  readonly rewrites: number;
  readonly hashes: {
    /** The hash differs whenever the objects of a namespace do. */
    versionOf(namespace: string): { readonly hash: string };
  };
}

/** Which body. */
export interface BodyName {
  /** The namespace of its objects; empty for all. */
  readonly namespace: string;
  /** Requests with the same name have the same body. */
  readonly name: string;
}

/** The version of the content of a namespace, for bodies. */
export function contentVersion({ hashes, rewrites }: ListedContent, namespace: string): string {
  return `${rewrites} ${hashes.versionOf(namespace).hash}`;
}

/** What bodies share: the bytes that all may have together. */
export interface BodyBudget {
  /**
   * Whether a body may have more bytes; drops others for it.
   *
   * @param expectedBytes How many bytes it will have in all.
   */
  take(bytes: number, of: ListBody, expectedBytes?: number): boolean;
  /** A body is neither kept nor read any more. */
  free(bytes: number): void;
  /** A body is kept no longer. */
  forget(body: ListBody): void;
}

// The first chunk comes soon, and is the whole of most lists; the others are worth a write.
const FIRST_CHUNK = 64 * 1024;
const CHUNK = 256 * 1024;
// Compressing 30 MB takes half a second.
const GZIP_WAIT_MS = 2_000;

/** The body of one list but for its head, made as far as it was read. */
export class ListBody {
  readonly #budget: BodyBudget;
  readonly #text: ListText;
  readonly #clock: Clock;
  readonly #chunks: Uint8Array<ArrayBuffer>[] = [];
  #gzipped: Promise<PrefixableGzip | undefined> | undefined;
  /** The last whole that was made of it, for the readers of one version. */
  #whole: { readonly head: ListHead; readonly chunks: readonly Uint8Array<ArrayBuffer>[] } | undefined;
  #head: ListHead | undefined;
  #isKept = true;
  /** It has as many bytes as there is room for: readers make the rest on their own. */
  #isFull = false;
  #readers = 0;
  #bytes = 0;
  readonly #isAlone: boolean;
  readonly #onClosed: (() => void) | undefined;
  /** When it was requested last. */
  usedMs: number;
  /** The {@linkcode contentVersion} that it is of. */
  readonly version: string;
  readonly content: ListedContent | undefined;
  readonly namespace: string;
  readonly name: string;

  /** Made by {@linkcode ListBodies}. */
  constructor(
    budget: BodyBudget,
    from: {
      readonly version: string;
      readonly text: ListText;
      /** What it is of, if it may be kept. */
      readonly content: ListedContent | undefined;
      readonly namespace: string;
      readonly name: string;
      readonly clock: Clock;
      /** Only its beginning is shared. */
      readonly isAlone?: boolean;
      /** Called when a reader has come to the end, or stops. */
      readonly onClosed?: () => void;
    },
  ) {
    this.#budget = budget;
    this.#text = from.text;
    this.#clock = from.clock;
    this.usedMs = monotonicNow(from.clock);
    this.version = from.version;
    this.content = from.content;
    this.namespace = from.namespace;
    this.name = from.name;
    this.#isAlone = from.isAlone ?? false;
    this.#onClosed = from.onClosed;
  }

  /** Whether a list would have the same bytes now, but for its head. */
  get isCurrent(): boolean {
    const { content, namespace, version } = this;
    if (content === undefined || contentVersion(content, namespace) !== version) return false;
    return this.#text.isLasting || this.#text.resourceVersion === content.resourceVersion;
  }

  /** The number of its chunks that are made. */
  get size(): number {
    return this.#chunks.length;
  }

  /** For {@linkcode BodyReader}: the only chunk. */
  get onlyChunk(): Uint8Array<ArrayBuffer> | undefined {
    const first = this.chunk(0);
    return this.#text.isDone && this.#chunks.length === 1 ? first : undefined;
  }

  /** What a byte takes to make, against one of JSON. */
  get weight(): number {
    return this.#text.weight;
  }

  /** For {@linkcode BodyReader}: whether it has at least so many bytes, which are made for that. */
  async hasBytes(least: number, pacer: Pacer): Promise<boolean> {
    let bytes = 0;
    for (let i = 0; bytes < least; i++) {
      if (pacer.isDue) await pacer.rest();
      const chunk = this.chunk(i);
      if (chunk !== undefined) pacer.spendText(chunk.byteLength * this.weight);
      if (chunk === undefined) return this.#isFull;
      bytes += chunk.byteLength;
    }
    return true;
  }

  /** Begins to read it, with the head of now. The reader must be closed. */
  open(): BodyReader {
    this.#readers++;
    let isOpen = true;
    let isClosed = false;
    const resourceVersion = this.isCurrent ? this.content!.resourceVersion : this.#text.resourceVersion;
    if (this.#head?.resourceVersion !== resourceVersion) {
      this.#head = { resourceVersion, bytes: encode(this.#text.head(resourceVersion)) };
    }
    const detach = () => {
      if (isOpen) this.#readers--;
      isOpen = false;
      this.#freeUnused();
    };
    const close = () => {
      detach();
      if (!isClosed) this.#onClosed?.();
      isClosed = true;
    };
    return new BodyReader(this, this.#head, { detach, close });
  }

  /** For {@linkcode BodyReader}: all of it compressed; `undefined` if it is not kept as a whole. */
  async gzipped(head: ListHead, pacer: Pacer): Promise<readonly Uint8Array<ArrayBuffer>[] | undefined> {
    const gzipped = await this.#gzippedOnce(pacer);
    if (gzipped === undefined || this.#whole?.head === head) return gzipped && this.#whole?.chunks;
    const chunks = gzipped.with(head.bytes);
    this.#whole = { head, chunks };
    return chunks;
  }

  async #gzippedOnce(pacer: Pacer): Promise<PrefixableGzip | undefined> {
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

  async #gzip(pacer: Pacer): Promise<PrefixableGzip | undefined> {
    let i = 0;
    let length = 0;
    const next = async () => {
      if (pacer.isDue) await pacer.rest();
      const chunk = this.chunk(i++);
      if (chunk === undefined) return undefined;
      pacer.spendText(chunk.byteLength * this.weight);
      length += chunk.byteLength;
      return chunk;
    };
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    let bytes = 0;
    for await (const chunk of gzipChunks(next)) {
      chunks.push(chunk);
      bytes += chunk.byteLength;
    }
    if (!this.#text.isDone || this.#isFull) return undefined;
    const gzipped = PrefixableGzip.of(chunks, length);
    // The first and the last chunk are there a second time, with the head and the end.
    bytes += (chunks[0]?.byteLength ?? 0) + (chunks[chunks.length - 1]?.byteLength ?? 0);
    if (gzipped === undefined || !this.#budget.take(bytes, this)) return undefined;
    this.#bytes += bytes;
    return gzipped;
  }

  /** It is kept no longer: its bytes are freed when its readers have ended. */
  drop(): void {
    this.#budget.forget(this);
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
    if (this.#budget.take(chunk.byteLength, this, expectedBytes)) this.#bytes = bytes;
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
    this.#budget.free(this.#bytes);
    this.#bytes = 0;
  }
}

/** What it takes to hand kept bytes to the socket, against making them. */
export const SENT_WEIGHT = 0.1;

/** What comes before the chunks of a body, at a version of its content. */
interface ListHead {
  readonly resourceVersion: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Reads a list from its beginning: a head, and a body. */
export class BodyReader {
  readonly #body: ListBody;
  readonly #head: ListHead;
  readonly #end: { detach(): void; close(): void };
  #isHeadSent = false;
  #chunk = 0;
  #offset = 0;
  #rest: ListText | undefined;
  #hasMade = false;

  /** Made by {@linkcode ListBody}. */
  constructor(body: ListBody, head: ListHead, end: { detach(): void; close(): void }) {
    this.#body = body;
    this.#head = head;
    this.#end = end;
  }

  /** The whole list in a buffer of its own, if it has at most so many bytes. */
  whole(maxBytes: number): Uint8Array<ArrayBuffer> | undefined {
    const { bytes } = this.#head;
    const { size } = this.#body;
    const chunk = this.#body.onlyChunk;
    this.#hasMade = this.#body.size > size;
    const length = bytes.byteLength + (chunk?.byteLength ?? 0);
    return chunk !== undefined && length <= maxBytes ? concatenated([bytes, chunk], length) : undefined;
  }

  /** Whether it has at least so many bytes, which are made for that. */
  hasBytes(least: number, pacer: Pacer): Promise<boolean> {
    return this.#body.hasBytes(least - this.#head.bytes.byteLength, pacer);
  }

  /** All of it compressed, once for all readers; `undefined` if the body is not kept as a whole. */
  gzipped(pacer: Pacer): Promise<readonly Uint8Array<ArrayBuffer>[] | undefined> {
    return this.#body.gzipped(this.#head, pacer);
  }

  /** What the last bytes took, against making as many of JSON: little if they were kept. */
  get weight(): number {
    return this.#hasMade ? this.#body.weight : SENT_WEIGHT;
  }

  /**
   * The next bytes; `undefined` at the end. They are shared: read-only.
   *
   * @param length About how many, if they are made for this reader only.
   * @param sharedLength How many at most, if they are kept.
   */
  next(length: number, sharedLength: number = length): Uint8Array<ArrayBuffer> | undefined {
    if (this.#isHeadSent) return this.#next(length, sharedLength);
    this.#isHeadSent = true;
    const { bytes } = this.#head;
    const part = this.#next(length, sharedLength);
    return part === undefined ? bytes : concatenated([bytes, part], bytes.byteLength + part.byteLength);
  }

  #next(length: number, sharedLength: number): Uint8Array<ArrayBuffer> | undefined {
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
      if (this.#rest !== undefined) this.#end.detach();
    }
    this.#hasMade = true;
    const text = this.#rest?.piece(length);
    return text === undefined ? undefined : encode(text);
  }

  /** Ends it; may be called more than once. */
  close(): void {
    this.#end.close();
  }
}
