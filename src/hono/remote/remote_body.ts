/**
 * The body of a remote's answer, on its way to a reader.
 * @module
 */

import { concatenated } from "../../util/concatenated.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import { newStalledError, type Reader, type Readers } from "../readers.ts";
import { Outlet, type OutletUser } from "../watches/outlet.ts";

/** Options of {@linkcode RemoteBody}. */
export interface RemoteBodyOptions {
  /** The events of a watch, which ends between two lines, whatever happens to the remote. Another body breaks off. */
  readonly isWatch: boolean;
  /** How long the remote may send nothing. */
  readonly silenceMs: number;
  /** How many bytes may wait to be read. */
  readonly bufferBytes: number;
  /** How long a reader may leave the next bytes waiting. */
  readonly writeTimeoutMs: number;
  readonly reader: Reader;
  readonly readers: Readers;
  readonly clock: Clock;
  onEnd(): void;
}

// An object has at most some MiB: https://etcd.io/docs/v3.5/dev-guide/limit/
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const LINE_END = 0x0a;

/** Copies a remote's body to a reader. It holds a bounded number of bytes, and neither side can hold it up for ever. */
export class RemoteBody implements OutletUser {
  readonly #source: ReadableStreamDefaultReader<Uint8Array>;
  readonly #options: RemoteBodyOptions;
  readonly #outlet: Outlet;
  readonly #release: () => void;
  #isOpen = true;
  /** The beginning of a line. */
  #rest: Uint8Array[] = [];
  #restBytes = 0;
  #readSinceMs: number | undefined;
  #silenceTimer: TimerHandle | undefined;
  #stallTimer: TimerHandle | undefined;
  #resume: (() => void) | undefined;

  /**
   * @param source The remote's body.
   * @param first What was read of it already.
   */
  constructor(
    source: ReadableStreamDefaultReader<Uint8Array>,
    options: RemoteBodyOptions,
    first?: Uint8Array,
  ) {
    this.#source = source;
    this.#options = options;
    this.#outlet = new Outlet(this);
    this.#release = options.reader.hold();
    if (first !== undefined) this.#take(first);
    this.#copy();
  }

  /** What the reader receives, to be taken once. */
  takeBody(): ReadableStream<Uint8Array> {
    return this.#outlet.takeBody();
  }

  /** Ends it in good order, after what waits. */
  close(): void {
    if (!this.#isOpen) return;
    this.#outlet.close();
    this.onGone();
  }

  /** It has ended, or the reader has disconnected. */
  onGone(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { clock, readers, onEnd } = this.#options;
    readers.buffered(-this.#outlet.queuedBytes);
    for (const timer of [this.#silenceTimer, this.#stallTimer]) {
      if (timer !== undefined) clock.clearTimeout(timer);
    }
    this.#resume?.();
    this.#source.cancel().catch(() => {});
    this.#release();
    onEnd();
  }

  onQueued(bytes: number): void {
    if (!this.#isOpen) return;
    this.#options.readers.buffered(bytes);
    if (bytes < 0 && this.#hasRoom()) this.#resume?.();
  }

  async #copy(): Promise<void> {
    try {
      while (this.#isOpen) {
        if (!this.#hasRoom()) await this.#awaitReader();
        else {
          const { done, value } = await this.#read();
          if (!this.#isOpen) return;
          if (done) return this.close();
          this.#take(value);
        }
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (!this.#isOpen) return;
    if (this.#options.isWatch) return this.close();
    this.#outlet.error(error instanceof Error ? error : new Error(String(error)));
    this.onGone();
  }

  #take(bytes: Uint8Array): void {
    if (!this.#options.isWatch) return this.#outlet.write(bytes);
    const end = bytes.lastIndexOf(LINE_END) + 1;
    if (end > 0) {
      const lines = bytes.subarray(0, end);
      this.#outlet.write(
        this.#restBytes === 0 ? lines : concatenated([...this.#rest, lines], this.#restBytes + end),
      );
      this.#rest = [];
      this.#restBytes = 0;
    }
    if (end === bytes.byteLength) return;
    this.#rest.push(bytes.subarray(end));
    this.#restBytes += bytes.byteLength - end;
    if (this.#restBytes > MAX_LINE_BYTES) this.close();
  }

  async #read(): Promise<ReadableStreamReadResult<Uint8Array>> {
    this.#readSinceMs = monotonicNow(this.#options.clock);
    this.#awaitRemote(this.#options.silenceMs);
    try {
      return await this.#source.read();
    } finally {
      this.#readSinceMs = undefined;
    }
  }

  /** Ends the body of a remote that sends nothing. One timer for many reads. */
  #awaitRemote(ms: number): void {
    const { clock, silenceMs } = this.#options;
    if (this.#silenceTimer !== undefined || silenceMs === Infinity) return;
    this.#silenceTimer = clock.setTimeout(() => {
      this.#silenceTimer = undefined;
      if (this.#readSinceMs === undefined) return;
      const leftMs = this.#readSinceMs + silenceMs - monotonicNow(clock);
      if (leftMs > 0) this.#awaitRemote(leftMs);
      else this.#fail(new Error(`the remote has sent nothing for ${silenceMs} ms`));
    }, ms);
  }

  #hasRoom(): boolean {
    const { readers, bufferBytes } = this.#options;
    const { queuedBytes } = this.#outlet;
    return queuedBytes === 0 || (queuedBytes < bufferBytes && readers.hasRoom);
  }

  /** Waits for room; disconnects a reader that reads nothing. */
  async #awaitReader(): Promise<void> {
    const { clock, writeTimeoutMs, isWatch } = this.#options;
    const room = new Promise<void>((resolve) => {
      this.#resume = resolve;
    });
    const watchFrom = (leftBytes: number) => {
      this.#stallTimer = clock.setTimeout(() => {
        const nowBytes = this.#outlet.leftBytes;
        if (nowBytes > leftBytes) return watchFrom(nowBytes);
        this.#outlet.error(newStalledError(isWatch ? "watch" : "answer", writeTimeoutMs));
        this.onGone();
      }, writeTimeoutMs);
    };
    watchFrom(this.#outlet.leftBytes);
    await room;
    clock.clearTimeout(this.#stallTimer!);
    this.#stallTimer = this.#resume = undefined;
  }
}
