/**
 * One request and its response, byte by byte, on a network that may change, delay or drop them.
 * @module
 */

import type { TimerHandle } from "@listwatch/cache/reflector";
import type { SeededRandom } from "./seeded_random.ts";
import type { Frame, Mark, Stream } from "./server_model.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** How the bytes of one send are cut into chunks. */
export type Chunking = "frame" | "send" | "split" | "coalesce";

/** What may happen to the next bytes of a connection. */
export type Injury = "truncate" | "drop" | "repeat" | "repeatTail" | "garbage" | "unknownType";

/** How a connection ended. */
export type Closing = "byClient" | "byServer";

interface Piece {
  dueMs: number;
  readonly bytes: Uint8Array;
  readonly mark?: Mark;
  readonly then?: "end" | "reset";
}

/** The network's present state, as a connection sees it. */
export interface Weather {
  /** The latency of bytes. */
  latencyMs(): number;
  /** Extra time between two frames of one send: a slow stream. */
  readonly frameGapMs: number;
}

/** What a connection is made of. */
export interface ConnectionOptions {
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly weather: Weather;
  readonly chunking: Chunking;
  readonly byteStream: boolean;
  readonly log: (text: string) => void;
  /** An ERROR that refuses the resourceVersion got through. */
  readonly onUnavailable: () => void;
  readonly onClosed: (how: Closing) => void;
  /** Bytes reach the program, or the end. */
  readonly onBytes: (isEnd: boolean) => void;
}

