/**
 * The body of a watch: a byte stream that events are pushed into.
 * @module
 */

// About what one read from a socket brings.
const CHUNK_BYTES = 65_536;

/** Options of {@linkcode EventStream}. */
export interface EventStreamOptions {
  /** How many bytes may wait for a reader before the stream is cut. */
  readonly maxBufferBytes: number;
  /** Called once, when the stream is over: ended, failed, cut, or cancelled by its reader. */
  readonly onClose: () => void;
}

/**
 * Takes encoded events and gives them to one reader. Events that wait are handed over together, up to 64 KiB in a
 * chunk. The encoded events are shared by all watchers: chunks are copies, as a byte stream takes its chunks away.
 */
export class EventStream {
  /** What the reader gets. */
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

  /** Whether everything that was pushed has been handed over. */
  get isDrained(): boolean {
    return this.#backlog === undefined && this.#queue.length === 0;
  }

  /** Events that come before everything else; they are made when they are read, and do not count as waiting. */
  prepend(backlog: Iterator<Uint8Array>): void {
    if (this.#isClosed) return;
    this.#backlog = backlog;
    if (this.#isReaderWaiting) this.#flush();
  }

  /** Hands an event over, now or when the reader asks. */
  push(event: Uint8Array): void {
    if (this.#isClosed || this.#isEnding) return;
    this.#queue.push(event);
    this.#queuedBytes += event.byteLength;
    if (this.#isReaderWaiting) this.#flush();
    else if (this.#queuedBytes > this.#options.maxBufferBytes) this.fail(undefined);
  }

  /** Ends the stream after what was pushed. */
  end(): void {
    if (this.#isClosed) return;
    this.#isEnding = true;
    if (this.#isReaderWaiting) this.#flush();
    else if (this.isDrained) this.#finish();
  }

  /** Breaks the stream off, with an error, or without one as a server does that closes the connection. */
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
    if (parts.length === 0) return undefined;
    const chunk = new Uint8Array(size);
    let offset = 0;
    for (const part of parts) {
      chunk.set(part, offset);
      offset += part.byteLength;
    }
    return chunk;
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
