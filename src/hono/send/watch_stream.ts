/** One watch: what it has sent, and what it sends next. */

import { compareResourceVersions, type KubernetesObject } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import { AGE_ANNOTATION, INITIAL_EVENTS_END_ANNOTATION } from "../../meta/list_watch.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import type { Permission, UserInfo } from "../request/gate.ts";
import { encodeUtf8 } from "../../util/bytes.ts";
import { Outlet, type OutletUser } from "./outlet.ts";
import {
  MOST_PIECE,
  newSpentError,
  newStalledError,
  type OpenWatch,
  type Reader,
  type Readers,
} from "../request/readers.ts";
import { OPEN_UNITS } from "../../util/turns.ts";
import { watchTooOld } from "../../protocol/statuses.ts";
import type { Content } from "../content/content.ts";
import type { Snapshot } from "../content/states.ts";
import { eventText, type GroupKind, heldEventText, type WatchGroup } from "./watch_groups.ts";
import type { LogReader, Watchers } from "./fan_out.ts";
import { WatchLife } from "./watch_life.ts";

export interface WatchRequest<T> extends GroupKind {
  readonly cursor: number;
  /** What the reader has seen: its initial events, or elsewhere. */
  readonly resourceVersion: string;
  /** Whether a resourceVersion from the future is of a lost history, once that is known. */
  readonly isLost?: (signal: AbortSignal) => Promise<boolean>;
  readonly initial?: Snapshot<T>;
  /** Whether it requires each event, and so ends with a list in which some are missing. */
  readonly endsAtRelist: boolean;
  readonly permission: Permission;
  readonly limitMs: number;
  readonly recheckMs: number;
  readonly bufferBytes: number;
  /** How long a reader may leave the next bytes waiting. */
  readonly writeTimeoutMs: number;
  readonly reader: Reader;
  readonly readers: Readers;
  readonly clock: Clock;
}

// What one piece of initial events may cost, besides its length.
const MOST_UNITS = 40_000;

// To hand a piece to the runtime, which writes it to a socket: as a stream, and to the socket itself.
const WRITE_UNITS = 1_500;
const SHARED_WRITE_UNITS = 500;

// To encode a character. To hand it to the socket costs a tenth of that.
const ENCODE_UNITS = 0.5;
const SEND_UNITS = 0.05;

/**
 * Opens a watch: events as lines of JSON.
 *
 * A reader so slow that the log moves past its place gets a 410 ERROR event and is cut off; one that leaves
 * the next bytes waiting for too long is disconnected.
 */
export function openWatch<T extends KubernetesObject>(
  watchers: Watchers<T>,
  request: WatchRequest<T>,
): ReadableStream<Uint8Array> {
  return new Watch(watchers, request).takeBody();
}

type InitialState<T> = Pick<Snapshot<T>, "length" | "key" | "object" | "answers">;

/** A watch that only says why it cannot continue: 200, and one ERROR event. */
export function errorStream(status: Status): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encodeUtf8(eventText("ERROR", status)));
      controller.close();
    },
  });
}

class Watch<T extends KubernetesObject> implements LogReader, OpenWatch, OutletUser {
  readonly #watchers: Watchers<T>;
  readonly #content: Content<T>;
  readonly #request: Omit<WatchRequest<T>, "initial" | keyof GroupKind | "permission">;
  readonly #group: WatchGroup<T>;
  readonly #outlet: Outlet;
  readonly #life: WatchLife;
  readonly wantsHeartbeat: boolean;
  isQueued = false;
  cursor: number;
  #resourceVersion: string;
  /**
   * A resourceVersion from the future, or up to which events may be missing here: what comes up
   * to it has been seen by the reader, elsewhere.
   */
  #skipThrough: string;
  /** The objects of which the reader receives ADDED events first. */
  #initial: InitialState<T> | undefined;
  #initialSent = 0;
  #isHeartbeatDue = false;
  /** What a heartbeat has found waiting in the outlet. */
  #unread: { readonly leftBytes: number; readonly sinceMs: number } | undefined;
  #isOpen = true;
  /** Ends the wait of a reader from the future. */
  #waiting: AbortController | undefined;
  /** There is more to send than the outlet has room for. */
  #isBlocked = false;
  #stallTimer: TimerHandle | undefined;

