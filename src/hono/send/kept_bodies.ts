/** The bodies of lists: bytes, plain and compressed, made once for all readers, kept while requested. */

import type { KubernetesObject } from "../../meta/object.ts";
import { concatenated, encodeUtf8, freeBytes } from "../../util/bytes.ts";
import { withTimeLimit } from "../../util/abort.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { getOrMake } from "../../util/collections.ts";
import type { Pacer } from "../../util/turns.ts";
import type { Content, ContentVersion } from "../content/content.ts";
import type { Keeper, Readers } from "../request/readers.ts";
import { GZIP_LEAST_BYTES, PrefixableGzip } from "./gzip.ts";
import type { ListText } from "./view_text.ts";

export interface ListBodiesOptions {
  readonly readers: Readers;
  /** How many bytes the bodies may have together. */
  readonly maxBytes: number;
  readonly clock: Clock;
}

// Pages and programs that poll do so each few seconds.
const IDLE_MS = 10_000;
// The part of all bytes that bodies may take which are kept no longer and still read.
const MOST_LEFT = 1 / 16;

/**
 * Keeps the bodies of lists: for each form and selection the one of the present content. A body is made once,
 * while its first reader reads it, and every reader reads the same bytes; while only the list's
 * resourceVersion moves, its head is made again. It is dropped when the content of its namespace has changed,
 * when it was not requested for 10 s, and for the sake of readers and other bodies when all bytes are spent:
 * the least recently used first.
 */
export class ListBodies implements Keeper {
  readonly #options: ListBodiesOptions;
  readonly #byContent = new WeakMap<Content<KubernetesObject>, Map<string, ListBody>>();
  /** The least recently used first. */
  readonly kept: Set<ListBody> = new Set();
  #bytes = 0;
  /** Bodies that are no longer kept and still have bytes; the oldest first. */
  readonly #left = new Set<ListBody>();
  /** The body that wants more bytes. */
  #growing: ListBody | undefined;

  constructor(options: ListBodiesOptions) {
    this.#options = options;
    options.readers.addKeeper(this);
  }

  /** The bytes of all bodies, also of those that are dropped and still read. */
  get bytes(): number {
    return this.#bytes;
  }

