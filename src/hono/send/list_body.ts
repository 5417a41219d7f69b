/**
 * The body of a list: its text, written piece by piece, and its bytes, made once for all readers, plain and
 * compressed.
 * @module
 */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import { indentedText, jsonText } from "../../protocol/responses.ts";
import type { Held, Holding } from "../../store/holding.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { concatenated, encodeUtf8 } from "../../util/bytes.ts";
import type { Pacer } from "../../util/turns.ts";
import type { Page } from "../content/page.ts";
import type { Readers } from "../request/readers.ts";
import { GZIP_LEAST_BYTES, gzipChunks } from "./gzip.ts";
import { PrefixableGzip } from "./gzip_prefix.ts";
import type { View } from "../request/view.ts";
import type { YamlWriter } from "./yaml.ts";

/** The form of a list. */
export interface ListShape {
  readonly view: View;
  /** Whether JSON is indented. */
  readonly pretty: boolean;
  /** Writes it as YAML; as JSON without. */
  readonly yaml: YamlWriter | undefined;
  /** How the page's objects are held. */
  readonly holding: Holding<KubernetesObject>;
}

// The library makes a node of each value.
const YAML_WEIGHT = 64;

/**
 * Writes a page as text, in pieces that end after an item, so that it never is in memory as a whole: first
 * the head, then the pieces, of which the last one has the end.
 */
export class ListText {
  readonly #page: Page<KubernetesObject>;
  readonly #shape: ListShape;
  readonly #frame: Frame;
  #next: number;
  #isDone = false;

  /** @param from The first item to write; what comes before it was written by another one. */
  constructor(page: Page<KubernetesObject>, shape: ListShape, from?: number) {
    this.#page = page;
    this.#shape = shape;
    this.#frame = frame(page, shape, page.resourceVersion);
    this.#next = from ?? page.from;
  }

  /** The version of the snapshot. */
  get resourceVersion(): string {
    return this.#page.resourceVersion;
  }

  /** Whether only the head has the list's version: the pieces are the same while the content is. */
  get isLasting(): boolean {
    return this.#shape.yaml === undefined;
  }

