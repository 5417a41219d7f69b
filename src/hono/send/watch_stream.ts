/** One watch: its life, its reader, its waiting pieces, and the way out: the body of its response. */

import type { KubernetesObject } from "../../meta/object.ts";
import { isExpired, type Status } from "../../meta/status.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import type { Permission, UserInfo } from "../request/gate.ts";
import { concatenated, encodeUtf8 } from "../../util/bytes.ts";
import { Deque } from "../../util/collections.ts";
import { toError } from "../../util/errors.ts";
import { type ByteSink, PushedBody, type SinkUser } from "../../protocol/server_sockets.ts";
import {
  MOST_PIECE,
  newSpentError,
  newStalledError,
  type OpenWatch,
  type Reader,
} from "../request/readers.ts";
import type { Feed } from "./event_feed.ts";
import { eventText } from "./watch_groups.ts";
import type { LogReader, Watchers } from "./fan_out.ts";
import { WatchLife } from "./watch_life.ts";

/** The settings of the read API that hold for all watches. */
export interface WatchSettings {
  readonly clock: Clock;
  readonly watchRecheckMs: number;
  readonly watchBufferBytes: number;
  /** How long the next bytes may wait for the reader. */
  readonly writeTimeoutMs: number;
}

export interface WatchRequest {
  readonly permission: Permission;
  readonly limitMs: number;
  readonly reader: Reader;
  readonly settings: WatchSettings;
}

// The cost of handing a piece to the runtime: as a stream, which it writes to a socket, and to the socket.
const WRITE_UNITS = 1_500;
const SHARED_WRITE_UNITS = 500;
// The cost of handing a character to the socket.
const SEND_UNITS = 0.05;

export function openWatch<T extends KubernetesObject>(
  watchers: Watchers<T>,
  feed: Feed,
  request: WatchRequest,
): ReadableStream<Uint8Array> {
  return new Watch(watchers, feed, request).takeBody();
}

/** A watch that only says why it cannot continue: 200, and one ERROR event. */
export function errorStream(status: Status): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(encodeUtf8(eventText("ERROR", status)));
      controller.close();
    },
  });
}

class Watch<T extends KubernetesObject> implements LogReader, OpenWatch {
  readonly #watchers: Watchers<T>;
  readonly #feed: Feed;
  readonly #request: Omit<WatchRequest, "permission">;
  readonly #outlet: Outlet;
  readonly #life: WatchLife;
  readonly #release: () => void;
  isQueued = false;
  #isHeartbeatDue = false;
  /** The bytes that a heartbeat has found waiting in the outlet. */
  #unread: { readonly leftBytes: number; readonly sinceMs: number } | undefined;
  #isOpen = true;
  /** There is more to send than the outlet has room for. */
  #isBlocked = false;
  #stallTimer: TimerHandle | undefined;

  constructor(watchers: Watchers<T>, feed: Feed, request: WatchRequest) {
    // The permission keeps the request.
    const { permission, ...rest } = request;
    const { reader, limitMs, settings: { clock, watchRecheckMs: recheckMs } } = rest;
    this.#watchers = watchers;
    this.#feed = feed;
    this.#request = rest;
    this.#outlet = new Outlet(this);
    this.#release = reader.hold();
    reader.onSpent = () => this.#disconnect(newSpentError("watch"));
    reader.readers.watches.add(this);
    this.#life = new WatchLife(this, { clock, permission, limitMs, recheckMs });
    watchers.attach(this);
    this.wake();
    feed.opened(this);
  }

  takeBody(): ReadableStream<Uint8Array> {
    return this.#outlet.takeBody();
  }

  get user(): UserInfo | undefined {
    return this.#life.user;
  }

  get cursor(): number {
    return this.#feed.cursor;
  }

  get endsAtRelist(): boolean {
    return this.#feed.endsAtRelist;
  }

  get wantsHeartbeat(): boolean {
    return this.#feed.wantsHeartbeat;
  }