const COALESCE_MS = 200;
const TRICKLE_PIECES = 20;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A connection that carries an answer's body. */
export class Connection implements Stream {
  readonly #options: ConnectionOptions;
  readonly #time: VirtualTime;
  readonly #pieces: Piece[] = [];
  readonly #earlier: Uint8Array[] = [];
  #timer: TimerHandle;
  #controller: ReadableStreamDefaultController<Uint8Array> | ReadableByteStreamController | undefined;
  #lastDueMs = 0;
  #sealed = false;
  #isDead = false;
  /** The side that closed it; absent while it is open. */
  closed: Closing | undefined;
  /** Since when nothing arrives, without an error. */
  silentSinceMs: number | undefined;
  /** When bytes last got through. */
  lastDeliveryMs: number;
  /** How many regular bookmarks got through. */
  bookmarks = 0;
  /** Whether the bookmark that ends the initial events got through. */
  sawEnd = false;
  /** What happens to the next bytes. */
  injury: Injury | undefined;
  onClosed: () => void = () => {};
  readonly body: ReadableStream<Uint8Array>;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#time = options.time;
    this.lastDeliveryMs = options.time.worldNow();
    const cancel = () => this.close("byClient");
    this.body = options.byteStream
      ? new ReadableStream({
        type: "bytes",
        start: (controller) => void (this.#controller = controller),
        cancel,
      })
      : new ReadableStream({ start: (controller) => void (this.#controller = controller), cancel });
  }

  /** Sends frames; the network decides how they arrive. */
  send(frames: readonly Frame[]): void {
    if (this.closed !== undefined || this.#sealed) return;
    const { chunking, random, weather } = this.#options;
    for (const { bytes } of frames) this.#earlier.push(bytes);
    const injury = this.injury;
    this.injury = undefined;
    if (injury !== undefined) return this.#sendInjured(frames, injury);
    if (weather.frameGapMs > 0) {
      for (const { bytes, mark } of frames) this.#push(bytes, { mark, extraMs: weather.frameGapMs });
      return;
    }
    if (chunking === "split") {
      const { bytes, mark } = joined(frames);
      for (let at = 0; at < bytes.length;) {
        const next = Math.min(bytes.length, at + random.int(1, 400));
        this.#push(bytes.subarray(at, next), next === bytes.length ? { mark, extraMs: 1 } : { extraMs: 1 });
        at = next;
      }
    } else if (chunking === "send") {
      const { bytes, mark } = joined(frames);
      this.#push(bytes, { mark });
    } else {
      for (const { bytes, mark } of frames) this.#push(bytes, { mark });
    }
  }

  /** Sends bytes steadily, in so long a time. */
  trickle(bytes: Uint8Array, ms: number): void {
    const size = Math.max(1, Math.ceil(bytes.length / TRICKLE_PIECES));
    for (let at = 0; at < bytes.length; at += size) {
      this.#push(bytes.subarray(at, at + size), { extraMs: Math.round(ms / TRICKLE_PIECES) });
    }
  }

  /** Ends it cleanly, after what was sent. */
  end(): void {
    this.#seal("end");
  }

  /** Breaks it, after what was sent. */
  reset(): void {
    this.#seal("reset");
  }

  /** Ends it immediately: bytes in flight are lost. */
  cut(how: "end" | "reset"): void {
    if (this.closed !== undefined) return;
    this.#pieces.length = 0;
    this.#finish(how);
  }

  /** Nothing arrives any more, without an error; `forGood`: permanently. */
  silence({ forGood = false }: { readonly forGood?: boolean } = {}): void {
    this.#isDead ||= forGood;
    if (this.closed === undefined) this.silentSinceMs ??= this.#time.worldNow();
  }

  /** Delivers, late, what was blocked. */
  heal(): void {
    if (this.silentSinceMs === undefined || this.#isDead) return;
    this.silentSinceMs = undefined;
    this.hurry();
  }

  /** Bytes in flight arrive soon. */
  hurry(): void {
    this.injury = undefined;
    let dueMs = this.#time.worldNow() + 1;
    for (const piece of this.#pieces) piece.dueMs = Math.min(piece.dueMs, dueMs++);
    this.#lastDueMs = dueMs;
    this.#arm();
  }

  /** The connection has ended. */
  close(how: Closing): void {
    if (this.closed !== undefined) return;
    this.closed = how;
    this.#pieces.length = 0;
    this.#time.clearTimeout(this.#timer);
    this.onClosed();
    this.#options.onClosed(how);
  }

  /** The client's signal: its own reads fail with this reason. */
  abort(reason: unknown): void {
    if (this.closed !== undefined) return;
    this.#controller?.error(reason);
    this.close("byClient");
  }

  #seal(then: "end" | "reset"): void {
    if (this.closed !== undefined || this.#sealed) return;
    this.#sealed = true;
    this.#push(new Uint8Array(0), { then });
  }

  #push(
    bytes: Uint8Array,
    { mark, then, extraMs = 0 }: {
      readonly mark?: Mark;
      readonly then?: "end" | "reset";
      readonly extraMs?: number;
    },
  ): void {
    const { weather, chunking } = this.#options;
    let dueMs = Math.max(this.#lastDueMs, this.#time.worldNow() + weather.latencyMs()) + extraMs;
    if (chunking === "coalesce") dueMs = Math.ceil(dueMs / COALESCE_MS) * COALESCE_MS;
    this.#lastDueMs = dueMs;
    this.#pieces.push({ dueMs, bytes, mark, then });
    if (this.#pieces.length === 1) this.#arm();
  }

  #arm(): void {
    this.#time.clearTimeout(this.#timer);
    if (this.#pieces.length === 0 || this.closed !== undefined) return;
    this.#timer = this.#time.schedule(() => this.#deliver(), this.#pieces[0].dueMs - this.#time.worldNow());
  }

  #deliver(): void {
    if (this.closed !== undefined || this.silentSinceMs !== undefined) return;
    const nowMs = this.#time.worldNow();
    const due: Piece[] = [];
    while (this.#pieces.length > 0 && this.#pieces[0].dueMs <= nowMs) due.push(this.#pieces.shift()!);
    if (due.length === 0) return this.#arm();
    if (this.#options.chunking === "coalesce") {
      this.#enqueue(joined(due).bytes);
    } else {
      for (const piece of due) this.#enqueue(piece.bytes);
    }
    for (const { mark, then } of due) {
      if (mark === "bookmark") this.bookmarks++;
      if (mark === "end") this.sawEnd = true;
      if (mark === "unavailable") this.#options.onUnavailable();
      if (then !== undefined) return this.#finish(then);
    }
    this.#arm();
  }

  #enqueue(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.lastDeliveryMs = this.#time.worldNow();
    this.#options.onBytes(false);
    // A byte stream detaches the buffer that is enqueued.
    this.#controller!.enqueue(this.#options.byteStream ? bytes.slice() : bytes as Uint8Array<ArrayBuffer>);
  }

  #finish(how: "end" | "reset"): void {
    this.#options.onBytes(true);
    if (how === "reset") {
      this.#controller!.error(this.#options.random.pick(RESETS)());
    } else {
      this.#controller!.close();
      if (this.#options.byteStream) {
        (this.#controller as ReadableByteStreamController).byobRequest?.respond(0);
      }
    }
    this.close("byServer");
  }

  #sendInjured(frames: readonly Frame[], injury: Injury): void {
    const { random, log } = this.#options;
    const { bytes, mark } = joined(frames);
    log(`${injury} ${bytes.length} bytes`);
    switch (injury) {
      case "truncate":
        this.#push(bytes.slice(0, random.int(0, bytes.length - 1)), {});
        return random.chance(0.5) ? this.end() : this.reset();
      case "drop": {
        const rest = withoutSome(bytes, random);
        if (rest === undefined) return this.reset();
        return this.#push(rest, {});
      }
      case "repeat":
        this.#push(bytes, { mark });
        for (const earlier of this.#earlier.slice(-random.int(1, 4))) this.#push(earlier, {});
        return;
      case "repeatTail":
        this.#push(bytes, { mark });
        return this.#push(bytes.slice(random.int(1, bytes.length - 1)), {});
      case "garbage":
        this.#push(encoder.encode(random.pick(GARBAGE)), {});
        return this.#push(bytes, { mark });
      case "unknownType":
        this.#push(encoder.encode('{"type":"RENAMED","object":{"metadata":{"name":"n0"}}}\n'), {});
        return this.#push(bytes, { mark });
    }
  }
}

const GARBAGE = ["<html>502</html>\n", "{\n", "\u0000\u0001\n", "null\n", "[]\n", '{"type":3}\n', '"'];

// The errors of the runtimes for a broken connection.
const RESETS: readonly (() => Error)[] = [
  () => new TypeError("error reading a body from connection"),
  () =>
    Object.assign(new TypeError("terminated"), { cause: Object.assign(new Error("other side closed"), {}) }),
  () => Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }),
  () => new Error("Network connection lost."),
];

function joined(frames: readonly { readonly bytes: Uint8Array; readonly mark?: Mark }[]): Frame {
  if (frames.length === 1) return frames[0];
  let length = 0;
  for (const { bytes } of frames) length += bytes.length;
  const all = new Uint8Array(length);
  let at = 0;
  let mark: Mark | undefined;
  for (const frame of frames) {
    all.set(frame.bytes, at);
    at += frame.bytes.length;
    mark = frame.mark ?? mark;
  }
  return mark === undefined ? { bytes: all } : { bytes: all, mark };
}

/**
 * Drops some bytes in a way that can be detected: at least one line is broken, and every other line is one
 * that was sent. No client can detect one whole missing line, or another value in a string.
 */
function withoutSome(bytes: Uint8Array, random: SeededRandom): Uint8Array | undefined {
  const sent = new Set(decoder.decode(bytes).split("\n"));
  for (let attempt = 0; attempt < 8; attempt++) {
    const from = random.int(0, bytes.length - 1);
    const to = random.int(from + 1, bytes.length);
    const rest = new Uint8Array(bytes.length - (to - from));
    rest.set(bytes.subarray(0, from));
    rest.set(bytes.subarray(to), from);
    if (rest[rest.length - 1] !== 10) continue; // the next line would be joined to it, and might repair it
    let broken = false;
    let silent = false;
    for (const line of decoder.decode(rest).split("\n")) {
      if (sent.has(line)) continue;
      if (isJson(line)) silent = true;
      else broken = true;
    }
    if (broken && !silent) return rest;
  }
  return undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
