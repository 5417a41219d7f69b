/**
 * What the server sends, encoded before the first request: the
 * items of the list, and the events of the burst.
 *
 * @module
 */

import { numbersByKey, podJson, populationOf } from "./pods.ts";

/** Bytes that are sent together. */
const BLOCK_BYTES = 64 * 1024;
const BASE_VERSION = 1_000_000;
/** Neighbours in the burst are not neighbours in the list. */
const STRIDE = 7_919;

/** Items of a list one after the other, with the place of each. */
export interface EncodedList {
  readonly resourceVersion: string;
  /** Bytes of the whole body. */
  readonly bytes: number;
  /** The body from item `start` to before item `end`, in blocks; says that it is of this version. */
  page(start: number, end: number, version?: string): Iterable<Uint8Array>;
}

/** Pods of 13 KB, some of which were restarted, and changes of which a page shows some. */
const SCREEN_VARIABLES = 40;

/** How often a pod was restarted, as in a cluster where few are. */
function restartsOf(index: number): number {
  return index % 20 === 0 ? index % 37 : 0;
}

/** The pods that there are. */
export interface Pods {
  readonly objects: number;
  readonly isVaried?: boolean;
  /** Whether they are for screens: see {@linkcode encodeEvents}. */
  readonly isForScreens?: boolean;
  /** Whether they come without managedFields. */
  readonly isBare?: boolean;
}

function populationFor({ objects, isVaried, isForScreens }: Pods) {
  return populationOf(objects, isVaried, isForScreens ? SCREEN_VARIABLES : 0);
}

/** Encodes a list of the pods, in the order of their keys. */
export function encodeList(pods: Pods): EncodedList {
  const { objects, isForScreens, isBare } = pods;
  const population = populationFor(pods);
  const resourceVersion = String(BASE_VERSION + objects);
  const encoder = new TextEncoder();

  const items: Uint8Array[] = [];
  const blocks = new Blocks();
  for (const i of numbersByKey(population)) {
    const json = podJson(population, i, {
      resourceVersion: String(BASE_VERSION + i + 1),
      revision: 0,
      ...(isForScreens && { restarts: restartsOf(i) }),
      isTyped: false,
      ...(isBare && { isBare }),
    });
    items.push(blocks.add(encoder.encode(`${items.length === 0 ? "" : ","}${json}`)));
  }
  blocks.end();
  const suffix = encoder.encode("]}\n");
  const head = (metadata: Record<string, unknown>) =>
    encoder.encode(`{"kind":"PodList","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[`);
  const whole = head({ resourceVersion });
  const bytes = whole.length + suffix.length + items.reduce((sum, item) => sum + item.length, 0);
  return {
    resourceVersion,
    bytes,
    *page(start: number, end: number, version = resourceVersion): Iterable<Uint8Array> {
      if (start === 0 && end >= objects) {
        yield version === resourceVersion ? whole : head({ resourceVersion: version });
        yield* blocks.all;
        yield suffix;
        return;
      }
      const stop = Math.min(end, objects);
      const rest = objects - stop;
      yield head({
        resourceVersion: version,
        ...(rest > 0 && { continue: `from-${stop}`, remainingItemCount: rest }),
      });
      // The first item of a page has no comma before it.
      if (start < stop) yield start === 0 ? items[0] : items[start].subarray(1);
      for (let i = start + 1; i < stop; i++) yield items[i];
      yield suffix;
    },
  };
}

/** Events one after the other, framed for a chunked HTTP/1.1 body. */
export interface EncodedEvents {
  readonly events: number;
  readonly lastResourceVersion: string;
  readonly blocks: readonly Uint8Array[];
  /** The version of the last event in each block. */
  readonly versions: readonly string[];
  /** How often the first pod of a block was restarted after it, for some blocks; more than any other. */
  readonly marks: ReadonlyMap<number, number>;
}

/**
 * Encodes a burst of MODIFIED events over the pods of a list.
 *
 * For screens, one in ten is another restart, and one in two hundred is a mark: the first pod is restarted
 * more often than all others, so that it is the first of those that were restarted most.
 *
 * @param framing `event` makes each event a chunk of the HTTP body, as
 * kube-apiserver writes them; `block` packs them tightly.
 */
export function encodeEvents(pods: Pods, events: number, framing: "event" | "block"): EncodedEvents {
  const { objects, isForScreens, isBare } = pods;
  const population = populationFor(pods);
  const encoder = new TextEncoder();
  const blocks = new Blocks();
  const stride = coprimeTo(objects, STRIDE);
  const marks = new Map<number, number>();
  let resourceVersion = String(BASE_VERSION + objects);
  let packed: Uint8Array[] = [];
  let packedBytes = 0;
  const versions: string[] = [];
  const chunk = (parts: Uint8Array[], bytes: number) => {
    // In one piece: between two blocks, a bookmark may be sent.
    blocks.add(joined([encoder.encode(`${bytes.toString(16)}\r\n`), ...parts, encoder.encode("\r\n")]));
    versions[blocks.all.length] = resourceVersion;
  };
  for (let i = 0; i < events; i++) {
    resourceVersion = String(BASE_VERSION + objects + i + 1);
    const revision = 1 + Math.floor(i / objects);
    const isMark = isForScreens && i % MARK_EVERY === MARK_EVERY - 1;
    const index = isMark ? 0 : (i * stride) % objects;
    const restarts = isMark ? MARKS_FROM + i : restartsOf(index) + (i % 10 === 0 ? revision : 0);
    const version = {
      resourceVersion,
      revision,
      ...(isForScreens && { restarts }),
      isTyped: true,
      ...(isBare && { isBare }),
    };
    const json = podJson(population, index, version);
    const event = encoder.encode(`{"type":"MODIFIED","object":${json}}\n`);
    if (framing === "event") chunk([event], event.length);
    else {
      packed.push(event);
      packedBytes += event.length;
      if (packedBytes >= BLOCK_BYTES || i === events - 1) {
        chunk(packed, packedBytes);
        packed = [];
        packedBytes = 0;
      }
    }
    // What was added last is in the block that comes next.
    if (isMark) marks.set(blocks.all.length, restarts);
  }
  blocks.end();
  return { events, lastResourceVersion: resourceVersion, blocks: blocks.all, versions, marks };
}

const MARK_EVERY = 200;
const MARKS_FROM = 1_000_000;

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * The first number from `wanted` on that has no divisor in common with
 * `size`, so that its multiples meet every index.
 */
function coprimeTo(size: number, wanted: number): number {
  const divisor = (a: number, b: number): number => b === 0 ? a : divisor(b, a % b);
  while (divisor(wanted, size) !== 1) wanted++;
  return wanted;
}

/** Copies pieces into blocks, so that they lie side by side and are sent with few calls. */
class Blocks {
  readonly all: Uint8Array[] = [];
  #block = new Uint8Array(BLOCK_BYTES);
  #used = 0;

  /** Adds a piece; returns where it is now. */
  add(piece: Uint8Array): Uint8Array {
    if (this.#used + piece.length > this.#block.length) {
      this.end();
      this.#block = new Uint8Array(Math.max(BLOCK_BYTES, piece.length));
    }
    this.#block.set(piece, this.#used);
    const added = this.#block.subarray(this.#used, this.#used + piece.length);
    this.#used += piece.length;
    return added;
  }

  end(): void {
    if (this.#used > 0) this.all.push(this.#block.subarray(0, this.#used));
    this.#block = new Uint8Array(0);
    this.#used = 0;
  }
}
