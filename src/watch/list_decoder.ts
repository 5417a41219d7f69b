/** Decodes the bytes of a list to its items. */

import { DecodeError } from "../meta/request.ts";
import type { ListPage, Quarantined } from "../meta/list_watch.ts";
import { onAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { isRecord, jsonFault } from "../util/json.ts";
import { requireNumbers } from "../util/require_number.ts";
import { Pacer } from "../util/turns.ts";
import { openByteReader } from "../util/byte_reader.ts";
import { decodeUtf8 } from "../util/bytes.ts";
import type { Projection } from "../text/field_tree.ts";
import { PiecedBytes } from "../text/line_cutter.ts";
import { ItemTooLargeError, ListCutter } from "../text/list_cutter.ts";
import { type ItemType, type ObjectHead, ObjectParser } from "../text/object_reader.ts";
import { type ObjectsAsText, ObjectText } from "../text/object_text_reader.ts";
import { newNetworkError } from "./network_failure.ts";

/** A list without its items. */
export type ListEnvelope = Omit<ListPage<never>, "items" | "quarantined">;

/** Options of {@linkcode decodeList}. */
export interface DecodeListOptions {
  /** Validates the list, whose items are an empty array: returns its envelope, or throws. */
  readonly validateList: (list: Readonly<Record<string, unknown>>) => ListEnvelope;
  /** Validates one item: returns what is wrong with it, or `undefined`. Called in the list's order. */
  readonly validateItem: (item: unknown, index: number) => Quarantined | undefined;
  /** Given each item that is accepted, in the list's order; its result takes the item's place. */
  readonly intake?: (item: unknown) => unknown;
  /** Ends the reading: the body is cancelled, and the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Receives the size of each chunk, in bytes. */
  readonly onBytes?: (bytes: number) => void;
  /** The listed objects, for error texts: `"pods" in "default"`. */
  readonly subject?: string;
  /** Leaves fields out of the items before they are parsed. */
  readonly projection?: Projection;
  /** Hands out items that are not parsed. They are parsed by default. */
  readonly asText?: ObjectsAsText;
  /** The longest item that is accepted, and all that is around the items, in bytes; 16 MiB by default. */
  readonly maxItemBytes?: number;
  /** The longest list that is accepted, in decompressed bytes, 512 at least an item; 2 GiB by default. */
  readonly maxListBytes?: number;
  /** Measures when to give others a turn; without one they get it when the body makes the reader wait. */
  readonly clock?: Clock;
}

/**
 * Decodes the body of a list. Invalid items are quarantined and reported in the page; the others are the
 * decoded objects themselves.
 *
 * The items of a built-in list come without `apiVersion` and `kind` (a `PodList` says it once for all): items
 * that lack them are given the list's own, so that an object is the same whether a list or a watch brought
 * it.
 *
 * Items are cut out of the text and parsed one by one while the body arrives: besides them no
 * more than a chunk and one item's text are held.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import { decodeList, newObjectValidator, validateList } from "@listwatch/cache/client";
 * const body = Response.json({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [{}] }).body!;
 * const validate = newObjectValidator();
 * const page = await decodeList<KubernetesObject>(body, {
 *   validateList: (list) => validateList(list, '"pods"'),
 *   validateItem: (item, index) => validate(item, `items[${index}]`),
 * });
 * console.log(page.items.length, page.quarantined?.[0].path); // 0 items[0].metadata
 * ```
 *
 * @throws {DecodeError} The body is no JSON, or no list, or it or one of its items is longer than it may be.
 * @throws {NetworkError} The connection broke before the body's end.
 * @throws {RangeError} `maxItemBytes` or `maxListBytes` is no number of 1 or more.
 */
export async function decodeList<T>(
  body: ReadableStream<Uint8Array>,
  options: DecodeListOptions,
): Promise<ListPage<T>> {
  const { subject = "the resource" } = options;
  const { maxItemBytes = MAX_ITEM_BYTES, maxListBytes = MAX_LIST_BYTES } = options;
  requireNumbers("decode a list", { maxItemBytes, maxListBytes }, { least: 1, mayBeInfinite: true });
  const collector = new ItemCollector<T>(options);
  const head = new PiecedBytes();
  const failure = (what: string, cause?: unknown) =>
    new DecodeError(`Cannot list ${subject}: ${what}`, { cause });
  const notJson = (error: unknown) =>
    failure(`the answer is not JSON: ${jsonFault(error)}; it begins with ${quote(head)}`);
  const { asText, projection } = options;
  const typeOf = () => asText && collector.knownType;
  const reader = (asText?.reader ?? new ObjectParser()).items(typeOf, projection);
  const cutter = new ListCutter(reader, {
    maxItemBytes,
    onItem: (item) => collector.add(item),
    onItems: (prefix) => collector.begin(prefix),
  });
  const limit = { maxBytes: maxListBytes, hint: "ask for pages (limit), or raise maxListBytes" };
  await readBody(body, subject, { ...options, ...limit }, (chunk) => {
    if (head.length < QUOTED_BYTES) head.add(chunk.subarray(0, QUOTED_BYTES - head.length));
    try {
      cutter.push(chunk);
    } catch (error) {
      if (error instanceof ItemTooLargeError) {
        throw failure(`${error.message}; raise maxItemBytes if there are such objects`, error);
      }
      throw error instanceof SyntaxError ? notJson(error) : error;
    }
    if (collector.count * LEAST_ITEM_BYTES > maxListBytes) {
      throw failure(`it has more than ${collector.count - 1} items; ${limit.hint}`);
    }
  });
  let list: unknown;
  try {
    list = JSON.parse(cutter.envelope);
  } catch (error) {
    throw notJson(error);
  }
  if (!isRecord(list)) {
    throw failure(`the answer is no list; it begins with ${quote(head)}`);
  }
  return collector.end(list as Record<string, unknown>, subject);
}

// As an event of a watch. A request to etcd has at most 1.5 MiB: https://etcd.io/docs/v3.5/dev-guide/limit/
const MAX_ITEM_BYTES = 16 * 1024 * 1024;
// The longest list, far beyond a cluster of 100,000 pods; a few kilobytes of gzip can become more.
const MAX_LIST_BYTES = 2 * 1024 * 1024 * 1024;
/** The least that an item counts: in memory the shortest ones take many times the bytes of their texts. */
const LEAST_ITEM_BYTES = 512;
/** The longest answer that is read as one text. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024;

/** How many characters of a bad answer are quoted, and the bytes that such a text, and more, may have. */
const QUOTED = 60;
const QUOTED_BYTES = 4 * QUOTED + 4;

/** Receives items as they arrive: adds their type, validates them, and quarantines those not accepted. */
class ItemCollector<T> {
  readonly #options: DecodeListOptions;
  readonly #items: T[] = [];
  readonly #quarantined: Quarantined[] = [];
  /** The type of the items, if the list has named it before them. */
  #type: ItemType | "unknown" = "unknown";
  #count = 0;

  constructor(options: DecodeListOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count + (this.#type === "unknown" ? this.#items.length : 0);
  }

  /** The type of the items, where the list says so before them. */
  get knownType(): ItemType | undefined {
    return this.#type === "unknown" ? undefined : this.#type;
  }

  /** Reads the part of the list before its items. */
  begin(prefix: string): void {
    let text = prefix.trimEnd();
    if (text.endsWith(",")) text = text.slice(0, -1);
    try {
      this.#type = itemTypeOf(JSON.parse(`${text}}`)) ?? "unknown";
    } catch {
      // whatever is wrong with it shows at the end
    }
  }

  add(item: unknown): void {
    if (this.#type === "unknown") this.#items.push(item as T); // validated at the end
    else this.#validate(item, this.#type);
  }

  end(list: Record<string, unknown>, subject: string): ListPage<T> {
    const { items, ...rest } = list;
    const envelope = this.#options.validateList("items" in list ? { ...rest, items: [] } : rest);
    if (!Array.isArray(items)) {
      // A Go server writes a slice that was never made as null. The envelope says whether it may be absent.
      if (items === null || (items === undefined && "items" in envelope)) return { ...envelope, items: [] };
      throw new DecodeError(`Cannot list ${subject}: "items" is ${typeof items}, not an array`);
    }
    if (this.#type === "unknown" || items.length > 0) {
      // A key that was written twice was cut once: the items of the second are in the envelope.
      const later = items.length > 0 ? items : this.#items.splice(0);
      this.#items.length = this.#quarantined.length = this.#count = 0;
      for (const item of later) this.#validate(item, itemTypeOf(envelope));
    }
    const quarantined = this.#quarantined;
    return { ...envelope, items: this.#items, ...(quarantined.length > 0 && { quarantined }) };
  }

  #validate(item: unknown, type: ItemType | undefined): void {
    const { asText, validateItem, intake } = this.#options;
    let object = item;
    let isAccepted = false;
    if (asText !== undefined && item instanceof ObjectText) {
      if (type !== undefined && isUntyped(item.head)) {
        // The list has named the type after this item.
        item = asText.reader.read(item.text, type);
      }
      const { text, isOrdinary } = item as ObjectText;
      isAccepted = asText.acceptsOrdinary && isOrdinary;
      if (!isAccepted) object = JSON.parse(text);
    }
    const index = this.#count++;
    if (!isAccepted) {
      if (type !== undefined) fillType(object, type);
      const refusal = validateItem(object, index);
      if (refusal !== undefined) return void this.#quarantined.push(refusal);
    }
    const held = asText !== undefined && item instanceof ObjectText
      ? asText.hold(item.text, item.head as ObjectHead, item)
      : item;
    this.#items.push((intake === undefined ? held : intake(held)) as T);
  }
}

/** Reads a body to its end as text. */
export async function readText(
  body: ReadableStream<Uint8Array>,
  subject: string,
  options: Pick<DecodeListOptions, "signal" | "onBytes"> = {},
): Promise<string> {
  const text = new PiecedBytes();
  const limit = { maxBytes: MAX_TEXT_BYTES, hint: "ask for less, or read it as a stream (Cluster.open)" };
  await readBody(body, subject, { ...options, ...limit }, (chunk) => text.add(chunk));
  return decodeUtf8(text.all);
}

/**
 * Reads a body to its end, a chunk at a time. An error that `onChunk` throws ends the reading. If the body
 * comes faster than it is read, others get a turn every few milliseconds.
 */
export async function readBody(
  body: ReadableStream<Uint8Array>,
  subject: string,
  options: Pick<DecodeListOptions, "signal" | "onBytes" | "clock"> & {
    readonly maxBytes: number;
    /** What to do about a longer body, for the error text. */
    readonly hint: string;
  },
  onChunk: (chunk: Uint8Array) => void,
): Promise<void> {
  const { signal, onBytes, clock, maxBytes, hint } = options;
  let bytes = 0;
  const pacer = clock && new Pacer({ units: TURN_CHUNKS, ms: TURN_MS, clock });
  const reader = openByteReader(body);
  const unlink = signal && onAbort(signal, () => reader.cancel(signal.reason));
  try {
    for (;;) {
      let chunk: Uint8Array | undefined;
      try {
        chunk = await reader.read();
        if (chunk !== undefined) onBytes?.(chunk.byteLength);
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        throw newNetworkError(`Cannot read the answer for ${subject}: it was cut off`, error);
      }
      signal?.throwIfAborted();
      if (chunk === undefined) return;
      bytes += chunk.byteLength;
      if (bytes > maxBytes) {
        throw new DecodeError(
          `Cannot read the answer for ${subject}: it is longer than ${maxBytes} bytes; ${hint}`,
        );
      }
      onChunk(chunk);
      if (pacer?.spend()) await pacer.rest();
    }
  } finally {
    unlink?.();
    reader.cancel();
  }
}

/** How long to decode without a turn for others. */
const TURN_MS = 4;
/** How much to decode without one: the clock of deployed Workers does not advance while code runs. */
const TURN_CHUNKS = 8;

/** The beginning of an answer, without what is, or where it was cut may be, a credential sent back. */
function quote(head: PiecedBytes): string {
  const text = decodeUtf8(head.all);
  // deno-lint-ignore listwatch/linear-regex -- 60 characters
  const start = text.length > QUOTED ? text.slice(0, QUOTED).replace(/[\w.~+/=-]*$/, "…") : text;
  return JSON.stringify(start.replace(/[\w.~+/=-]{16,}/g, "…"));
}

function itemTypeOf({ apiVersion, kind }: Pick<ListEnvelope, "apiVersion" | "kind">): ItemType | undefined {
  // A bare "List" says nothing about its items.
  if (!apiVersion || !kind?.endsWith("List") || kind === "List") return undefined;
  return { apiVersion, kind: kind.slice(0, -"List".length) };
}

function fillType(item: unknown, { apiVersion, kind }: ItemType): void {
  if (typeof item !== "object" || item === null) return;
  const object = item as { apiVersion?: unknown; kind?: unknown };
  if (!isUntyped(object)) return;
  object.apiVersion = apiVersion;
  object.kind = kind;
}

function isUntyped(
  { apiVersion, kind }: { readonly apiVersion?: unknown; readonly kind?: unknown },
): boolean {
  return kind === undefined && apiVersion === undefined;
}
