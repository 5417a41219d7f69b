/**
 * Objects and lists as JSON, a piece at a time.
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";
import type { Held, Holding } from "../store/holding.ts";
import type { Clock, TimerHandle } from "../util/clock.ts";
import type { Page } from "./list.ts";
import type { Pacer } from "./pacer.ts";
import { newStalledError, type Reader, type Readers } from "./readers.ts";
import { JSON_HEADERS } from "./responses.ts";
import type { View } from "./view.ts";

const encoder = new TextEncoder();

// The whole of a list that is not larger than that goes out at once.
const SMALL_LIST = 64 * 1024;

/** A line of a watch. */
export function eventText(type: string, object: unknown): string {
  return `{"type":"${type}","object":${JSON.stringify(object)}}\n`;
}

/** A line of a watch, about an object as the store holds it. */
export function heldEventText<T extends KubernetesObject>(
  type: string,
  held: Held<T>,
  from: { readonly view: View; readonly holding: Holding<T> },
): string {
  const { view, holding } = from;
  const json = view.eventText && holding.json(held);
  const text = json && view.eventText?.(json);
  return text ? `{"type":"${type}","object":${text}}\n` : eventText(type, view.event(holding.peek(held)));
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
  /** How the page's objects are held. */
  readonly holding: Holding<KubernetesObject>;
  readonly reader: Reader;
  readonly readers: Readers;
  /** Where all who read take turns. */
  readonly pacer: Pacer;
  /** How long a large list waits for its reader. */
  readonly writeTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * The answer to a list. A large one is encoded while it is read, so that it never is in memory as a whole; its objects
 * are those of one snapshot all the same. One that nobody goes on reading is let go.
 */
export function listResponse(page: Page<KubernetesObject>, options: ListResponseOptions): Response {
  const pieces = listPieces(page, options, () => SMALL_LIST);
  const { value: text = "" } = pieces.next();
  const next = pieces.next();
  if (next.done) return new Response(text, { headers: JSON_HEADERS });
  // Begins anew, so that nothing is held for whoever does not read.
  pieces.return();
  const { readers } = options;
  const stream = streamOf(listPieces(page, options, () => readers.pieceLength), options);
  return new Response(stream, { headers: JSON_HEADERS });
}

function streamOf(pieces: Generator<string, void>, options: ListResponseOptions): ReadableStream<Uint8Array> {
  const { clock, writeTimeoutMs, pacer } = options;
  const release = options.reader.hold();
  let rest: Generator<string, void> | undefined = pieces;
  let timer: TimerHandle;
  const end = () => {
    rest = undefined;
    clock.clearTimeout(timer);
    release();
  };
  const awaitReader = (controller: ReadableByteStreamController) => {
    clock.clearTimeout(timer);
    timer = clock.setTimeout(() => {
      end();
      controller.error(newStalledError("list", writeTimeoutMs));
    }, writeTimeoutMs);
  };
  return new ReadableStream({
    type: "bytes",
    start: awaitReader,
    async pull(controller) {
      clock.clearTimeout(timer);
      if (pacer.isDue) await pacer.rest();
      const next = rest?.next();
      if (next === undefined) return;
      if (next.done) {
        end();
        return controller.close();
      }
      awaitReader(controller);
      pacer.spendText(next.value.length);
      controller.enqueue(encode(next.value));
    },
    cancel: end,
  }, { highWaterMark: 0 });
}

function* listPieces(
  page: Page<KubernetesObject>,
  options: ListResponseOptions,
  pieceLength: () => number,
): Generator<string, void> {
  const { view, pretty } = options;
  const list = JSON.stringify(
    { ...view.list(page.metadata), [view.itemsField]: [] },
    null,
    pretty ? 2 : undefined,
  );
  const end = list.lastIndexOf("]");
  let text = list.slice(0, end);
  const separator = pretty ? "\n    " : "";
  const { objects, from, to } = page;
  for (let i = from; i < to; i++) {
    if (i > from) text += ",";
    text += separator + itemText(objects[i], options);
    if (text.length < pieceLength()) continue;
    yield text;
    text = "";
  }
  yield text + (pretty && to > from ? "\n  " : "") + list.slice(end) + "\n";
}

function itemText(held: Held<KubernetesObject>, options: ListResponseOptions): string {
  const { view, pretty, holding } = options;
  // JSON has no line breaks within its strings.
  if (pretty) return JSON.stringify(view.item(holding.peek(held)), null, 2).replaceAll("\n", "\n    ");
  const json = view.itemText && holding.json(held);
  return (json && view.itemText?.(json)) ?? JSON.stringify(view.item(holding.peek(held)));
}
