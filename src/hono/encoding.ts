/**
 * Objects and lists as JSON, a piece at a time.
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";
import type { Held } from "../store/object_codec.ts";
import type { HeldContent } from "./held_content.ts";
import type { Page } from "./list.ts";
import { JSON_HEADERS } from "./responses.ts";
import type { View } from "./view.ts";

const encoder = new TextEncoder();

// A piece of this size is worth a write; the whole of a list that is not larger than a few goes out at once.
const PIECE_CHARACTERS = 64 * 1024;
const WHOLE_CHARACTERS = 512 * 1024;

/** A line of a watch. */
export function eventText(type: string, object: unknown): string {
  return `{"type":"${type}","object":${JSON.stringify(object)}}\n`;
}

/** A line of a watch, about an object as the store holds it. */
export function heldEventText<T extends KubernetesObject>(
  type: string,
  held: Held<T>,
  from: { readonly view: View; readonly content: HeldContent<T> },
): string {
  const { view, content } = from;
  const json = view.eventText && content.json(held);
  const text = json && view.eventText?.(json);
  return text ? `{"type":"${type}","object":${text}}\n` : eventText(type, view.event(content.open(held)));
}

/** Text as UTF-8. */
export function encode(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** The answer to a get. */
export function objectResponse(
  object: KubernetesObject,
  options: { readonly view: View; readonly pretty: boolean },
): Response {
  const text = JSON.stringify(options.view.one(object), null, options.pretty ? 2 : undefined);
  return new Response(text + "\n", { headers: JSON_HEADERS });
}

/** How a list is written. */
export interface ListResponseOptions {
  readonly view: View;
  readonly pretty: boolean;
  /** What the page is of. */
  readonly content: HeldContent<KubernetesObject>;
}

/**
 * The answer to a list. A large one is encoded while it is read, so that it never is in memory as a whole; its objects
 * are those of one snapshot all the same.
 */
export function listResponse(page: Page<KubernetesObject>, options: ListResponseOptions): Response {
  const pieces = listPieces(page, options);
  let text = "";
  for (let next = pieces.next(); !next.done; next = pieces.next()) {
    text += next.value;
    if (text.length > WHOLE_CHARACTERS) {
      return new Response(streamOf(text, pieces), { headers: JSON_HEADERS });
    }
  }
  return new Response(text, { headers: JSON_HEADERS });
}

function streamOf(first: string, rest: Iterator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encode(first)),
    pull(controller) {
      const next = rest.next();
      if (next.done) controller.close();
      else controller.enqueue(encode(next.value));
    },
  }, { highWaterMark: 0 });
}

function* listPieces(page: Page<KubernetesObject>, options: ListResponseOptions): Generator<string, void> {
  const { view, pretty } = options;
  const list = JSON.stringify(
    { ...view.list(page.metadata), [view.itemsField]: [] },
    null,
    pretty ? 2 : undefined,
  );
  const end = list.lastIndexOf("]");
  let text = list.slice(0, end);
  const separator = pretty ? "\n    " : "";
  for (const [i, item] of page.items.entries()) {
    if (i > 0) text += ",";
    text += separator + itemText(item, options);
    if (text.length < PIECE_CHARACTERS) continue;
    yield text;
    text = "";
  }
  yield text + (pretty && page.items.length > 0 ? "\n  " : "") + list.slice(end) + "\n";
}

function itemText(held: Held<KubernetesObject>, options: ListResponseOptions): string {
  const { view, pretty, content } = options;
  // JSON has no line breaks within its strings.
  if (pretty) return JSON.stringify(view.item(content.open(held)), null, 2).replaceAll("\n", "\n    ");
  const json = view.itemText && content.json(held);
  return (json && view.itemText?.(json)) ?? JSON.stringify(view.item(content.open(held)));
}