  constructor(watchers: Watchers<T>, request: WatchRequest<T>) {
    // What the group has, it has for all of its watches; the permission keeps the request.
    const { initial, view, selection, allowBookmarks, permission, ...rest } = request;
    const { reader, readers, resourceVersion } = rest;
    const { content } = watchers;
    this.#watchers = watchers;
    this.#content = content;
    this.#request = rest;
    this.cursor = request.cursor;
    this.#resourceVersion = resourceVersion;
    const { log } = content;
    const isFuture = compareResourceVersions(resourceVersion, log.window.resourceVersion) > 0;
    this.#skipThrough = isFuture || log.mayLackEvents(resourceVersion) ? resourceVersion : "";
    this.#initial = initial;
    this.wantsHeartbeat = allowBookmarks;
    this.#outlet = new Outlet(this);
    this.#group = watchers.groups.join({ view, selection, allowBookmarks });
    reader.keep();
    reader.onSpent = () => this.#disconnect(newSpentError("watch"));
    readers.watches.add(this);
    this.#life = new WatchLife(this, { ...rest, permission });
    watchers.attach(this);
    if (this.isReady) watchers.fanOut.ready(this);
    if (isFuture) this.#cutIfLost(rest.isLost);
  }

  /** A reader of a history that the server has lost would wait in silence, and then miss what came before. */
  async #cutIfLost(isLost: WatchRequest<T>["isLost"]): Promise<void> {
    this.#waiting = new AbortController();
    if (await isLost?.(this.#waiting.signal)) this.cut();
  }

  takeBody(): ReadableStream<Uint8Array> {
    return this.#outlet.takeBody();
  }

  get user(): UserInfo | undefined {
    return this.#life.user;
  }

  get endsAtRelist(): boolean {
    return this.#request.endsAtRelist || this.#skipThrough !== "";
  }

  get isReady(): boolean {
    return this.#isOpen && !this.#isBlocked && (this.#isHeartbeatDue || !this.#isCaughtUp());
  }

  deliver(): boolean {
    if (!this.isReady) return false;
    if (this.#life.isOver) this.stop();
    else if (!this.#hasRoom()) this.#awaitReader();
    else if (this.#initial !== undefined) this.#write(this.#initialPiece(this.#initial));
    else if (this.cursor < this.#content.log.window.tail) this.cut();
    else if (!this.#isCaughtUp()) this.#write(this.#nextPiece());
    else this.#sendHeartbeat();
    return this.isReady;
  }

  heartbeat(): void {
    this.#isHeartbeatDue = true;
    if (this.#isUnread()) this.#disconnect(this.#newStalledError());
    else this.#watchers.fanOut.ready(this);
  }

  cut(): void {
    const status = watchTooOld(this.#resourceVersion, this.#content.log.oldestResourceVersion);
    if (this.#isOpen) this.#outlet.write(encodeUtf8(eventText("ERROR", status)));
    this.stop();
  }

  flush(): void {
    while (this.deliver());
  }

  end(): void {
    this.#isHeartbeatDue = this.wantsHeartbeat;
    this.flush();
    this.stop();
  }

  /** Ends it, without the remaining events. */
  stop(): void {
    if (this.#isOpen) this.#outlet.close();
    this.onGone();
  }

  /** The reader has disconnected, or was. */
  onGone(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#waiting?.abort();
    this.#initial = undefined;
    this.#watchers.detach(this);
    this.#watchers.groups.leave(this.#group);
    this.#life.close();
    this.#stopAwaiting();
    this.#request.readers.watches.delete(this);
    this.#request.reader.release();
  }

  onQueued(bytes: number): void {
    if (!this.#isOpen) return;
    const { reader } = this.#request;
    if (bytes < 0) reader.give(-bytes);
    else if (!reader.take(bytes)) return this.#disconnect(newSpentError("watch"));
    if (bytes > 0 || !this.#isBlocked || !this.#hasRoom()) return;
    this.#isBlocked = false;
    if (this.isReady) this.#watchers.fanOut.ready(this);
  }

  #write(piece: Uint8Array | undefined): void {
    if (piece === undefined || !this.#isOpen) return;
    this.#watchers.fanOut.units += (this.#outlet.isShared ? SHARED_WRITE_UNITS : WRITE_UNITS) +
      piece.byteLength * SEND_UNITS;
    this.#outlet.write(piece);
  }

  /** Whether the outlet takes more: where much waits for all readers together, one piece at a time. */
  #hasRoom(): boolean {
    const { readers, bufferBytes } = this.#request;
    const { queuedBytes } = this.#outlet;
    return queuedBytes === 0 || (queuedBytes < bufferBytes && readers.hasSpare);
  }

  /**
   * Whether heartbeats have found the same bytes for too long: some runtimes say late, or never, that a
   * client has disconnected.
   */
  #isUnread(): boolean {
    const { clock, writeTimeoutMs } = this.#request;
    const { queuedBytes, leftBytes } = this.#outlet;
    const nowMs = monotonicNow(clock);
    if (queuedBytes === 0) this.#unread = undefined;
    else if (this.#unread?.leftBytes !== leftBytes) this.#unread = { leftBytes, sinceMs: nowMs };
    return this.#unread !== undefined && nowMs - this.#unread.sinceMs >= writeTimeoutMs;
  }

  /** There is more to send, and the outlet is full: disconnects a reader that reads nothing of it. */
  #awaitReader(): void {
    this.#isBlocked = true;
    if (this.#stallTimer !== undefined) return;
    const { clock, writeTimeoutMs } = this.#request;
    const { leftBytes } = this.#outlet;
    this.#stallTimer = clock.setTimeout(() => {
      this.#stallTimer = undefined;
      if (!this.#isBlocked) return;
      if (this.#outlet.leftBytes > leftBytes) this.#awaitReader();
      else this.#disconnect(this.#newStalledError());
    }, writeTimeoutMs);
  }

  #newStalledError(): Error {
    return newStalledError("watch", this.#request.writeTimeoutMs);
  }

  /** The reader reads nothing, or too little. What waits is dropped, too. */
  #disconnect(reason: Error): void {
    if (!this.#isOpen) return;
    this.onGone();
    this.#outlet.error(reason);
  }

  #stopAwaiting(): void {
    if (this.#stallTimer !== undefined) this.#request.clock.clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
  }

  #isCaughtUp(): boolean {
    const { tail, entries } = this.#content.log.window;
    return this.#initial === undefined && this.cursor === tail + entries.length;
  }

  #nextPiece(): Uint8Array | undefined {
    const { fanOut } = this.#watchers;
    const chunk = this.#group.chunk(this.cursor, {
      length: this.#outlet.takesLarge ? MOST_PIECE : this.#request.readers.watchPieceLength,
      skipThrough: this.#skipThrough,
    });
    fanOut.units += chunk.units;
    chunk.units = 0;
    if (chunk.isTooLong) {
      this.cut();
      return undefined;
    }
    this.cursor = chunk.to;
    if (chunk.resourceVersion !== "") {
      this.#resourceVersion = chunk.resourceVersion;
      this.#skipThrough = "";
    }
    return chunk.bytes;
  }

  #initialPiece(initial: InitialState<T>): Uint8Array | undefined {
    const { readers } = this.#request;
    const { selection, view, allowBookmarks } = this.#group.kind;
    const { holding } = this.#content;
    const hasFields = selection?.hasFieldsBesides(initial.answers);
    const length = readers.watchPieceLength;
    let text = "";
    let units = 0;
    for (
      ;
      this.#initialSent < initial.length && text.length < length && units < MOST_UNITS;
      this.#initialSent++
    ) {
      units += selection?.units ?? 0;
      const held = initial.object(this.#initialSent);
      if (
        selection?.mayHave(initial.key(this.#initialSent)) === false || selection?.hasLabels?.(held) === false
      ) {
        continue;
      }
      if (hasFields === undefined) {
        text += heldEventText("ADDED", held, { view, holding });
        continue;
      }
      const object = holding.peek(held);
      if (object !== held) units += OPEN_UNITS;
      if (hasFields(object)) text += eventText("ADDED", view.event(object));
    }
    if (this.#initialSent === initial.length) {
      // What the snapshot holds is not held any longer.
      this.#initial = undefined;
      if (allowBookmarks) {
        text += eventText(
          "BOOKMARK",
          view.bookmark({
            resourceVersion: this.#resourceVersion,
            annotations: { [INITIAL_EVENTS_END_ANNOTATION]: "true", ...this.#ageAnnotation() },
          }),
        );
      }
    }
    this.#watchers.fanOut.units += units + text.length * ENCODE_UNITS;
    return text === "" ? undefined : encodeUtf8(text);
  }

  // Up to where the log has each event, unless the reader is further.
  #sendHeartbeat(): void {
    this.#isHeartbeatDue = false;
    const { eventsThrough } = this.#content.log;
    const isBehind = compareResourceVersions(eventsThrough, this.#resourceVersion) < 0;
    const resourceVersion = isBehind ? this.#resourceVersion : eventsThrough;
    const annotations = this.#ageAnnotation();
    const { view } = this.#group.kind;
    this.#write(
      annotations === undefined
        ? this.#group.bookmark(resourceVersion)
        : encodeUtf8(eventText("BOOKMARK", view.bookmark({ resourceVersion, annotations }))),
    );
  }

  /** For a cache above this one: how old the content is. Others need no such annotation. */
  #ageAnnotation(): Record<string, string> | undefined {
    const { ageMs } = this.#content;
    return this.#request.endsAtRelist && ageMs >= 1 ? { [AGE_ANNOTATION]: String(ageMs) } : undefined;
  }
}
