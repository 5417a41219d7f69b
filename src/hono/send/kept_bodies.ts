/** The bodies of lists, kept while they are requested. */

import { type Clock, monotonicNow } from "../../util/clock.ts";
import {
  type BodyBudget,
  type BodyOf,
  isSameVersion,
  ListBody,
  type ListedContent,
  type ListText,
} from "./list_body.ts";

/** Options of {@linkcode ListBodies}. */
export interface ListBodiesOptions {
  /** How many bytes all bodies may have together; 0 keeps none. */
  readonly maxListBodyBytes: number;
  readonly clock: Clock;
}

// Pages and programs that poll do so each few seconds.
const IDLE_MS = 10_000;
// The part of all bytes that lists of the past may take which are still being read.
const MOST_LEFT = 1 / 16;
// Each state of the past takes two references for each object.
const MOST_PAST = 32;

/**
 * Keeps the bodies of lists: for each form and selection the one of the present content. A body is made once,
 * while its first reader reads it, and every reader reads the same bytes; while only the list's
 * resourceVersion moves, its head is made again. It is dropped when the content of its namespace has changed,
 * when it was not requested for 10 s, and for the sake of others when there are too many bytes: the least
 * recently used first.
 *
 * It needs no timer: what is unused is dropped at the next request, whatever that is for.
 */
export class ListBodies implements BodyBudget {
  readonly #options: ListBodiesOptions;
  readonly #byContent = new WeakMap<ListedContent, Map<string, ListBody>>();
  /** The least recently used first. */
  readonly #kept = new Set<ListBody>();
  #bytes = 0;
  /** Those that are kept no longer and still have bytes; the oldest first. */
  readonly #left = new Set<ListBody>();
  /** What the lists of the past that are being read take, and how many lists share it. */
  readonly #past = new Map<object, number>();

  /** Makes it empty. */
  constructor(options: ListBodiesOptions) {
    this.#options = options;
  }

  /** The bytes of all bodies, also of those that are dropped and still read. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of kept bodies. */
  get size(): number {
    return this.#kept.size;
  }

  /** The body of the present content under a name, if it is kept. */
  get({ content, name }: Pick<BodyOf, "content" | "name">): ListBody | undefined {
    const body = this.#byContent.get(content)?.get(name);
    if (body === undefined || !body.isCurrent) return undefined;
    body.usedMs = monotonicNow(this.#options.clock);
    this.#kept.delete(body);
    this.#kept.add(body);
    return body;
  }

  /**
   * Keeps a body until the content changes, unless one of a newer content is kept. Returns the body to read.
   */
  add(of: BodyOf, text: ListText): ListBody {
    const { content, name, version } = of;
    const known = this.get(of);
    if (known?.of && isSameVersion(known.of.version, version)) return known;
    const body = new ListBody(this, text, { clock: this.#options.clock, of });
    if (known !== undefined || this.#options.maxListBodyBytes === 0) {
      body.drop();
      return body;
    }
    let ofContent = this.#byContent.get(content);
    if (ofContent === undefined) this.#byContent.set(content, ofContent = new Map());
    ofContent.get(name)?.drop();
    ofContent.set(name, body);
    this.#kept.add(body);
    return body;
  }

  /** A body that is not kept, for one reader; `undefined` if too many states of the past are being read. */
  alone(text: ListText): ListBody | undefined {
    const { past } = text;
    if (past !== undefined) {
      const readers = this.#past.get(past) ?? 0;
      if (readers === 0 && this.#past.size >= MOST_PAST) return undefined;
      this.#past.set(past, readers + 1);
    }
    const onClosed = () => past !== undefined && this.#leavePast(past);
    const body = new ListBody(this, text, { clock: this.#options.clock, onClosed });
    body.drop();
    return body;
  }

  #leavePast(past: object): void {
    const readers = this.#past.get(past)!;
    if (readers > 1) this.#past.set(past, readers - 1);
    else this.#past.delete(past);
  }

  /** Drops what is outdated, or was not requested for a while. */
  dropUnused(): void {
    if (this.#kept.size === 0) return;
    const beforeMs = monotonicNow(this.#options.clock) - IDLE_MS;
    for (const body of this.#kept) if (body.usedMs <= beforeMs || !body.isCurrent) body.drop();
  }

  take(bytes: number, of: ListBody, expectedBytes: number = bytes): boolean {
    const { maxListBodyBytes } = this.#options;
    if (expectedBytes > maxListBodyBytes) return false;
    for (const body of this.#kept) {
      if (this.#bytes + bytes <= maxListBodyBytes) break;
      if (body !== of) body.drop();
    }
    if (this.#bytes + bytes > maxListBodyBytes) return false;
    this.#bytes += bytes;
    if (!this.#kept.has(of)) this.#leave(of);
    return true;
  }

  free(bytes: number, of: ListBody): void {
    this.#bytes -= bytes;
    if (!of.isRead) this.#left.delete(of);
  }

  /** Slow readers share a body as long as all such bodies have few bytes. */
  #leave(body: ListBody): void {
    this.#left.add(body);
    const most = this.#options.maxListBodyBytes * MOST_LEFT;
    let bytes = 0;
    for (const { chunkBytes } of this.#left) bytes += chunkBytes;
    for (const oldest of this.#left) {
      if (bytes <= most) return;
      // Its last chunk is being counted.
      if (oldest === body) continue;
      bytes -= oldest.chunkBytes;
      oldest.release();
    }
  }

  forget(body: ListBody): void {
    if (body.isRead) this.#leave(body);
    if (this.#kept.delete(body) && body.of) this.#byContent.get(body.of.content)?.delete(body.of.name);
  }
}
