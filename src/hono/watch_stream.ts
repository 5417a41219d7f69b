/**
 * One watch, as a stream of bytes.
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";
import { compareResourceVersions } from "../meta/resource_version.ts";
import type { Status } from "../meta/status.ts";
import { INITIAL_EVENTS_END_ANNOTATION } from "../meta/watch_event.ts";
import type { Clock, TimerHandle } from "../util/clock.ts";
import type { UserInfo } from "./authorization.ts";
import { encode, eventText, heldEventText, type LogEntry } from "./encoding.ts";
import type { EventLog, LogReader } from "./event_log.ts";
import type { Permission } from "./gate.ts";
import {
  newStalledError,
  OPEN_UNITS,
  type OpenWatch,
  type Pacer,
  type Reader,
  type Readers,
} from "./readers.ts";
import { watchTooOld } from "../protocol/statuses.ts";
import type { Selection } from "./selection.ts";
import type { Snapshot } from "./snapshot.ts";
import type { View } from "./view.ts";
import { WatchLife } from "./watch_life.ts";

/** What is watched. */
export interface WatchRequest<T> {
  readonly view: View;
  /** Which objects; `undefined`: all of them. */
  readonly selection: Selection | undefined;
  /** The first entry of the log to be read. */
  readonly cursor: number;
  /** What the reader has seen: its initial events, or elsewhere. */
  readonly resourceVersion: string;
  /** What to begin with, as ADDED events. */
  readonly initial?: Snapshot<T>;
  readonly allowBookmarks: boolean;
  /** The permission that it was opened with. */
  readonly permission: Permission;
  /** Ends the watch after this time. */
  readonly limitMs: number;
  /** How often the permission is renewed. */
  readonly recheckMs: number;
  /** How many bytes may wait to be read. */
  readonly bufferBytes: number;
  /** How long a reader may leave the next bytes waiting. */
  readonly writeTimeoutMs: number;
  readonly reader: Reader;
  readonly readers: Readers;
  /** Counts what the selection costs. */
  readonly pacer: Pacer;
  /** Where all readers take turns. */
  readonly readersPacer: Pacer;
  readonly clock: Clock;
}

// What a relist may put into the stream of one reader at once.
const RELIST_BYTES = 4 * 1024 * 1024;

/**
 * Opens a watch: events as lines of JSON, those of one turn in one chunk.
 *
 * Nothing is queued for a reader: it has a place in the log, and what its stream has room for is taken from there.
 * A reader so slow that the log moves past its place gets a 410 ERROR event and is cut off; one that leaves the next
 * bytes waiting for too long is disconnected.
 */
export function openWatch<T extends KubernetesObject>(
  log: EventLog<T>,
  request: WatchRequest<T>,
): ReadableStream<Uint8Array> {
  const watch = new Watch(log, request);
  return new ReadableStream({
    type: "bytes",
    start: (controller) => watch.open(controller),
    pull: () => watch.wake(),
    cancel: () => watch.close(),
  }, { highWaterMark: request.bufferBytes });
}

/** A watch that only says why it cannot continue: 200, and one ERROR event. */
export function errorStream(status: Status): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encode(eventText("ERROR", status)));
      controller.close();
    },
  });
}

class Watch<T extends KubernetesObject> implements LogReader, OpenWatch {
  readonly #log: EventLog<T>;
  readonly #request: Omit<WatchRequest<T>, "initial">;
  readonly wantsHeartbeat: boolean;
  #cursor: number;
  #resourceVersion: string;
  /** A resourceVersion from the future: what comes up to it has been seen by the reader, elsewhere. */
  readonly #skipThrough: string;
  #initial: Pick<Snapshot<T>, "keys" | "objects">;
  #initialSent = 0;
  #initialDone: boolean;
  /** Others have a turn; `wake` is called after it. */
  #isPaused = false;
  #controller: ReadableByteStreamController | undefined;
  /** What has been made of the chunk that others have a turn in the middle of. */
  #parts: Uint8Array[] = [];
  #length = 0;
  #isWithinRelist = false;
  #life: WatchLife | undefined;
  #detach: () => void = () => {};
  #release: () => void = () => {};
  /** The bytes in the stream, as they were counted last. */
  #queuedBytes = 0;
  /** All that were put into it. */
  #sentBytes = 0;
  #stallTimer: TimerHandle | undefined;

  constructor(log: EventLog<T>, request: WatchRequest<T>) {
    this.#log = log;
    const { initial: _, ...rest } = request;
    this.#request = rest;
    this.#cursor = request.cursor;
    this.#resourceVersion = request.resourceVersion;
    const isFuture = compareResourceVersions(request.resourceVersion, log.resourceVersion) > 0;
    this.#skipThrough = isFuture ? request.resourceVersion : "";
    this.#initial = request.initial ?? NOTHING;
    this.#initialDone = request.initial === undefined;
    this.wantsHeartbeat = request.allowBookmarks;
  }

