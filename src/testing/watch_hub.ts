import type { ListOptions } from "../meta/list_watch.ts";
import { type Status, StatusError } from "../meta/status.ts";
import type { ObjectShape } from "../protocol/representations.ts";
import { watchTooOld } from "../protocol/statuses.ts";
import { onAbort } from "../util/abort.ts";
import { concatenated } from "../util/bytes.ts";
import { monotonicNow, type TimerHandle } from "../util/clock.ts";
import { initialEventsUnsupported } from "./api_errors.ts";
import type { Change, ClusterState, StoredObject } from "./cluster_state.ts";
import {
  encodeBookmark,
  encodeChange,
  encodeError,
  encodeEvent,
  type ObjectReader,
  select,
  type Selection,
  shaped,
} from "./object_reader.ts";
import type { ServedResource } from "./served_resources.ts";
import type { ServerSettings } from "./server_settings.ts";

export interface WatchRequest {
  readonly selection: Selection;
  readonly options: ListOptions;
  /** Whether the query has `sendInitialEvents`. */
  readonly asksForInitialEvents: boolean;
  /** Ends the watch: with its reason as an error, or without one if the client's socket is closed. */
  readonly signal: AbortSignal | undefined;
  readonly isRemote: boolean;
  readonly shape: ObjectShape;
}

// A watch without timeoutSeconds lasts this long, or up to twice as long.
const MIN_REQUEST_TIMEOUT_MS = 1_800_000;
// A watcher with bookmarks gets one shortly before the end, to continue from.
const LAST_BOOKMARK_MS = 2_000;

export class WatchHub {
  readonly state: ClusterState;
  readonly reader: ObjectReader;
  readonly settings: ServerSettings;
  readonly #watches = new Set<Watch>();

  constructor(state: ClusterState, reader: ObjectReader, settings: ServerSettings) {
    this.state = state;
    this.reader = reader;
    this.settings = settings;
  }

  get size(): number {
    return this.#watches.size;
  }

  /**
   * Opens a watch; the stream begins with the replayed events.
   * @throws {StatusError} 422: `sendInitialEvents` is not supported.
   */
  open(request: WatchRequest): ReadableStream<Uint8Array> {
    const { initialEvents } = this.settings;
    if (initialEvents === "refuse" && request.asksForInitialEvents) throw initialEventsUnsupported();
    const watch = new Watch(request, this);
    this.#watches.add(watch);
    watch.start();
    return watch.stream.body;
  }

  endOf({ id }: ServedResource): void {
    for (const watch of this.#watches) if (watch.resource.id === id) watch.end();
  }

  forget(watch: Watch): void {
    this.#watches.delete(watch);
  }

  /** Ends every watch: as a server that shuts down, or with an error, as if the connections were reset. */
  closeAll(error?: unknown): void {
    for (const watch of this.#watches) {
      if (error === undefined) watch.end();
      else watch.stream.fail(error);
    }
  }
}

class Watch {
  readonly stream: EventStream;
  readonly #request: WatchRequest;
  readonly #hub: WatchHub;
  readonly #ending = new AbortController();
  #bookmarkTimer: TimerHandle;
  #letGoOfSignal = () => {};
  // The revision after which it follows the changes; undefined until it does.
  #start: bigint | undefined;

