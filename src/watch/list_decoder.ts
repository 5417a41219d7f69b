/**
 * From the bytes of a list to its items.
 * @module
 */

import { DecodeError } from "../meta/decode_error.ts";
import type { ListPage, Quarantined } from "../meta/list_watch.ts";
import type { ListMeta } from "../meta/object.ts";
import { onAbort } from "../util/abort.ts";
import { errorMessage } from "../util/errors.ts";
import { openByteReader } from "./byte_reader.ts";
import { newNetworkError } from "./network_failure.ts";

/** A list without its items. */
export interface ListEnvelope {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ListMeta;
}

/** Options of {@linkcode decodeList}. */
export interface DecodeListOptions {
  /**
   * Judges the list as a whole: narrows what came to an envelope, or throws. It sees everything but the items, which are
   * an empty array; their absence shows.
   */
  readonly validateList: (list: Readonly<Record<string, unknown>>) => ListEnvelope;
  /** Judges one item: what is wrong with it, or `undefined`. Called in the list's order. */
  readonly validateItem: (item: unknown, index: number) => Quarantined | undefined;
  /** Ends the reading: the body is cancelled, and the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Told how many bytes have arrived, chunk by chunk. */
  readonly onBytes?: (bytes: number) => void;
  /** What is listed, for error texts: `"pods" in "default"`. */
  readonly subject?: string;
}

/**
 * Decodes the body of a list. Items that are refused are set aside and reported in the page; the others are the decoded
 * objects themselves.
 *
 * The items of a built-in list come without `apiVersion` and `kind` (a `PodList` says it once for all): items that lack
 * them are given the list's own, so that an object is the same whether a list or a watch brought it.
 *
 * The body's text is held while it is parsed, its bytes are not.
 *
 * @example
 * ```ts
 * import { decodeList, type KubernetesObject, newObjectValidator, validateList } from "@listwatch/cache";
 * const body = Response.json({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [{}] }).body!;
 * const validate = newObjectValidator();
 * const page = await decodeList<KubernetesObject>(body, {
 *   validateList: (list) => validateList(list, '"pods"'),
 *   validateItem: (item, index) => validate(item, `items[${index}]`),
 * });
 * console.log(page.items.length, page.quarantined?.[0].path); // 0 items[0].metadata
 * ```
 *
 * @throws {DecodeError} The body is no JSON, or no list.
 * @throws {NetworkError} The connection broke before the body's end.
 */
export async function decodeList<T>(
  body: ReadableStream<Uint8Array>,
  options: DecodeListOptions,
): Promise<ListPage<T>> {
  const { subject = "the resource" } = options;
  const list = parse(await readText(body, subject, options), subject);
  const { items, ...rest } = list;
  const envelope = options.validateList("items" in list ? { ...rest, items: [] } : rest);
  if (Array.isArray(items)) return { ...envelope, ...accept<T>(items, envelope, options) };
  if (items === null) return { ...envelope, items: [] }; // how a Go server writes a slice that was never made
  throw new DecodeError(`Cannot list ${subject}: "items" is ${typeof items}, not an array`);
}

/**
 * Reads a body to its end as text. The bytes of each chunk are let go as soon as they are decoded.
 *
 * @throws {NetworkError} The connection broke before the body's end.
 * @throws {DecodeError} The text is longer than the runtime's longest string.
 */
export async function readText(
  body: ReadableStream<Uint8Array>,
  subject: string,
  options: Pick<DecodeListOptions, "signal" | "onBytes"> = {},
): Promise<string> {
  const { signal, onBytes } = options;
  const reader = openByteReader(body, onBytes);
  const unlink = signal && onAbort(signal, () => reader.cancel(signal.reason));
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const parts: string[] = [];
  try {
    for (let chunk = await reader.read(); chunk !== undefined; chunk = await reader.read()) {
      parts.push(decoder.decode(chunk, { stream: true }));
    }
    signal?.throwIfAborted();
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw newNetworkError(`The answer for ${subject} was cut off`, error);
  } finally {
    unlink?.();
    reader.cancel();
  }
  parts.push(decoder.decode());
  try {
    return parts.join("");
  } catch (error) {
    throw new DecodeError(
      `Cannot read the answer for ${subject}: it is longer than this runtime's longest text; ask for pages (limit)`,
      { cause: error },
    );
  }
}

function parse(text: string, subject: string): Record<string, unknown> {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch (error) {
    throw new DecodeError(
      `Cannot list ${subject}: the answer is not JSON: ${errorMessage(error)}; it begins with ${quote(text)}`,
      { cause: error },
    );
  }
  if (typeof list === "object" && list !== null && !Array.isArray(list)) {
    return list as Record<string, unknown>;
  }
  throw new DecodeError(`Cannot list ${subject}: the answer is no list; it begins with ${quote(text)}`);
}

function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

function accept<T>(
  items: unknown[],
  envelope: ListEnvelope,
  options: DecodeListOptions,
): { items: T[]; quarantined?: Quarantined[] } {
  const itemType = itemTypeOf(envelope);
  const quarantined: Quarantined[] = [];
  let kept = 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (itemType !== undefined) fillType(item, itemType);
    const refusal = options.validateItem(item, i);
    if (refusal === undefined) items[kept++] = item;
    else quarantined.push(refusal);
  }
  items.length = kept;
  return quarantined.length === 0 ? { items: items as T[] } : { items: items as T[], quarantined };
}

interface ItemType {
  readonly apiVersion: string;
  readonly kind: string;
}

function itemTypeOf({ apiVersion, kind }: ListEnvelope): ItemType | undefined {
  // A bare "List" says nothing about its items.
  if (!apiVersion || !kind?.endsWith("List") || kind === "List") return undefined;
  return { apiVersion, kind: kind.slice(0, -"List".length) };
}

function fillType(item: unknown, { apiVersion, kind }: ItemType): void {
  if (typeof item !== "object" || item === null) return;
  const object = item as { apiVersion?: unknown; kind?: unknown };
  if (object.kind !== undefined || object.apiVersion !== undefined) return;
  object.apiVersion = apiVersion;
  object.kind = kind;
}
