/**
 * Bodies to decode, split as the test wants.
 * @module
 */

const encoder = new TextEncoder();

/** The bytes of a text. */
export function bytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** A body that hands out these chunks, and ends or fails. */
export function bodyOf(chunks: readonly Uint8Array[], failure?: unknown): ReadableStream<Uint8Array> {
  const pending = [...chunks];
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const chunk = pending.shift();
      if (chunk !== undefined) controller.enqueue(chunk);
      else if (failure === undefined) controller.close();
      else controller.error(failure);
    },
  }, { highWaterMark: 0 });
}

/** The body as a byte stream, which can be read into a buffer of the reader's. */
export function byteBodyOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const pending = chunks.filter((chunk) => chunk.length > 0).map((chunk) => chunk.slice());
  return new ReadableStream({
    type: "bytes",
    pull(controller) {
      const chunk = pending.shift();
      if (chunk !== undefined) return controller.enqueue(chunk);
      controller.close();
      controller.byobRequest?.respond(0);
    },
  });
}

/** A body that is written to from outside, and records its cancellation. */
export interface OpenBody {
  readonly body: ReadableStream<Uint8Array>;
  write(text: string): void;
  end(): void;
  fail(error: unknown): void;
  readonly cancelled: boolean;
}

/** Makes an {@linkcode OpenBody}. */
export function openBody(): OpenBody {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (c) => {
      controller = c;
    },
    cancel: () => {
      cancelled = true;
    },
  });
  return {
    body,
    write: (text) => controller.enqueue(bytes(text)),
    end: () => controller.close(),
    fail: (error) => controller.error(error),
    get cancelled() {
      return cancelled;
    },
  };
}

/** Splits bytes at the given positions. */
export function splitAt(all: Uint8Array, positions: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let start = 0;
  for (const position of [...positions].sort((a, b) => a - b)) {
    chunks.push(all.slice(start, position));
    start = Math.max(start, position);
  }
  chunks.push(all.slice(start));
  return chunks;
}