  constructor(request: WatchRequest, hub: WatchHub) {
    this.#request = request;
    this.#hub = hub;
    this.stream = new EventStream(hub.settings.maxWatchBufferBytes, () => this.#close());
  }

  get resource(): ServedResource {
    return this.#request.selection.resource;
  }

  start(): void {
    const { selection, options, signal, isRemote, shape } = this.#request;
    const { state, settings: { clock, random, initialEvents } } = this.#hub;
    const timeoutMs = options.timeoutSeconds
      ? options.timeoutSeconds * 1000
      : MIN_REQUEST_TIMEOUT_MS * (1 + random());
    const timer = clock.setTimeout(() => this.end(), timeoutMs);
    onAbort(this.#ending.signal, () => clock.clearTimeout(timer));
    const { resourceVersion = "0" } = options;
    const isFromStart = resourceVersion === "0";
    const wantsState = initialEvents === "ignore" ? isFromStart : options.sendInitialEvents ?? false;
    if (options.allowWatchBookmarks) this.#armBookmark(monotonicNow(clock) + timeoutMs);
    if (wantsState) {
      // A future state may be reached before the deadline.
      if (BigInt(resourceVersion) <= state.revision) this.#beginWithState();
      else this.#beginWhenReached(BigInt(resourceVersion));
    } else {
      const revision = isFromStart ? state.revision : BigInt(resourceVersion);
      const changes = state.changesAfter(selection.resource, revision);
      if (changes === undefined) {
        this.#refuse(watchTooOld(String(revision), String(state.compactedRevision)));
      } else {
        this.#follow(revision);
        if (changes.length > 0) this.stream.prepend(encodeChanges(changes, selection, shape));
      }
    }
    if (signal === undefined) return;
    this.#letGoOfSignal = onAbort(signal, () => this.stream.fail(isRemote ? undefined : signal.reason));
  }

  /** Sends no more events; the sent ones can still be read. */
  end(): void {
    this.#stop();
    this.stream.end();
  }

  #beginWithState(): void {
    const { selection, options, shape } = this.#request;
    const { state, settings: { initialEvents } } = this.#hub;
    const objects = select(selection, state.snapshot(selection.resource)!);
    const end = options.allowWatchBookmarks && initialEvents === "serve"
      ? encodeBookmark(selection.resource, state.revision, { shape, endsInitialEvents: true })
      : undefined;
    this.#follow(state.revision);
    this.stream.prepend(encodeState(objects, shape, end));
  }

  async #beginWhenReached(revision: bigint): Promise<void> {
    try {
      await this.#hub.reader.waitFor(revision, this.#ending.signal);
    } catch (error) {
      if (error instanceof StatusError) this.#refuse(error.status);
      return;
    }
    if (!this.#ending.signal.aborted) this.#beginWithState();
  }

  #follow(after: bigint): void {
    const { selection, shape } = this.#request;
    this.#start = after;
    const unsubscribe = this.#hub.state.subscribe(selection.resource, (change: Change) => {
      // A watch from a future version is silent until then.
      const event = change.revision > after ? encodeChange(change, selection, shape) : undefined;
      if (event !== undefined) this.stream.push(event);
    });
    onAbort(this.#ending.signal, unsubscribe);
  }

  #refuse(status: Status): void {
    this.stream.push(encodeError(status));
    this.end();
  }

  #armBookmark(deadlineMs: number): void {
    const { state, settings: { clock, bookmarkIntervalMs } } = this.#hub;
    const nowMs = monotonicNow(clock);
    const lastMs = deadlineMs - LAST_BOOKMARK_MS;
    const nextMs = lastMs > nowMs ? Math.min(nowMs + bookmarkIntervalMs, lastMs) : nowMs + bookmarkIntervalMs;
    this.#bookmarkTimer = clock.setTimeout(() => {
      // A watcher that does not read needs no bookmarks; before its state is reached it must not get any.
      const hasBegun = this.#start !== undefined && state.revision >= this.#start;
      const isDue = hasBegun && this.stream.isDrained;
      const { selection: { resource }, shape } = this.#request;
      if (isDue) this.stream.push(encodeBookmark(resource, state.revision, { shape }));
      this.#armBookmark(deadlineMs);
    }, nextMs - nowMs);
  }

  #close(): void {
    this.#letGoOfSignal();
    this.#stop();
  }

  #stop(): void {
    if (this.#ending.signal.aborted) return;
    this.#ending.abort();
    this.#hub.settings.clock.clearTimeout(this.#bookmarkTimer);
    this.#hub.forget(this);
  }
}

