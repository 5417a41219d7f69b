/**
 * The body of a watch: a byte stream of pushed events.
 * @module
 */

import { concatenated } from "../util/bytes.ts";

// About the size of one read from a socket.
const CHUNK_BYTES = 65_536;

/** Options of {@linkcode EventStream}. */
export interface EventStreamOptions {
  /** How many bytes may wait for the reader before the stream is closed. */
  readonly maxBufferBytes: number;
  /** Called once, when the stream is over: ended, failed, or cancelled by its reader. */
  readonly onClose: () => void;
}

/**
 * Passes encoded events to one reader. Waiting events are passed together, up to 64 KiB in a chunk. All
 * watchers share the encoded events, so chunks are copies: a byte stream detaches the buffers of its chunks.
 */
export class EventStream {
  /** The stream of the reader. */
  readonly body: ReadableStream<Uint8Array>;
  readonly #options: EventStreamOptions;
  #controller!: ReadableByteStreamController;
  #backlog: Iterator<Uint8Array> | undefined;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #isReaderWaiting = false;
  #isEnding = false;
  #isClosed = false;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.body = new ReadableStream({
      type: "bytes",
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#flush(),
      cancel: () => this.#close(),
    });
  }

  /** Whether the reader has received all events. */
  get isDrained(): boolean {
    return this.#backlog === undefined && this.#queue.length === 0;
  }

  /** Events that come before all others; they are made when they are read, and do not count as waiting. */
  prepend(backlog: Iterator<Uint8Array>): void {
    if (this.#isClosed) return;
    this.#backlog = backlog;
    if (this.#isReaderWaiting) this.#flush();
  }

  /** Passes an event to the reader, now or when it reads. */
  push(event: Uint8Array): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#queue.push(event);
    this.#queuedBytes += event.byteLength;
    if (this.#isReaderWaiting) this.#flush();
    else if (this.#queuedBytes > this.#options.maxBufferBytes) this.fail(undefined);
  }

  /** Ends the stream after the pushed events. */
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
    this.#options.onClose();
  }
}