  get({ content, name }: Pick<BodyOf, "content" | "name">): ListBody | undefined {
    const body = this.#byContent.get(content)?.get(name);
    if (body === undefined || !body.isCurrent) return undefined;
    body.usedMs = monotonicNow(this.#options.clock);
    this.kept.delete(body);
    this.kept.add(body);
    return body;
  }

  /** Keeps a body until the content changes, unless one of a newer content is kept. */
  add(of: BodyOf, text: ListText): ListBody {
    const { content, name, version } = of;
    const known = this.get(of);
    if (known?.of && isSameVersion(known.of.version, version)) return known;
    const body = new ListBody(this, text, { clock: this.#options.clock, of });
    if (known !== undefined) {
      body.drop();
      return body;
    }
    const ofContent = getOrMake(this.#byContent, content, () => new Map<string, ListBody>());
    ofContent.get(name)?.drop();
    ofContent.set(name, body);
    this.kept.add(body);
    return body;
  }

  /** A body that is not kept, for one reader. */
  alone(text: ListText): ListBody {
    const body = new ListBody(this, text, { clock: this.#options.clock });
    body.drop();
    return body;
  }

  dropUnused(): void {
    const beforeMs = monotonicNow(this.#options.clock) - IDLE_MS;
    for (const body of this.kept) if (body.usedMs <= beforeMs || !body.isCurrent) body.drop();
  }

  /**
   * Whether a body may have more bytes; drops other bodies for it, but not what takes longer to make, such
   * as the orders of screens.
   */
  take(bytes: number, of: ListBody, expectedBytes: number = bytes): boolean {
    const { readers } = this.#options;
    this.#growing = of;
    const hasRoom = readers.keep(bytes, expectedBytes, () => this.dropSome());
    this.#growing = undefined;
    if (!hasRoom) return false;
    this.#bytes += bytes;
    if (!this.kept.has(of)) this.#leave(of);
    return true;
  }

  /** Bytes of a body are freed; all of them once it is neither kept nor read. */
  free(bytes: number, of: ListBody): void {
    this.#bytes -= bytes;
    this.#options.readers.unkeep(bytes);
    if (!of.isRead) this.#left.delete(of);
  }

  dropSome(): boolean {
    for (const body of this.kept) {
      if (body === this.#growing) continue;
      body.drop();
      return true;
    }
    for (const body of this.#left) {
      if (body === this.#growing || body.chunkBytes === 0) continue;
      body.release();
      return true;
    }
    return false;
  }

  /** Slow readers share a body as long as all such bodies have few bytes. */
  #leave(body: ListBody): void {
    this.#left.add(body);
    const most = this.#options.maxBytes * MOST_LEFT;
    let bytes = 0;
    for (const { chunkBytes } of this.#left) bytes += chunkBytes;
    for (const oldest of this.#left) {
      if (bytes <= most) return;
      // The last chunk of this body is being counted, or of the one for which this one was dropped.
      if (oldest === body || oldest === this.#growing) continue;
      bytes -= oldest.chunkBytes;
      oldest.release();
    }
  }

  forget(body: ListBody): void {
    if (body.isRead) this.#leave(body);
    if (this.kept.delete(body) && body.of) this.#byContent.get(body.of.content)?.delete(body.of.name);
  }
}

export interface BodyOf {
  readonly content: Content<KubernetesObject>;
  readonly namespace: string;
  readonly name: string;
  readonly version: ContentVersion;
  /** The content's revision when its objects were selected. */
  readonly revision: number;
}

/** Read-only, as they are shared by many readers. */
export type Bytes = Uint8Array<ArrayBuffer>;

// The first chunk comes soon, and is the whole of most lists; the others are worth a write.
const FIRST_CHUNK = 64 * 1024;
const CHUNK = 256 * 1024;
// Longer bytes are shared by all readers, after a piece that has the head alone.
const MOST_COPIED = 16 * 1024;
// Compressing 30 MB takes half a second.
const GZIP_WAIT_MS = 2_000;
// The cost of handing kept bytes to the socket, as a part of making them.
const SENT_WEIGHT = 0.1;

/** The body of one list but for its head, made as far as it was read. */
export class ListBody {
  readonly #budget: ListBodies;
  readonly #text: ListText;
  readonly #clock: Clock;
  readonly #chunks: Bytes[] = [];
  /** The first item of each chunk that was made. */
  readonly #starts: number[] = [];
  #gzipped: Promise<PrefixableGzip | undefined> | undefined;
  #head: ListHead | undefined;
  #isKept = true;
  /** Whether there is no room for more bytes: readers make the rest on their own. */
  #isFull = false;
  #readers = 0;
  #bytes = 0;
  /** A revision of the content at which it was current. */
  #revision: number;
  usedMs: number;
  /** `undefined` if only its beginning is shared. */
  readonly of: BodyOf | undefined;

  constructor(
    budget: ListBodies,
    text: ListText,
    { clock, of }: { readonly clock: Clock; readonly of?: BodyOf },
  ) {
    this.#budget = budget;
    this.#text = text;
    this.#clock = clock;
    this.#revision = of?.revision ?? 0;
    this.usedMs = monotonicNow(clock);
    this.of = of;
  }

  /** Whether the body is made for one reader, and not kept. */
  get #isAlone(): boolean {
    return this.of === undefined;
  }

  /** Whether a list would have the same bytes now, but for its head. */
  get isCurrent(): boolean {
    if (this.of === undefined) return false;
    const { content, namespace, version } = this.of;
    const { log: { window: { revision, resourceVersion } }, versions } = content;
    if (revision !== this.#revision) {
      if (!isSameVersion(versions.versionOf(namespace), version)) return false;
      this.#revision = revision;
    }
    return this.#text.isLasting || this.#text.resourceVersion === resourceVersion;
  }

  /** Ends the keeping: the body's bytes are freed when its readers have ended. */
  drop(): void {
    this.#budget.forget(this);
    this.#isKept = false;
    this.#freeUnused();
  }

  get isRead(): boolean {
    return this.#readers > 0;
  }

  get chunkBytes(): number {
    return this.#chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Frees the body's chunks: readers make on their own what they have not read. */
  release(): void {
    const bytes = Math.min(this.chunkBytes, this.#bytes);
    this.#isFull = true;
    this.#chunks.length = 0;
    this.#bytes -= bytes;
    this.#budget.free(bytes, this);
  }

  /** Begins to read it, with the head of now. The reader must be closed. */
  open(pacer: Pacer): BodyReader {
    const resourceVersion = this.isCurrent
      ? this.of!.content.log.window.resourceVersion
      : this.#text.resourceVersion;
    this.#readers++;
    let isAttached = true;
    const close = () => {
      if (isAttached) this.#readers--;
      isAttached = false;
      this.#freeUnused();
    };
    return {
      whole: (most) => {
        const head = this.#headAt(resourceVersion);
        const chunk = this.#chunk(0, pacer);
        if (chunk === undefined || !this.#text.isDone || this.#chunks.length > 1) return undefined;
        const length = head.bytes.byteLength + chunk.byteLength;
        if (length > most) return undefined;
        close();
        return concatenated([head.bytes, chunk], length);
      },
      isLarge: () => this.#hasBytes(GZIP_LEAST_BYTES - this.#headAt(resourceVersion).bytes.byteLength, pacer),
      gzipped: async () => (await this.#gzippedOnce(pacer))?.with(this.#headAt(resourceVersion).bytes),
      isShared: !this.#isAlone,
      pieces: (readers) => this.#pieces(resourceVersion, readers, pacer, close),
      close,
    };
  }

  #headAt(resourceVersion: string): ListHead {
    if (this.#head?.resourceVersion !== resourceVersion) {
      this.#head = { resourceVersion, bytes: encodeUtf8(this.#text.head(resourceVersion)) };
    }
    return this.#head;
  }

  *#pieces(
    resourceVersion: string,
    readers: Readers,
    pacer: Pacer,
    detach: () => void,
  ): Generator<Bytes, undefined> {
    let before: Bytes | undefined = this.#headAt(resourceVersion).bytes;
    const withHead = (bytes: Bytes) => {
      const all = before && concatenated([before, bytes]);
      before = undefined;
      return all ?? bytes;
    };
    let i = 0;
    for (;; i++) {
      // A reader that waits with a part of a chunk keeps all of it in memory.
      const chunk = this.#chunk(i, pacer, Math.max(FIRST_CHUNK, readers.sharedListPieceLength));
      if (chunk === undefined) break;
      for (let at = 0; at < chunk.byteLength;) {
        const piece = chunk.subarray(at, at + readers.sharedListPieceLength);
        at += piece.byteLength;
        pacer.spendText(piece.byteLength * SENT_WEIGHT);
        if (before !== undefined && !this.#isAlone && piece.byteLength > MOST_COPIED) {
          yield before;
          before = undefined;
        }
        // `withHead` copies the first one.
        yield before === undefined && this.#isAlone ? piece.slice() : withHead(piece);
      }
      if (this.#isAlone) freeBytes(chunk); // its only reader has it
    }
    const rest = this.#text.rest(this.#starts[i]);
    detach();
    for (let text; (text = rest.piece(readers.listPieceLength)) !== undefined;) {
      const bytes = encodeUtf8(text);
      pacer.spendText(bytes.byteLength * rest.weight);
      yield withHead(bytes);
    }
  }

  /** A chunk of the body, which is made if it is the next; `undefined` at the end, or without room. */
  #chunk(index: number, pacer: Pacer, length = CHUNK): Bytes | undefined {
    if (index < this.#chunks.length) return this.#chunks[index];
    if (this.#isFull) return undefined;
    const { next, ownBytes } = this.#text;
    const text = this.#text.piece(this.#isAlone || index === 0 ? FIRST_CHUNK : length);
    if (text === undefined) return undefined;
    this.#starts.push(next);
    const chunk = encodeUtf8(text);
    pacer.spendText(chunk.byteLength * this.#text.weight);
    this.#chunks.push(chunk);
    const own = chunk.byteLength + (index === 0 ? ownBytes : 0);
    const bytes = this.#bytes + own;
    const expectedBytes = this.#isAlone ? bytes : ownBytes + (bytes - ownBytes) / this.#text.progress;
    if (this.#budget.take(own, this, expectedBytes)) this.#bytes = bytes;
    else this.#isFull = true;
    if (this.#isAlone && bytes >= GZIP_LEAST_BYTES) this.#isFull = true;
    if (this.#isFull) this.drop();
    return chunk;
  }

  /** Whether the body has at least so many bytes, which are made to find out. */
  async #hasBytes(least: number, pacer: Pacer): Promise<boolean> {
    let bytes = 0;
    for (let i = 0; bytes < least; i++) {
      if (pacer.isDue) await pacer.rest();
      const chunk = this.#chunk(i, pacer);
      if (chunk === undefined) return this.#isFull;
      bytes += chunk.byteLength;
    }
    return true;
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
    const pending = this.#gzipped;
    const limit = { ms: GZIP_WAIT_MS, newError: () => undefined, clock: this.#clock };
    return await withTimeLimit(() => pending, limit).catch(() => undefined);
  }

  async #gzip(pacer: Pacer): Promise<PrefixableGzip | undefined> {
    let i = 0;
    const gzipped = await PrefixableGzip.compress(async () => {
      if (pacer.isDue) await pacer.rest();
      const chunk = this.#chunk(i++, pacer);
      if (chunk !== undefined) pacer.spendText(chunk.byteLength);
      return chunk;
    });
    if (gzipped === undefined || this.#isFull) return undefined;
    const { bytes } = gzipped;
    if (!this.#budget.take(bytes, this)) return undefined;
    this.#bytes += bytes;
    return gzipped;
  }

  #freeUnused(): void {
    if (this.#isKept || this.#readers > 0) return;
    this.#budget.free(this.#bytes, this);
    this.#bytes = 0;
  }
}

/** Whether all lists of a namespace are the same at two versions, but for their heads. */
function isSameVersion(a: ContentVersion, b: ContentVersion): boolean {
  return a.changes === b.changes && a.rewrites === b.rewrites;
}

/** The bytes before the chunks of a body, at a version of its content. */
interface ListHead {
  readonly resourceVersion: string;
  readonly bytes: Bytes;
}

/** Reads a list from its beginning: a head, and a body. New bytes count as work for its reader. */
export interface BodyReader {
  /** The whole list in a buffer of its own, if it is made at once and has at most so many bytes. */
  whole(most: number): Bytes | undefined;
  /** Whether the body is worth compressing; enough of it is made to find out. */
  isLarge(): Promise<boolean>;
  /** All of it compressed, once for all readers; `undefined` if the body is not kept as a whole. */
  gzipped(): Promise<readonly Bytes[] | undefined>;
  /** Whether pieces are those of other readers, too; otherwise each has a buffer of its own. */
  readonly isShared: boolean;
  /** The bytes, in pieces as large as there is room for readers. */
  pieces(readers: Readers): Generator<Bytes, undefined>;
  /** Ends the reading; may be called more than once. */
  close(): void;
}
