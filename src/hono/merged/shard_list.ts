/**
 * Reading the list of one shard item by item.
 * @module
 */

import { ItemCutter, type ItemReader } from "../../text/item_cutter.ts";
import type { ListMeta } from "../../meta/object.ts";
import { COLON, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "../../text/json_text.ts";
import { abortable, withTimeLimit } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { fieldAt } from "./json_places.ts";

/** A list without its items. */
export interface ListHead extends Readonly<Record<string, unknown>> {
  readonly metadata: ListMeta;
}

/** Options of {@linkcode ShardList}. */
export interface ShardListOptions {
  readonly itemsField: "items" | "rows";
  /** Of the list. */
  readonly kind: string;
  /** How long the next bytes may take. */
  readonly silenceMs: number;
  readonly clock: Clock;
}

/** The answer of a shard is no list, or not a whole one. */
export class ShardListError extends Error {
  override readonly name = "ShardListError";
}

// An object has at most some MiB: https://etcd.io/docs/v3.5/dev-guide/limit/
const MAX_ITEM_BYTES = 16 * 1024 * 1024;
// Of what comes before the items, and of what comes behind them: the columns of a Table are the most.
const MAX_REST_BYTES = 1024 * 1024;
const TOO_LONG = `more than ${MAX_REST_BYTES} bytes of it are no items`;

/**
 * The list in a response: its head first, then its items, each as text. It reads no further than the chunk that has the
 * next item, so that a list of any length takes the memory of one chunk.
 *
 * A list whose metadata comes behind the items, as kube-apiserver writes those of custom resources, is read as a whole to
 * know its head.
 */
export class ShardList {
  readonly #options: ShardListOptions;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #items: string[] = [];
  #next = 0;
  readonly #cutter: ItemCutter;
  #head: ListHead | undefined;
  /** The list's text up to the bracket of the items, and from the one that ends them. */
  #before = "";
  #after = "";
  #place: "before" | "items" | "after" | "end" = "before";
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #tail = new TextDecoder();
  #bytes: Uint8Array = new Uint8Array(0);

  /** @param body The body of the response. */
  constructor(body: ReadableStream<Uint8Array>, options: ShardListOptions) {
    this.#options = options;
    this.#reader = body.getReader();
    this.#cutter = new ItemCutter(ITEM_TEXTS, 0, {
      onItem: (item) => this.#items.push(item as string),
      maxItemBytes: MAX_ITEM_BYTES,
    });
  }

  /**
   * The list without its items.
   *
   * @throws {ShardListError} It is no list with a resourceVersion.
   */
  async head(): Promise<ListHead> {
    while (this.#head === undefined) await this.#read();
    return this.#head;
  }

  /** The next item; `undefined` if it was not read yet, or there is none. */
  get item(): string | undefined {
    return this.#items[this.#next];
  }

  /**
   * Reads until there is an item; `false` at the end of the list.
   *
   * @throws {ShardListError} The list is broken, or ends too early.
   */
  async hasItem(): Promise<boolean> {
    while (this.#next === this.#items.length) {
      if (this.#place === "end") return false;
      await this.#read();
    }
    return true;
  }

  /** The item is read; frees it. */
  take(): void {
    this.#items[this.#next++] = "";
    if (this.#next < this.#items.length) return;
    this.#items.length = 0;
    this.#next = 0;
  }

  /** Reads nothing more. */
  cancel(): void {
    this.#place = "end";
    this.#reader.cancel().catch(() => {});
  }

  async #read(): Promise<void> {
    const { clock, silenceMs } = this.#options;
    const newError = () => new ShardListError(`its list stops: nothing more came for ${silenceMs} ms`);
    const { done, value } = await withTimeLimit(
      (signal) => abortable(this.#reader.read(), signal),
      { ms: silenceMs, newError, clock },
    );
    if (done) return this.#end();
    try {
      this.#push(value);
    } catch (error) {
      throw new ShardListError(`its list cannot be read: ${errorMessage(error)}`);
    }
  }

  #push(chunk: Uint8Array): void {
    let rest = chunk;
    if (this.#place === "before") {
      if (this.#bytes.byteLength > MAX_REST_BYTES) throw new TypeError(TOO_LONG);
      this.#bytes = joined(this.#bytes, chunk);
      const text = this.#decoder.decode(this.#bytes);
      const start = itemsStart(text, this.#options.itemsField);
      if (start === undefined) return;
      this.#before = text.slice(0, start);
      this.#place = "items";
      rest = this.#bytes.subarray(encoder.encode(this.#before).byteLength);
      this.#bytes = new Uint8Array(0);
      this.#readHead(`${this.#before}]}`);
    }
    if (this.#place === "items") {
      const length = this.#cutter.push(rest);
      if (length === rest.byteLength) return;
      rest = rest.subarray(length);
      this.#place = "after";
    }
    this.#after += this.#tail.decode(rest, { stream: true });
    if (this.#after.length > MAX_REST_BYTES) throw new TypeError(TOO_LONG);
  }

  #end(): void {
    const text = this.#place === "before"
      ? this.#decoder.decode(this.#bytes)
      : this.#before + (this.#place === "after" ? this.#after : "");
    this.#place = "end";
    let list: Partial<ListHead>;
    try {
      list = JSON.parse(text);
    } catch {
      throw new ShardListError("its list ends too early, or is no JSON");
    }
    if (this.#head !== undefined) return;
    const metadata = list?.metadata;
    if (typeof metadata?.resourceVersion !== "string") throw new ShardListError(NO_VERSION);
    this.#head = this.#checked({ ...list, metadata });
  }

  #readHead(text: string): void {
    const list: Partial<ListHead> = JSON.parse(text);
    const { metadata, kind } = list;
    if (typeof metadata?.resourceVersion === "string" && kind !== undefined) {
      this.#head = this.#checked({ ...list, metadata });
    }
  }

  #checked(head: ListHead): ListHead {
    const { kind } = this.#options;
    if (head.kind === kind) return head;
    throw new ShardListError(`it answered with the kind ${JSON.stringify(head.kind)}, and not ${kind}`);
  }
}

const NO_VERSION = "its list has no resourceVersion";
const encoder = new TextEncoder();

const ITEM_TEXTS: ItemReader = {
  itemEnd: 0,
  buffer: (length) => new Uint8Array(length),
  readItemAt: () => undefined,
  readItem: (text) => text,
};

/** Behind the bracket before the items; `undefined` if it is not there yet. */
function itemsStart(text: string, name: string): number | undefined {
  // What is before it is whole, so that the field is found with a bracket in place of what follows.
  for (let i = text.indexOf(`"${name}"`); i >= 0; i = text.indexOf(`"${name}"`, i + 1)) {
    let at = i + name.length + 2;
    while (text.charCodeAt(at) <= 0x20) at++;
    if (text.charCodeAt(at) !== COLON) continue;
    at++;
    while (text.charCodeAt(at) <= 0x20) at++;
    if (text.charCodeAt(at) !== OPEN_BRACKET || text.charCodeAt(i) !== QUOTE) continue;
    const open = text.indexOf("{");
    if (text.charCodeAt(open) !== OPEN_BRACE) return undefined;
    const found = fieldAt(`${text.slice(0, at)}[]}`, open, name);
    if (found?.start === at) return at + 1;
  }
  return undefined;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a.byteLength === 0) return b;
  const both = new Uint8Array(a.byteLength + b.byteLength);
  both.set(a);
  both.set(b, a.byteLength);
  return both;
}
