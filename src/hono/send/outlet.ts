/** The way out of a watch: the body of its response. */

import { concatenated } from "../../util/bytes.ts";
import { Deque } from "../../util/collections.ts";
import { type ByteSink, PushedBody, type SinkUser } from "../../util/serving.ts";

// What one read of a stream returns at most, unless one piece is longer.
const MOST_PIECE = 64 * 1024;

export interface OutletUser {
  /** Bytes came into the outlet, or left it. */
  onQueued(bytes: number): void;
  onGone(): void;
}

/**
 * Where the pieces of a watch go. They are shared with other watches, and take no memory until they are sent.
 *
 * What is read as a stream gets copies, as some runtimes take the buffer away when it is sent; what waits is
 * kept here, not in the stream. A server that takes the pieces as they are shares them until they are in its
 * socket.
 */
export class Outlet implements SinkUser {
  #body: PushedBody | undefined;
  readonly #user: OutletUser;
  #controller: ReadableByteStreamController | undefined;
  #sink: ByteSink | undefined;
  #queue: Deque<Uint8Array> | undefined;
  #isAwaited = false;
  #isClosing = false;
  #writtenBytes = 0;
  /** What waits here, or in a sink that is full. */
  #queuedBytes = 0;

  constructor(user: OutletUser) {
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

  /** What is sent, as a stream; to be taken once. */
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

  /**
   * Whether a large piece costs no more memory than a small one: it is shared, or its reader waits for it.
   */
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

  /** Ends the response after what waits. */
  close(): void {
    this.#isClosing = true;
    if (this.#sink !== undefined) this.#sink.end();
    else if (this.#queuedBytes === 0) this.#closeStream();
  }

  /** Breaks the response off; what waits is dropped. */
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
    // What a sink takes without waiting is as good as sent: it does not say when it is.
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
