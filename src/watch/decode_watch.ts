/** Decodes the bytes of a watch to batches of events. */

import type { WatchItem, WatchStream } from "../meta/list_watch.ts";
import { newStatus, type Status } from "../meta/status.ts";
import { onAbort } from "../util/abort.ts";
import { errorMessage } from "../util/errors.ts";
import { isRecord, jsonFault } from "../util/json.ts";
import { requireNumbers } from "../util/require_number.ts";
import { LineCutter } from "../text/line_cutter.ts";
import { type EventReader, type ObjectEvent, type ObjectHead, ObjectParser } from "../text/object_reader.ts";
import { type ObjectsAsText, ObjectText } from "../text/object_text_reader.ts";
import type { Projection } from "../text/field_tree.ts";
import { newNetworkError } from "./network_failure.ts";
import { type ByteReader, openByteReader } from "../util/byte_reader.ts";

/**
 * Validates one decoded frame: returns the event it holds, or the report of what is wrong with it. It is
 * called once per frame, in order, in the turn the frame arrived. An error that it throws ends the watch.
 */
export type ValidateFrame<T> = (frame: unknown) => WatchItem<T>;

/** Options of {@linkcode decodeWatch}. */
export interface DecodeWatchOptions<T> {
  readonly validate: ValidateFrame<T>;
  /** The longest frame accepted, in bytes; 16 MiB by default. */
  readonly maxFrameBytes?: number;
  /** Ends the watch: the body is cancelled, and the next batch rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Receives the size of each chunk, in bytes. */
  readonly onBytes?: (bytes: number) => void;
  /** The watched objects, for error texts: `"pods" in "default"`. */
  readonly subject?: string;
  /** Leaves fields out of the objects before they are parsed; not of those of BOOKMARK and ERROR events. */
  readonly projection?: Projection;
  /** Hands out objects that are not parsed, but for BOOKMARK and ERROR events. They are parsed by default. */
  readonly asText?: ObjectsAsText;
}

/** The longest frame that a watch accepts by default, in bytes: 16 MiB, as client-go. */
export const DEFAULT_MAX_FRAME_BYTES: number = 16 * 1024 * 1024;

/**
 * Decodes the body of a watch: newline-delimited JSON, split anywhere.
 *
 * Each batch holds, in order, the frames that one chunk of bytes completed; a chunk that completes none gives
 * no batch. The body is read only as fast as batches are requested. The stream can be iterated once.
 *
 * - The server ends the body: the stream ends. A last frame without a newline is decoded if it is whole, else
 *   dropped.
 * - The connection breaks: the stream throws a {@linkcode NetworkError} after the batches that arrived.
 * - A frame that is no JSON, is over `maxFrameBytes`, or is no event (its type is none that is known, as
 *   where a server answers with its list, or it has no object): an ERROR event with a Status of code 500,
 *   reason InternalError, and a cause `ClientWatchDecoding`; then the stream ends. Events before it are
 *   delivered.
 * - Leaving the loop, or aborting `signal`: the body is cancelled and its lock released.
 *
 * Mirrors client-go's `StreamWatcher`.
 *
 * @example
 * ```ts
 * import { decodeWatch, newEventValidator } from "@listwatch/cache/client";
 * const body = new Response('{"type":"ADDED","object":{"metadata":{"name":"web-1"}}}\n').body!;
 * for await (const batch of decodeWatch(body, { validate: newEventValidator() })) {
 *   console.log(batch[0].type); // ADDED
 * }
 * ```
 *
 * @throws {TypeError} The body has another reader.
 * @throws {RangeError} `maxFrameBytes` is no number of 1 or more.
 */
export function decodeWatch<T>(
  body: ReadableStream<Uint8Array>,
  options: DecodeWatchOptions<T>,
): WatchStream<T> {
  const { maxFrameBytes = DEFAULT_MAX_FRAME_BYTES, asText } = options;
  requireNumbers("decode a watch", { maxFrameBytes }, { least: 1, mayBeInfinite: true });
  const validate = asText === undefined ? options.validate : textValidator(options.validate, asText);
  return new WatchBatches<T>(body, { ...options, maxFrameBytes, validate });
}

/** The Status of a frame that could not be decoded, as client-go's `NewClientErrorReporter` makes it. */
export function newDecodingStatus(detail: string): Status {
  const message = `unable to decode an event from the watch stream: ${detail}`;
  return newStatus(
    500,
    "InternalError",
    `an error on the server (${JSON.stringify(message)}) has prevented the request from succeeding`,
    {
      causes: [
        { reason: "UnexpectedServerResponse", message },
        { reason: "ClientWatchDecoding", message },
      ],
    },
  );
}

const ENDED: IteratorReturnResult<undefined> = { done: true, value: undefined };

type Batch<T> = readonly WatchItem<T>[];

