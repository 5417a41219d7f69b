/**
 * Watches as server-sent events, for `EventSource` in browsers.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 * @module
 */

import { compareResourceVersions } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import { INITIAL_EVENTS_END_ANNOTATION } from "../../meta/list_watch.ts";
import { LineCutter } from "../../text/line_cutter.ts";
import { ObjectText, ObjectTextReader } from "../../text/object_text_reader.ts";
import { encodeUtf8 } from "../../util/bytes.ts";

export const EVENT_STREAM_TYPE = "text/event-stream; charset=utf-8";

/**
 * The lines of a watch as server-sent events: each is a message with the watch event as its data, and has the
 * resourceVersion from which a reader may resume as its `id`. There is none while a reader would miss
 * something: up to the bookmark behind the initial events, and where a resourceVersion is not beyond the last
 * one.
 *
 * An ERROR event, which is 410 for a reader that has fallen behind, becomes an event named `expired`, with
 * the Status as its data and an empty `id`: the next connection begins with the initial events.
 *
 * @param expired Why the reader cannot resume where it has been: the
 * first event. Then `lines` have initial events.
 */
export function eventStream(
  lines: ReadableStream<Uint8Array>,
  options: { readonly hasInitialEvents: boolean; readonly expired?: Status | undefined },
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = lines.getReader();
  const events = new ObjectTextReader().events();
  const cutter = new LineCutter(Infinity, events);
  const ids = new EventIds(options.hasInitialEvents);
  // How soon a browser connects again:
  // https://html.spec.whatwg.org/multipage/server-sent-events.html#dom-eventsource-retry
  let text = "retry: 1000\n\n";
  if (options.expired !== undefined) text += expiredEvent(JSON.stringify(options.expired));
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      while (text === "") {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        cutter.feed(value);
        for (let line = cutter.next(); line !== undefined; line = cutter.next()) {
          const event = typeof line === "string" ? events.readEvent(line) : line;
          text += messageOf(event as WatchLine, typeof line === "string" ? line : undefined, ids);
        }
      }
      controller.enqueue(encodeUtf8(text));
      text = "";
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}

interface WatchLine {
  readonly type?: unknown;
  readonly object: ObjectText | { readonly metadata?: EventMetadata };
}

interface EventMetadata {
  readonly resourceVersion?: string;
  readonly annotations?: Record<string, string>;
}

/** @param line Its text, if it is not as API servers write the events of objects. */
function messageOf({ type, object }: WatchLine, line: string | undefined, ids: EventIds): string {
  if (type === "ERROR") return expiredEvent(JSON.stringify(object));
  const isText = object instanceof ObjectText;
  const { metadata } = (isText ? object.head : object) as { readonly metadata?: EventMetadata };
  const isInitialEnd = type === "BOOKMARK" &&
    metadata?.annotations?.[INITIAL_EVENTS_END_ANNOTATION] === "true";
  const id = ids.next(metadata?.resourceVersion ?? "", isInitialEnd);
  return `${id}data: ${line ?? `{"type":"${type}","object":${(object as ObjectText).text}}`}\n\n`;
}

/** The ids of messages: from where a reader may resume. */
class EventIds {
  #isInitial: boolean;
  #last = "";

  constructor(hasInitialEvents: boolean) {
    this.#isInitial = hasInitialEvents;
  }

  /** The line with the id of the next message; empty where it has none. */
  next(resourceVersion: string, isInitialEnd: boolean): string {
    if (isInitialEnd) this.#isInitial = false;
    if (this.#isInitial || compareResourceVersions(resourceVersion, this.#last) <= 0) return "";
    this.#last = resourceVersion;
    return `id: ${resourceVersion}\n`;
  }
}

function expiredEvent(status: string): string {
  return `event: expired\nid\ndata: ${status}\n\n`;
}