function* encodeState(
  objects: readonly StoredObject[],
  shape: ObjectShape,
  end: Uint8Array | undefined,
): Generator<Uint8Array, undefined> {
  for (const object of objects) yield encodeEvent("ADDED", shaped(object, shape));
  if (end !== undefined) yield end;
}

function* encodeChanges(
  changes: readonly Change[],
  selection: Selection,
  shape: ObjectShape,
): Generator<Uint8Array, undefined> {
  for (const change of changes) {
    const event = encodeChange(change, selection, shape);
    if (event !== undefined) yield event;
  }
}

// About the size of one read from a socket.
const CHUNK_BYTES = 65_536;

/**
 * Passes encoded events to one reader. Waiting events are passed together, up to 64 KiB in a chunk. All
 * watchers share the encoded events, so chunks are copies: a byte stream detaches the buffers of its chunks.
 */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #maxBufferBytes: number;
  readonly #onClose: () => void;
  #controller!: ReadableByteStreamController;
  #backlog: Iterator<Uint8Array> | undefined;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #isReaderWaiting = false;
  #isEnding = false;
  #isClosed = false;

  /**
   * @param maxBufferBytes How many bytes may wait for the reader before the stream is closed.
   * @param onClose Called once, when the stream is over: ended, failed, or cancelled by its reader.
   */
  constructor(maxBufferBytes: number, onClose: () => void) {
    this.#maxBufferBytes = maxBufferBytes;
    this.#onClose = onClose;
    this.body = new ReadableStream({
      type: "bytes",
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#flush(),
      cancel: () => this.#close(),
    });
  }

  get isDrained(): boolean {
    return this.#backlog === undefined && this.#queue.length === 0;
  }

  /** Events that come before all others; they are made when they are read, and do not count as waiting. */
  prepend(backlog: Iterator<Uint8Array>): void {
    if (this.#isClosed) return;
    this.#backlog = backlog;
    if (this.#isReaderWaiting) this.#flush();
  }

  push(event: Uint8Array): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#queue.push(event);
    this.#queuedBytes += event.byteLength;
    if (this.#isReaderWaiting) this.#flush();
    else if (this.#queuedBytes > this.#maxBufferBytes) this.fail(undefined);
  }

  end(): void {
    if (this.#isClosed) return;
    this.#isEnding = true;
    if (this.#isReaderWaiting) this.#flush();
    else if (this.isDrained) this.#finish();
  }

  /** Breaks the stream with an error, or without one as a server that closes the connection. */
  fail(reason: unknown): void {
    if (this.#isClosed) return;
    this.#backlog = undefined;
    this.#queue = [];
    if (reason === undefined) return this.#finish();
    this.#controller.error(reason);
    this.#close();
  }

  #flush(): void {
    const chunk = this.#take();
    this.#isReaderWaiting = chunk === undefined;
    if (chunk !== undefined) this.#controller.enqueue(chunk);
    else if (this.#isEnding) this.#finish();
  }

  #take(): Uint8Array<ArrayBuffer> | undefined {
    const parts: Uint8Array[] = [];
    let size = 0;
    while (size < CHUNK_BYTES && this.#backlog !== undefined) {
      const { done, value } = this.#backlog.next();
      if (done) this.#backlog = undefined;
      else {
        parts.push(value);
        size += value.byteLength;
      }
    }
    let taken = 0;
    while (size < CHUNK_BYTES && taken < this.#queue.length) {
      const part = this.#queue[taken++];
      parts.push(part);
      size += part.byteLength;
      this.#queuedBytes -= part.byteLength;
    }
    this.#queue = taken === this.#queue.length ? [] : this.#queue.slice(taken);
    return parts.length === 0 ? undefined : concatenated(parts, size);
  }

  #finish(): void {
    this.#controller.close();
    this.#controller.byobRequest?.respond(0); // else a reader that brought its own buffer waits for ever
    this.#close();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#backlog = undefined;
    this.#queue = [];
    this.#onClose();
  }
}