class WatchBatches<T> implements AsyncIterableIterator<Batch<T>> {
  readonly #reader: ByteReader;
  readonly #events: EventReader<unknown>;
  readonly #cutter: LineCutter<unknown>;
  readonly #options: DecodeWatchOptions<T>;
  readonly #unlink: (() => void) | undefined;
  #ended = false;
  // The error that the next call throws, once everything before it was delivered.
  #failure: { readonly error: unknown } | undefined;

  constructor(
    body: ReadableStream<Uint8Array>,
    options: DecodeWatchOptions<T> & { readonly maxFrameBytes: number },
  ) {
    const { asText, projection, maxFrameBytes, signal } = options;
    this.#options = options;
    this.#reader = openByteReader(body);
    this.#events = (asText?.reader ?? new ObjectParser()).events(projection);
    this.#cutter = new LineCutter(maxFrameBytes, this.#events);
    this.#unlink = signal && onAbort(signal, () => this.#fail(signal.reason));
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Batch<T>> {
    return this;
  }

  async next(): Promise<IteratorResult<Batch<T>>> {
    for (;;) {
      if (this.#failure !== undefined) {
        const { error } = this.#failure;
        this.#failure = undefined;
        throw error;
      }
      if (this.#ended) return ENDED;
      const chunk = await this.#read();
      if (this.#ended) continue; // left or aborted meanwhile
      const batch = this.#decode(chunk);
      if (chunk !== undefined) this.#options.onBytes?.(chunk.byteLength);
      if (batch.length > 0) return { done: false, value: batch };
    }
  }

  return(): Promise<IteratorResult<Batch<T>>> {
    this.#failure = undefined;
    this.#end();
    return Promise.resolve(ENDED);
  }

  async #read(): Promise<Uint8Array | undefined> {
    try {
      return await this.#reader.read();
    } catch (error) {
      const { subject = "the resource" } = this.#options;
      this.#fail(newNetworkError(`Cannot read the watch of ${subject}: it was cut off`, error));
      return undefined;
    }
  }

  /** Decodes the events that the next chunk, or the end of the body, completes. */
  #decode(chunk: Uint8Array | undefined): WatchItem<T>[] {
    const batch: WatchItem<T>[] = [];
    const cutter = this.#cutter;
    try {
      if (chunk === undefined) {
        const frame = cutter.last();
        if (frame !== undefined) this.#decodeFrame(frame, batch, true);
        this.#end();
      } else {
        for (let frame = cutter.feed(chunk); frame !== undefined; frame = cutter.next()) {
          if (!this.#decodeFrame(frame, batch)) break;
        }
      }
    } catch (error) { // a frame is over the limit
      this.#refuse(errorMessage(error), batch);
    }
    return batch;
  }

  // Adds what the frame holds to the batch; false when the watch ends with it. A frame that may be cut short,
  // because nothing came after it, is no reason to complain.
  #decodeFrame(frame: unknown, batch: WatchItem<T>[], mayBeCut = false): boolean {
    let value = frame;
    try {
      if (typeof frame === "string") value = this.#events.readEvent(frame);
    } catch (error) {
      if (!mayBeCut) this.#refuse(`the frame is not JSON: ${jsonFault(error)}`, batch);
      return false;
    }
    const problem = envelopeProblem(value);
    if (problem !== undefined) {
      this.#refuse(problem, batch);
      return false;
    }
    try {
      batch.push(this.#options.validate(value));
      return true;
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  #refuse(detail: string, batch: WatchItem<T>[]): void {
    batch.push({ type: "ERROR", object: newDecodingStatus(detail) });
    this.#end();
  }

  #fail(error: unknown): void {
    if (this.#ended) return;
    this.#failure = { error };
    this.#end();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unlink?.();
    this.#reader.cancel(this.#options.signal?.reason);
  }
}

function textValidator<T>(
  validate: ValidateFrame<T>,
  { hold, acceptsOrdinary }: ObjectsAsText,
): ValidateFrame<T> {
  return (frame) => {
    const { type, object } = frame as ObjectEvent<unknown>;
    if (!(object instanceof ObjectText)) return validate(frame);
    const { text, head } = object;
    if (!acceptsOrdinary || !object.isOrdinary) {
      const item = validate({ type, object: JSON.parse(text) });
      if (item.type === "QUARANTINED" || item.type === "ERROR") return item;
    }
    return { type, object: hold(text, head as ObjectHead, object) as T };
  };
}

/** Why a frame is no event at all: a server that does not know how to watch answers with its list. */
function envelopeProblem(frame: unknown): string | undefined {
  const { type, object } = (frame ?? {}) as { readonly type?: unknown; readonly object?: unknown };
  if (!EVENT_TYPES.has(type)) return `got invalid watch event type: ${JSON.stringify(type)}`;
  if (isRecord(object)) return undefined;
  return `the ${type} event has no object`;
}

const EVENT_TYPES: ReadonlySet<unknown> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);