  /** What comes before the first piece, at a version of the same content. */
  head(resourceVersion: string): string {
    const isOwn = resourceVersion === this.resourceVersion;
    return (isOwn ? this.#frame : frame(this.#page, this.#shape, resourceVersion)).head;
  }

  /** The memory that it shares with other lists of the past; `undefined` if it takes little. */
  get past(): object | undefined {
    return this.#page.past;
  }

  /** What a character takes, against one of JSON. */
  get weight(): number {
    return this.#shape.yaml === undefined ? 1 : YAML_WEIGHT;
  }

  /** Whether everything is written. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** The part of the items that is written: from 0 to 1. */
  get progress(): number {
    const { from, to } = this.#page;
    return to === from ? 1 : (this.#next - from) / (to - from);
  }

  /**
   * The next piece, of at least this many characters of JSON, or fewer of what takes longer, unless it is the
   * last one; `undefined` at the end.
   */
  piece(length: number): string | undefined {
    if (this.#isDone) return undefined;
    const { from, to } = this.#page;
    const least = length / this.weight;
    let text = "";
    while (this.#next < to) {
      text += itemText(this.#page.object(this.#next), this.#shape, { isFirst: this.#next === from });
      this.#next++;
      if (text.length >= least) return text;
    }
    this.#isDone = true;
    return text + this.#frame.tail;
  }

  /** The item that is written next. */
  get next(): number {
    return this.#next;
  }

  /** The same from an item on, for another reader; from here on without one. */
  rest(from?: number): ListText {
    const rest = new ListText(this.#page, this.#shape, from ?? this.#next);
    rest.#isDone = from === undefined && this.#isDone;
    return rest;
  }
}

/** A list without items, around them. */
interface Frame {
  readonly head: string;
  readonly tail: string;
}

function frame(page: Page<KubernetesObject>, shape: ListShape, resourceVersion: string): Frame {
  const metadata = { resourceVersion, ...page.next?.(resourceVersion) };
  return shape.yaml === undefined ? jsonFrame(page, shape, metadata) : yamlFrame(page, shape, metadata);
}

function jsonFrame(page: Page<KubernetesObject>, { view, pretty }: ListShape, metadata: ListMeta): Frame {
  const json = jsonText({ ...view.list(metadata), [view.itemsField]: [] }, { pretty });
  const end = json.lastIndexOf("]");
  const lineBreak = pretty && page.to > page.from ? "\n  " : "";
  return { head: json.slice(0, end), tail: lineBreak + json.slice(end) };
}

function yamlFrame(page: Page<KubernetesObject>, { view, yaml }: ListShape, metadata: ListMeta): Frame {
  const { itemsField } = view;
  const fields = Object.entries(view.list(metadata));
  const write = (isWithin: (field: string) => boolean): string => {
    const selected = fields.filter(([field]) => isWithin(field));
    return selected.length === 0 ? "" : yaml!.document(JSON.stringify(Object.fromEntries(selected)));
  };
  const items = page.to > page.from ? `${itemsField}:\n` : `${itemsField}: []\n`;
  return { head: write((field) => field < itemsField) + items, tail: write((field) => field > itemsField) };
}

function itemText(
  held: Held<KubernetesObject>,
  shape: ListShape,
  { isFirst }: { readonly isFirst: boolean },
): string {
  const { view, pretty, yaml, holding } = shape;
  if (yaml !== undefined) return yaml.item(itemJson(held, shape));
  const comma = isFirst ? "" : ",";
  if (!pretty) return comma + itemJson(held, shape);
  // JSON has no line breaks within its strings.
  const text = indentedText(view.item(holding.peek(held))).replaceAll("\n", "\n    ");
  return `${comma}\n    ${text}`;
}

function itemJson(held: Held<KubernetesObject>, { view, holding }: ListShape): string {
  const json = view.itemText && holding.json(held);
  return (json && view.itemText?.(json)) ?? JSON.stringify(view.item(holding.peek(held)));
}

/** What bodies are of: the content of one resource. */
export interface ListedContent {
  readonly log: { readonly window: { readonly resourceVersion: string; readonly revision: number } };
  readonly hashes: {
    /** Whether it takes a while to say the next version. */
    readonly isBehind: boolean;
    /** The version of the objects of a namespace. */
    versionOf(namespace: string): ListedVersion;
  };
}

/** Two of them are the same if all lists of the namespace are, but for their heads. */
export interface ListedVersion {
  readonly hash: string;
  readonly rewrites: number;
}

/** Of what a body is kept. */
export interface BodyOf {
  readonly content: ListedContent;
  /** The namespace of its objects; empty for all. */
  readonly namespace: string;
  /** Requests with the same name have the same body. */
  readonly name: string;
  /** The version of the namespace that it is of. */
  readonly version: ListedVersion;
  /** The content's revision when its objects were selected. */
  readonly revision: number;
}

/** What bodies share: the bytes that all may have together. */
export interface BodyBudget {
  /**
   * Whether a body may have more bytes; drops others for it.
   *
   * @param expectedBytes How many bytes it will have in all.
   */
  take(bytes: number, of: ListBody, expectedBytes?: number): boolean;
  /** Bytes of a body are freed; all of them once it is neither kept nor read. */
  free(bytes: number, of: ListBody): void;
  /** A body is kept no longer. */
  forget(body: ListBody): void;
}

/** Read-only, as they are shared by many readers. */
export type Bytes = Uint8Array<ArrayBuffer>;

// The first chunk comes soon, and is the whole of most lists; the others are worth a write.
const FIRST_CHUNK = 64 * 1024;
const CHUNK = 256 * 1024;
// Compressing 30 MB takes half a second.
const GZIP_WAIT_MS = 2_000;
// What it takes to hand kept bytes to the socket, against making them.
const SENT_WEIGHT = 0.1;

/** The body of one list but for its head, made as far as it was read. */
export class ListBody {
  readonly #budget: BodyBudget;
  readonly #text: ListText;
  readonly #clock: Clock;
  readonly #onClosed: (() => void) | undefined;
  readonly #chunks: Bytes[] = [];
  /** The first item of each chunk that was made. */
  readonly #starts: number[] = [];
  #gzipped: Promise<PrefixableGzip | undefined> | undefined;
  #head: ListHead | undefined;
  /** The last whole that was made of it, for the readers of one version. */
  #whole: { readonly head: ListHead; readonly chunks: readonly Bytes[] } | undefined;
  #isKept = true;
  /** It has as many bytes as there is room for: readers make the rest on their own. */
  #isFull = false;
  #readers = 0;
  #bytes = 0;
  /** A revision of the content at which it was current. */
  #revision: number;
  /** When it was requested last. */
  usedMs: number;
  /** `undefined` if only its beginning is shared. */
  readonly of: BodyOf | undefined;

  /** Made by {@linkcode ListBodies}. */
  constructor(
    budget: BodyBudget,
    text: ListText,
    { clock, of, onClosed }: {
      readonly clock: Clock;
      readonly of?: BodyOf;
      /** Called when a reader has come to the end, or stops. */
      readonly onClosed?: () => void;
    },
  ) {
    this.#budget = budget;
    this.#text = text;
    this.#clock = clock;
    this.#onClosed = onClosed;
    this.#revision = of?.revision ?? 0;
    this.usedMs = monotonicNow(clock);
    this.of = of;
  }

  /** Whether a list would have the same bytes now, but for its head. */
  get isCurrent(): boolean {
    if (this.of === undefined) return false;
    const { content, namespace, version } = this.of;
    const { log: { window: { revision, resourceVersion } }, hashes } = content;
    if (revision !== this.#revision) {
      if (hashes.isBehind || !isSameVersion(hashes.versionOf(namespace), version)) return false;
      this.#revision = revision;
    }
    return this.#text.isLasting || this.#text.resourceVersion === resourceVersion;
  }

  /** It is kept no longer: its bytes are freed when its readers have ended. */
  drop(): void {
    this.#budget.forget(this);
    this.#isKept = false;
    this.#freeUnused();
  }

  /** Whether it has readers. */
  get isRead(): boolean {
    return this.#readers > 0;
  }

  /** What its chunks take. */
  get chunkBytes(): number {
    return this.#chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }

  /** Frees its chunks: readers make on their own what they have not read. */
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
    if (this.#head?.resourceVersion !== resourceVersion) {
      this.#head = { resourceVersion, bytes: encodeUtf8(this.#text.head(resourceVersion)) };
    }
    const head = this.#head;
    this.#readers++;
    let isAttached = true;
    let isClosed = false;
    const detach = () => {
      if (isAttached) this.#readers--;
      isAttached = false;
      this.#freeUnused();
    };
    return {
      whole: (most) => {
        const chunk = this.#chunk(0, pacer);
        if (chunk === undefined || !this.#text.isDone || this.#chunks.length > 1) return undefined;
        const length = head.bytes.byteLength + chunk.byteLength;
        return length <= most ? concatenated([head.bytes, chunk], length) : undefined;
      },
      isLarge: () => this.#hasBytes(GZIP_LEAST_BYTES - head.bytes.byteLength, pacer),
      gzipped: () => this.#gzippedWith(head, pacer),
      pieces: (readers) => this.#pieces(head.bytes, { readers, pacer, detach }),
      close: () => {
        detach();
        if (!isClosed) this.#onClosed?.();
        isClosed = true;
      },
    };
  }

  *#pieces(
    head: Bytes,
    { readers, pacer, detach }: {
      readonly readers: Readers;
      readonly pacer: Pacer;
      readonly detach: () => void;
    },
  ): Generator<Bytes, undefined> {
    let before: Bytes | undefined = head;
    const withHead = (bytes: Bytes) => {
      const all = before && concatenated([before, bytes], before.byteLength + bytes.byteLength);
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
        yield withHead(piece);
      }
    }
    if (!this.#isFull) return;
    const rest = this.#text.rest(this.#starts[i]);
    detach();
    for (let text; (text = rest.piece(readers.listPieceLength)) !== undefined;) {
      const bytes = encodeUtf8(text);
      pacer.spendText(bytes.byteLength * rest.weight);
      yield withHead(bytes);
    }
  }

  /** One of its chunks, which is made if it is the next one; `undefined` at the end, or where it is full. */
  #chunk(index: number, pacer: Pacer, length = CHUNK): Bytes | undefined {
    if (index < this.#chunks.length) return this.#chunks[index];
    if (this.#isFull) return undefined;
    const isAlone = this.of === undefined;
    const { next } = this.#text;
    const text = this.#text.piece(isAlone || index === 0 ? FIRST_CHUNK : length);
    if (text === undefined) return undefined;
    this.#starts.push(next);
    const chunk = encodeUtf8(text);
    pacer.spendText(chunk.byteLength * this.#text.weight);
    this.#chunks.push(chunk);
    const bytes = this.#bytes + chunk.byteLength;
    const expectedBytes = isAlone ? bytes : bytes / this.#text.progress;
    if (this.#budget.take(chunk.byteLength, this, expectedBytes)) this.#bytes = bytes;
    else this.#isFull = true;
    if (isAlone && bytes >= GZIP_LEAST_BYTES) this.#isFull = true;
    if (this.#isFull) this.drop();
    return chunk;
  }

  /** Whether it has at least so many bytes, which are made for that. */
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

  async #gzippedWith(head: ListHead, pacer: Pacer): Promise<readonly Bytes[] | undefined> {
    const gzipped = await this.#gzippedOnce(pacer);
    if (gzipped === undefined || this.#whole?.head === head) return gzipped && this.#whole?.chunks;
    const chunks = gzipped.with(head.bytes);
    this.#whole = { head, chunks };
    return chunks;
  }

  async #gzippedOnce(pacer: Pacer): Promise<PrefixableGzip | undefined> {
    if (this.#isFull || this.of === undefined) return undefined;
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
      const chunk = this.#chunk(i++, pacer);
      if (chunk === undefined) return undefined;
      pacer.spendText(chunk.byteLength);
      length += chunk.byteLength;
      return chunk;
    };
    const chunks: Bytes[] = [];
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

  #freeUnused(): void {
    if (this.#isKept || this.#readers > 0) return;
    this.#budget.free(this.#bytes, this);
    this.#bytes = 0;
  }
}

/** Whether two versions are the same. */
export function isSameVersion(a: ListedVersion, b: ListedVersion): boolean {
  return a.hash === b.hash && a.rewrites === b.rewrites;
}

/** What comes before the chunks of a body, at a version of its content. */
interface ListHead {
  readonly resourceVersion: string;
  readonly bytes: Bytes;
}

/** Reads a list from its beginning: a head, and a body. What it makes is counted as work for its reader. */
export interface BodyReader {
  /** The whole list in a buffer of its own, if it is made at once and has at most so many bytes. */
  whole(most: number): Bytes | undefined;
  /** Whether it is worth to be compressed; so much is made for that. */
  isLarge(): Promise<boolean>;
  /** All of it compressed, once for all readers; `undefined` if the body is not kept as a whole. */
  gzipped(): Promise<readonly Bytes[] | undefined>;
  /** The bytes, in pieces as large as there is room for readers. */
  pieces(readers: Readers): Generator<Bytes, undefined>;
  /** Ends it; may be called more than once. */
  close(): void;
}