  get cursor(): number {
    return this.#cursor;
  }

  get user(): UserInfo | undefined {
    return this.#life?.user;
  }

  open(controller: ReadableByteStreamController): void {
    this.#controller = controller;
    const { reader, readers } = this.#request;
    this.#release = reader.hold();
    readers.watches.add(this);
    this.#life = new WatchLife(this, this.#request);
    this.#detach = this.#log.attach(this);
  }

  /** There is more to read. */
  wake(): void {
    this.#countQueue();
    while (this.#controller !== undefined && !this.#isPaused && !this.#isCaughtUp()) {
      if (this.#life?.isOver) return this.stop();
      if (!this.#hasRoom()) return this.#awaitReader();
      if (this.#cursor < this.#log.window.tail) return this.cut();
      const chunk = this.#nextChunk();
      if (chunk === undefined) return;
      const { readersPacer } = this.#request;
      // Before the stream takes the bytes away, and asks for more.
      readersPacer.spendText(chunk.byteLength);
      if (readersPacer.isDue && !this.#isCaughtUp()) this.#pause(readersPacer);
      this.#enqueue(chunk);
    }
  }

  heartbeat(): void {
    if (this.#life?.isOver) return this.stop();
    // A bookmark speaks of everything before it: not while something waits to be read.
    if (this.#isCaughtUp() && (this.#controller?.desiredSize ?? 0) > 0) {
      this.#enqueue(encode(this.#bookmark()));
    }
  }

  cut(): undefined {
    const status = watchTooOld(this.#resourceVersion, this.#log.oldestResourceVersion);
    const controller = this.#controller;
    // First, as a stream asks for more while it is given something.
    this.close();
    controller?.enqueue(encode(eventText("ERROR", status)));
    controller?.close();
  }

  end(): void {
    this.wake();
    if (this.wantsHeartbeat) this.heartbeat();
    this.stop();
  }

  /** Ends it, without the remaining events. */
  stop(): void {
    this.#controller?.close();
    this.close();
  }

  /** The reader disconnected. */
  close(): void {
    this.#controller = undefined;
    this.#detach();
    this.#life?.close();
    this.#stopAwaiting();
    this.#request.readers.watches.delete(this);
    this.#request.readers.buffered(-this.#queuedBytes);
    this.#queuedBytes = 0;
    this.#release();
  }

  #enqueue(chunk: Uint8Array): void {
    if (this.#controller === undefined) return;
    this.#sentBytes += chunk.byteLength;
    this.#controller.enqueue(chunk);
    this.#countQueue();
  }

  #countQueue(): void {
    if (this.#controller === undefined) return;
    const queuedBytes = this.#request.bufferBytes - (this.#controller.desiredSize ?? 0);
    if (queuedBytes === this.#queuedBytes) return;
    this.#request.readers.buffered(queuedBytes - this.#queuedBytes);
    this.#queuedBytes = queuedBytes;
  }

  /** Whether the stream takes more: where much waits for all readers together, one chunk at a time. */
  #hasRoom(): boolean {
    return this.#queuedBytes <= 0 ||
      (this.#queuedBytes < this.#request.bufferBytes && this.#request.readers.hasRoom);
  }

  /** There is more to send, and the stream is full: disconnects a reader that reads nothing of it. */
  #awaitReader(): void {
    if (this.#stallTimer !== undefined) return;
    const { clock, writeTimeoutMs } = this.#request;
    const readBytes = this.#sentBytes - this.#queuedBytes;
    this.#stallTimer = clock.setTimeout(() => {
      this.#stallTimer = undefined;
      this.#countQueue();
      if (this.#isCaughtUp() || this.#hasRoom()) return;
      if (this.#sentBytes - this.#queuedBytes > readBytes) return this.#awaitReader();
      // What waits in the stream goes, too.
      this.#controller?.error(newStalledError("watch", writeTimeoutMs));
      this.close();
    }, writeTimeoutMs);
  }

  #stopAwaiting(): void {
    if (this.#stallTimer !== undefined) this.#request.clock.clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
  }

  /** The sequence number of the next entry of the log. */
  #head(): number {
    const { tail, entries } = this.#log.window;
    return tail + entries.length;
  }

  #isCaughtUp(): boolean {
    return this.#initialDone && this.#cursor === this.#head();
  }

  #nextChunk(): Uint8Array | undefined {
    if (!this.#initialDone) return this.#initialChunk();
    const { pacer, selection, readers } = this.#request;
    const length = readers.pieceLength;
    const { tail, entries } = this.#log.window;
    while (this.#cursor < tail + entries.length && (this.#length < length || this.#isWithinRelist)) {
      // In the middle of a relist the log would move on past its place.
      if (selection !== undefined && pacer.spend(2 * selection.units) && !this.#isWithinRelist) {
        return this.#pause(pacer);
      }
      const entry = entries.at(this.#cursor - tail);
      this.#cursor++;
      if (entry === undefined) continue;
      // The changes of a relist go out together.
      this.#isWithinRelist = entry.gapAfter !== undefined && entry.type !== "BOOKMARK";
      const bytes = this.#encoded(entry);
      if (bytes === undefined) continue;
      this.#parts.push(bytes);
      this.#length += bytes.byteLength;
      // It is cheaper for both to list again, which waits for the reader.
      if (this.#isWithinRelist && this.#length > RELIST_BYTES) return this.cut();
    }
    if (this.#length === 0) return undefined;
    const chunk = concatenate(this.#parts, this.#length);
    this.#parts = [];
    this.#length = 0;
    return chunk;
  }

  #initialChunk(): Uint8Array | undefined {
    const { keys, objects } = this.#initial;
    const { selection, view, allowBookmarks, pacer, readers } = this.#request;
    const { holding } = this.#log;
    const length = readers.pieceLength;
    let text = "";
    for (; this.#initialSent < keys.length && text.length < length; this.#initialSent++) {
      if (selection !== undefined && pacer.spend(selection.units)) {
        this.#pause(pacer);
        return text === "" ? undefined : encode(text);
      }
      const held = objects[this.#initialSent];
      if (selection?.mayHave(keys[this.#initialSent]) === false || selection?.hasLabels?.(held) === false) {
        continue;
      }
      if (selection?.hasFields === undefined) {
        text += heldEventText("ADDED", held, { view, holding });
        continue;
      }
      const object = holding.peek(held);
      if (object !== held) pacer.spend(OPEN_UNITS);
      if (selection.hasFields(object)) text += eventText("ADDED", view.event(object));
    }
    if (this.#initialSent === keys.length) {
      this.#initialDone = true;
      // What the snapshot holds is not held any longer.
      this.#initial = NOTHING;
      if (allowBookmarks) {
        text += eventText(
          "BOOKMARK",
          view.bookmark({
            resourceVersion: this.#resourceVersion,
            annotations: { [INITIAL_EVENTS_END_ANNOTATION]: "true" },
          }),
        );
      }
    }
    return text === "" ? this.#nextChunk() : encode(text);
  }

  #pause(pacer: Pacer): undefined {
    this.#isPaused = true;
    pacer.rest().then(() => {
      this.#isPaused = false;
      this.wake();
    });
  }

  /** The entry as this reader sees it: `undefined` where it sees nothing. */
  #encoded(entry: LogEntry<T>): Uint8Array | undefined {
    const { position, object, oldObject } = entry;
    if (!entry.isLate && compareResourceVersions(position, this.#skipThrough) <= 0) return undefined;
    const isRelist = entry.gapAfter !== undefined;
    // In the middle of a relist a reader has no position.
    if (!isRelist || entry.type === "BOOKMARK") this.#resourceVersion = position;
    if (object === undefined) return this.wantsHeartbeat ? encode(this.#bookmark()) : undefined;
    if (this.#request.selection?.mayHave(entry.key) === false) return undefined;
    const was = oldObject !== undefined && this.#isSelected(entry, "oldObject");
    const is = entry.type !== "DELETED" && this.#isSelected(entry, "object");
    const { view } = this.#request;
    if (is) return this.#log.views.bytes(entry, was ? "MODIFIED" : "ADDED", view);
    if (!was) return undefined;
    return this.#log.views.bytes(entry, entry.type === "DELETED" ? "DELETED" : "LEFT", view);
  }

  #isSelected(entry: LogEntry<T>, which: "object" | "oldObject"): boolean {
    const { hasLabels, hasFields } = this.#request.selection ?? {};
    return hasLabels?.(entry[which]) !== false &&
      (hasFields === undefined || hasFields(this.#log.views.opened(entry, which)!));
  }

  #bookmark(): string {
    return eventText(
      "BOOKMARK",
      this.#request.view.bookmark({ resourceVersion: this.#bookmarkVersion() }),
    );
  }

  // What the log has come to, unless something of it waits to be read, or the reader was further from the start.
  #bookmarkVersion(): string {
    const isBehind = compareResourceVersions(this.#log.resourceVersion, this.#skipThrough) < 0;
    return this.#isCaughtUp() && !isBehind ? this.#log.resourceVersion : this.#resourceVersion;
  }
}

const NOTHING: Pick<Snapshot<never>, "keys" | "objects"> = { keys: [], objects: [] };

// A chunk of its own for each reader, as some runtimes take the buffer away when it is sent.
function concatenate(parts: readonly Uint8Array[], length: number): Uint8Array {
  const chunk = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    chunk.set(part, offset);
    offset += part.byteLength;
  }
  return chunk;
}