  get #maySend(): boolean {
    return this.#isOpen && !this.#isBlocked;
  }

  wake(): void {
    if (this.#maySend && (this.#isHeartbeatDue || this.#feed.hasNext)) this.#watchers.fanOut.ready(this);
  }

  deliver(): boolean {
    if (!this.#maySend) return false;
    const { expiresAtMs } = this.#life;
    // Most credentials do not end: thousands of watches need no look at the clock in each turn.
    if (expiresAtMs < Infinity && expiresAtMs <= this.#request.settings.clock.now()) {
      this.stop();
      return false;
    }
    const { hasNext } = this.#feed;
    let hasMore = hasNext;
    if (!hasNext && !this.#isHeartbeatDue) return false;
    if (!this.#hasRoom()) this.#awaitReader();
    else if (hasNext) hasMore = this.#sendNext();
    else this.#sendHeartbeat();
    return this.#maySend && (this.#isHeartbeatDue || hasMore);
  }

  heartbeat(): void {
    this.#isHeartbeatDue = true;
    if (this.#isUnread()) this.#disconnect(this.#newStalledError());
    else this.#watchers.fanOut.ready(this);
  }

  cut(): void {
    if (this.#isOpen) this.#outlet.write(encodeUtf8(eventText("ERROR", this.#feed.lost())));
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

  /** Ends the watch, without the remaining events. What waits already does so for its reader, for a time. */
  stop(): void {
    if (!this.#isOpen) return;
    this.#outlet.close();
    this.onGone();
    if (this.#outlet.queuedBytes > 0) this.#awaitReader();
  }

  /** The reader has disconnected, or was. */
  onGone(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#watchers.detach(this);
    this.#feed.close();
    this.#life.close();
    this.#awaitNoReader();
    this.#request.reader.readers.watches.delete(this);
    this.#release();
  }

  /** Bytes came into the outlet, or left it. */
  onQueued(bytes: number): void {
    const { reader } = this.#request;
    if (bytes < 0) reader.give(-bytes);
    else if (!reader.take(bytes)) return this.#disconnect(newSpentError("watch"));
    if (!this.#isOpen && this.#outlet.queuedBytes === 0) this.#awaitNoReader();
    if (!this.#isOpen || bytes > 0 || !this.#isBlocked || !this.#hasRoom()) return;
    this.#isBlocked = false;
    this.wake();
  }

  #write(piece: Uint8Array | undefined): void {
    if (piece === undefined || !this.#isOpen) return;
    this.#watchers.fanOut.units += (this.#outlet.isShared ? SHARED_WRITE_UNITS : WRITE_UNITS) +
      piece.byteLength * SEND_UNITS;
    this.#outlet.write(piece);
  }

  /** Whether the outlet takes more; one piece at a time while much waits for all readers together. */
  #hasRoom(): boolean {
    const { reader, settings: { watchBufferBytes } } = this.#request;
    const { queuedBytes } = this.#outlet;
    return queuedBytes === 0 || (queuedBytes < watchBufferBytes && reader.readers.hasSpare);
  }

  /**
   * Whether heartbeats have found the same bytes for too long: some runtimes say late, or never, that a
   * client has disconnected.
   */
  #isUnread(): boolean {
    const { clock, writeTimeoutMs } = this.#request.settings;
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
    const { clock, writeTimeoutMs } = this.#request.settings;
    const { leftBytes } = this.#outlet;
    this.#stallTimer = clock.setTimeout(() => {
      this.#stallTimer = undefined;
      if (!this.#isBlocked) return;
      if (this.#outlet.leftBytes > leftBytes) this.#awaitReader();
      else this.#disconnect(this.#newStalledError());
    }, writeTimeoutMs);
  }

  #awaitNoReader(): void {
    this.#request.settings.clock.clearTimeout(this.#stallTimer);
    this.#stallTimer = undefined;
  }

  #newStalledError(): Error {
    return newStalledError("watch", this.#request.settings.writeTimeoutMs);
  }

  /** The reader reads nothing, or too little. Waiting pieces are dropped, too. */
  #disconnect(reason: Error): void {
    this.onGone();
    this.#outlet.error(reason);
  }

  #sendNext(): boolean {
    const { fanOut } = this.#watchers;
    try {
      const { bytes, units, isCut, hasMore } = this.#feed.next(this.#outlet.takesLarge);
      fanOut.units += units;
      if (isCut) this.cut();
      else this.#write(bytes);
      return hasMore;
    } catch (error) {
      // An object on disk that cannot be read, or never again: the other watches continue.
      if (isExpired(error)) this.cut();
      else this.#disconnect(toError(error));
      return false;
    }
  }

  #sendHeartbeat(): void {
    this.#isHeartbeatDue = false;
    this.#write(this.#feed.heartbeat());
  }
}

/**
 * The way out for the pieces of a watch. Pieces are shared with other watches, and take no memory until they
 * are sent.
 *
 * A stream gets copies, as some runtimes take the buffer away when it is sent; waiting pieces are kept here,
 * not in the stream. A server that takes the pieces as they are shares them until they are in its socket.
 */
class Outlet implements SinkUser {
  #body: PushedBody | undefined;
  readonly #user: Pick<Watch<KubernetesObject>, "onQueued" | "onGone">;
  #controller: ReadableByteStreamController | undefined;
  #sink: ByteSink | undefined;
  #queue: Deque<Uint8Array> | undefined;
  #isAwaited = false;
  #isClosing = false;
  #writtenBytes = 0;
  /** The bytes that wait here, or in a sink that is full. */
  #queuedBytes = 0;

  constructor(user: Pick<Watch<KubernetesObject>, "onQueued" | "onGone">) {
    this.#user = user;
    this.#body = new PushedBody({
      type: "bytes",
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#pull(),
      cancel: () => this.onGone(),
    }, (sink) => this.#pushTo(sink));
  }

  /** The body as a stream; to be taken once. */
  takeBody(): PushedBody {
    const body = this.#body!;
    // A stream takes much memory, and is not used where the pieces are pushed.
    this.#body = undefined;
    return body;
  }

  /** Whether what waits is shared with other watches, and takes no memory of its own. */
  get isShared(): boolean {
    return this.#sink !== undefined;
  }

  /** Whether a large piece costs no more memory than a small one: it is shared, or its reader waits. */
  get takesLarge(): boolean {
    return this.isShared || this.#isAwaited;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  get leftBytes(): number {
    return this.#writtenBytes - (this.#sink?.queuedBytes ?? this.#queuedBytes);
  }

  write(piece: Uint8Array): void {
    this.#writtenBytes += piece.byteLength;
    if (this.#sink !== undefined) this.#push(this.#sink, piece);
    else if (this.#isAwaited) this.#send(piece.slice());
    else {
      this.#queue ??= new Deque();
      this.#queue.push(piece);
      this.#count(this.#queuedBytes + piece.byteLength);
    }
  }

  /** Ends the response after the waiting pieces. */
  close(): void {
    this.#isClosing = true;
    if (this.#sink !== undefined) this.#sink.end();
    else if (this.#queuedBytes === 0) this.#closeStream();
  }

  /** Breaks the response off; waiting pieces are dropped. */
  error(reason: Error): void {
    this.#drop();
    if (this.#sink === undefined) this.#controller?.error(reason);
    else this.#sink.destroy();
  }

  onDrained(): void {
    this.#count(0);
  }

  onGone(): void {
    this.#drop();
    this.#user.onGone();
  }

  #pushTo(sink: ByteSink): SinkUser {
    this.#sink = sink;
    this.#controller = undefined;
    const queue = this.#queue;
    this.#queue = undefined;
    this.#count(0);
    while (queue !== undefined && queue.length > 0) this.#push(sink, queue.shift()!);
    if (this.#isClosing) sink.end();
    return this;
  }

  #push(sink: ByteSink, piece: Uint8Array): void {
    // A piece that a sink takes without waiting is as good as sent: the sink does not say when it is.
    if (!sink.write(piece)) this.#count(sink.queuedBytes);
  }

  /** The reader of the stream wants more, and has read everything before. */
  #pull(): void {
    if (this.#queue === undefined || this.#queue.length === 0) {
      this.#isAwaited = true;
      return;
    }
    // As one piece, as far as that is worth it: a slow reader needs fewer reads to catch up.
    const pieces: Uint8Array[] = [];
    let length = 0;
    while (this.#queue.length > 0 && (length === 0 || length + this.#queue.at(0)!.byteLength <= MOST_PIECE)) {
      const piece = this.#queue.shift()!;
      pieces.push(piece);
      length += piece.byteLength;
    }
    this.#send(concatenated(pieces, length));
    this.#count(this.#queuedBytes - length);
    if (this.#isClosing && this.#queuedBytes === 0) this.#closeStream();
  }

  #send(own: Uint8Array): void {
    this.#isAwaited = false;
    this.#controller?.enqueue(own as Uint8Array<ArrayBuffer>);
  }

  #closeStream(): void {
    this.#controller?.close();
    // A reader that brings its own buffer is answered by a response of no bytes.
    this.#controller?.byobRequest?.respond(0);
  }

  #count(queuedBytes: number): void {
    const change = queuedBytes - this.#queuedBytes;
    this.#queuedBytes = queuedBytes;
    if (change !== 0) this.#user.onQueued(change);
  }

  #drop(): void {
    this.#queue = undefined;
    this.#count(0);
  }
}
