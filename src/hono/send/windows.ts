/**
 * Windows: the rows that some readers see of an order, or of groups, and what changes in them. Readers of the
 * same window share it: its rows are read once for all of them, and what has changed is written once.
 *
 * - **Steps.** A window goes from one state to the next in steps, each with a number. A reader that has seen
 *   the step before receives the changes; one that has seen an older one, as it reads slowly, receives
 *   the rows as they are now: it lags behind for a moment, and is never cut off.
 * - **Looks.** What comes into the log wakes no reader: all windows look whether their own rows have changed,
 *   at once after a quiet time, then each {@linkcode STEP_MS} at most, and less often where hundreds
 *   change. Mostly they see by the blocks of the order that nothing has; otherwise what differs in the
 *   order is found once for all of them.
 */

import { AGE_ANNOTATION } from "../../meta/list_watch.ts";
import type { KubernetesObject, ListMeta, ObjectMeta } from "../../meta/object.ts";
import { newStatus, type Status, statusErrorOf } from "../../meta/status.ts";
import { watchTooOld } from "../../protocol/statuses.ts";
import { concatenated, encodeUtf8 } from "../../util/bytes.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import { getOrMake } from "../../util/collections.ts";
import { errorMessage } from "../../util/errors.ts";
import { Pacer, TURN_UNITS, UNITS_PER_MS } from "../../util/turns.ts";
import type { Content } from "../content/content.ts";
import type { EventLog } from "../content/event_log.ts";
import type { WindowPlace } from "../content/selection.ts";
import type { FollowedObjects } from "../screens/followed_objects.ts";
import { nextRows, type RowChange, type RowsState, type WindowRow } from "../screens/row_changes.ts";
import { eventText } from "./watch_groups.ts";
import type { Feed, Piece } from "./event_feed.ts";

/** The rows that a window is cut out of, each made of a value. */
export interface RowSource<V = unknown> {
  /** The objects that have all rows, as they are now. */
  readonly followed: FollowedObjects<KubernetesObject, V>;
  /** Sources with the same name have the same rows. */
  readonly name: string;
  readonly itemsField: string;
  /** Whether rows have ages, which are those of the time at which they are made. */
  readonly hasAges?: true | undefined;
  /** The first of them, with which a window begins while they are behind. */
  readonly first: RowsState<V> | undefined;
  /** The row at which the window begins. */
  offset(rows: RowsState<V>, before: number): number;
  row(value: V): WindowRow;
  /** A list but for its rows. */
  list(metadata: ListMeta): Record<string, unknown>;
  bookmark(metadata: ObjectMeta): unknown;
}

export interface WindowOptions {
  readonly source: RowSource;
  /** The place of the window: the same text for the same place. */
  readonly place: string;
  readonly limit: number;
  readonly pacer: Pacer;
  /** Counts bytes of its rows that come, or go; `false` if there is no room for them. */
  takeRows(bytes: number, isNew: boolean): boolean;
}

/** The least time from one step of a window to the next; the most while hundreds of windows change. */
const STEP_MS = 100;
const MOST_STEP_MS = 1_000;
// Readers that come or catch up within this time receive the same ages.
const AGES_MS = 1_000;

// The steps that are kept for a reader that is a little late.
const KEPT_STEPS = 4;
// The costs of looking at a row, and of writing it.
const ROW_UNITS = 5;
const WRITE_UNITS = 200;
// The costs of looking whether a window has changed, of its step, and of each reader that the step wakes.
const LOOK_UNITS = 50;
const STEP_UNITS = 750;
const READER_UNITS = 750;
// The pause after a pass: windows take a thirtieth of the time, until the bound: a frame costs a system call.
const REST_FACTOR = 30;
// The most that is written in one turn: more than a thousand objects of the usual size.
const MOST_LENGTH = 16 * 1024 * 1024;
const TOO_LARGE =
  "the rows of this window are more than 16 MB; ask for some of their fields, or for fewer rows";
const NO_ROW: WindowRow = { id: "", json: "" };

export class Windows<T extends KubernetesObject> {
  readonly #content: Content<T>;
  readonly #clock: Clock;
  readonly #byName = new Map<string, Window>();
  readonly #pacer = new Pacer({ units: TURN_UNITS });
  #isLooking = false;
  #restUntilMs = -Infinity;
  #timer: TimerHandle | undefined;

  constructor(content: Content<T>, clock: Clock) {
    this.#content = content;
    this.#clock = clock;
  }

  get size(): number {
    return this.#byName.size;
  }

  /** The window of a name for one more reader. The source must be ready. */
  join(options: WindowOptions): Window {
    const { source, place, limit } = options;
    const name = JSON.stringify([source.name, limit, place]);
    const end = () => {
      this.#byName.delete(name);
      if (this.#byName.size === 0) this.#stop();
    };
    const timed = { ...options, clock: this.#clock };
    return getOrMake(this.#byName, name, () => new Window(this.#content.log, timed, end));
  }

  /** The log has new entries: at the end of this turn, or once the windows have rested, they look. */
  grown(): void {
    if (this.#byName.size === 0 || this.#isLooking || this.#timer !== undefined) return;
    const waitMs = this.#restUntilMs - monotonicNow(this.#clock);
    if (waitMs > 0) {
      this.#timer = this.#clock.setTimeout(() => {
        this.#timer = undefined;
        this.#look();
      }, waitMs);
      return;
    }
    this.#isLooking = true;
    queueMicrotask(() => this.#look());
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    const startMs = monotonicNow(this.#clock);
    this.#restUntilMs = startMs + STEP_MS;
    const { head } = this.#content.log;
    let units = 0;
    for (const window of this.#byName.values()) {
      const woken = window.look();
      // The first window of an order follows what has changed in it.
      const looked = LOOK_UNITS + window.takeUnits();
      units += looked + (woken > 0 ? STEP_UNITS : 0) + READER_UNITS * woken;
      if (this.#pacer.spend(looked)) await this.#pacer.rest();
    }
    const restMs = Math.min(REST_FACTOR * units / UNITS_PER_MS, MOST_STEP_MS);
    this.#restUntilMs = Math.max(this.#restUntilMs, startMs + restMs);
    this.#isLooking = false;
    if (this.#content.log.head !== head) this.grown();
  }

  #stop(): void {
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

interface Step {
  readonly number: number;
  readonly bytes: Uint8Array;
}

type WindowLog = Pick<EventLog<KubernetesObject>, "head" | "resourceVersion" | "oldestResourceVersion">;

export class Window {
  readonly #log: WindowLog;
  readonly #options: WindowOptions & { readonly clock: Clock };
  readonly #onEnd: () => void;
  readonly #feeds = new Set<WindowFeed>();
  #rows: readonly WindowRow[] = [];
  /** The first rows, until they are shown. */
  #begin: RowsState<unknown> | undefined;
  /** All rows, as they were at its last step. */
  #before: RowsState<unknown> | undefined;
  #place: WindowPlace = { total: 0, offset: 0 };
  #resourceVersion = "";
  /** The entry of the log that it has not seen. */
  #cursor = -1;
  #number = 0;
  /** The last steps, the latest last. */
  #steps: Step[] = [];
  /** All rows as they are now, once they are written. */
  #whole: Uint8Array | undefined;
  /** When all rows were made last. */
  #madeMs: number;
  /** Whether its rows may have changed since its last step. */
  #isDue = true;
  #isReading = false;
  #bytes = 0;
  #units = 0;
  /** Why no reader can see more of it. */
  #failure: Status | undefined;

  constructor(
    log: WindowLog,
    options: WindowOptions & { readonly clock: Clock },
    onEnd: () => void,
  ) {
    this.#log = log;
    this.#options = options;
    this.#onEnd = onEnd;
    this.#madeMs = monotonicNow(options.clock);
    this.#begin = options.source.first;
    options.source.followed.windows++;
  }

  /** Why a reader cannot see more of it: there is no room for it, or a new history begins. */
  lost(): Status {
    return this.#failure ?? watchTooOld(this.#resourceVersion, this.#log.oldestResourceVersion);
  }

  enter(feed: WindowFeed): void {
    this.#feeds.add(feed);
  }

  leave(feed: WindowFeed): void {
    if (!this.#feeds.delete(feed) || this.#feeds.size > 0) return;
    const { source } = this.#options;
    this.#options.takeRows(-this.#bytes, false);
    source.followed.windows--;
    this.#onEnd();
  }

  /** The work of following the changes of its rows. */
  takeUnits(): number {
    return this.#options.source.followed.takeUnits();
  }

  /** Wakes its readers if its rows may have changed; returns how many. */
  look(): number {
    if (this.#isDue || this.#cursor === this.#log.head) return 0;
    const { source } = this.#options;
    try {
      this.#isDue = source.followed.isBehind || !this.#isUnchanged(source.followed.present());
    } catch (error) {
      this.#fail(error);
      this.#isDue = true;
    }
    if (!this.#isDue) return 0;
    for (const feed of this.#feeds) feed.wake();
    return this.#feeds.size;
  }

  /** Whether the window has something that a reader of a step has not seen, and may see now. */
  hasNext(seen: number): boolean {
    if (seen < this.#number || this.#failure !== undefined) return true;
    if (!this.#isDue || this.#isReading) return false;
    if (!this.#options.source.followed.isBehind || this.#begin !== undefined) return true;
    this.#read();
    return false;
  }

  /** The next bytes for a reader that has seen a step. */
  next(seen: number): Omit<Piece, "hasMore"> & { readonly number: number } {
    const { source } = this.#options;
    const begin = this.#begin;
    this.#begin = undefined;
    try {
      if (this.#failure === undefined && this.#isDue && !source.followed.isBehind) {
        this.#step(source.followed.present());
      } else if (begin !== undefined) this.#step(begin, { isPresent: false });
    } catch (error) {
      this.#fail(error);
    }
    const units = this.#units;
    this.#units = 0; // the first reader pays for all
    const number = this.#number;
    if (this.#failure !== undefined) return { bytes: undefined, units, isCut: true, number };
    const missing = this.#steps.filter((step) => step.number > seen);
    const hasAll = missing.length === number - seen;
    const bytes = seen === number ? undefined : hasAll ? joined(missing) : this.#all();
    return { bytes, units, isCut: false, number };
  }

  /** The bookmark: how far the window is, and how long ago the last contact with the API server was. */
  bookmark(ageMs: number): Uint8Array {
    // Changes that left the rows as they are may have moved the version.
    if (this.#cursor === this.#log.head) this.#resourceVersion = this.#log.resourceVersion;
    const annotations = { [AGE_ANNOTATION]: String(Math.round(ageMs)) };
    const metadata = { resourceVersion: this.#resourceVersion, annotations };
    return encodeUtf8(eventText("BOOKMARK", this.#options.source.bookmark(metadata)));
  }

  /** The source has lost its place, and reads all objects again. */
  async #read(): Promise<void> {
    this.#isReading = true;
    const { source, pacer } = this.#options;
    try {
      while (source.followed.isBehind) await source.followed.ready(pacer);
    } catch (error) {
      this.#fail(error);
    }
    this.#isReading = false;
    for (const feed of this.#feeds) feed.wake();
  }

  /** An object on disk cannot be read, or there is no room for all of them. */
  #fail(error: unknown): void {
    this.#failure ??= statusErrorOf(error)?.status ?? newStatus(500, "InternalError", errorMessage(error));
  }

  /** The window's place in the rows as they are now. */
  #placeIn(rows: RowsState<unknown>): WindowPlace & { readonly end: number; readonly isSame: boolean } {
    const { total, offset: before } = this.#place;
    const { source, limit } = this.#options;
    const { length } = rows;
    const offset = source.offset(rows, before);
    const end = Math.min(length, offset + limit);
    return { total: length, offset, end, isSame: length === total && offset === before };
  }

  /** Whether its rows are known to be those of its last step: then it has come as far. */
  #isUnchanged(rows: RowsState<unknown>): boolean {
    const { offset, end, isSame } = this.#placeIn(rows);
    if (!isSame || this.#before === undefined || !rows.isSameIn(this.#before, offset, end)) return false;
    this.#reached(rows);
    return true;
  }

  #reached(rows: RowsState<unknown>): void {
    this.#before = rows;
    this.#cursor = this.#log.head;
    this.#resourceVersion = rows.resourceVersion;
    this.#isDue = false;
  }

  /** @param all All rows; unless these are the present ones, a step to those must follow. */
  #step(all: RowsState<unknown>, { isPresent = true }: { readonly isPresent?: boolean } = {}): void {
    const { source } = this.#options;
    const { total, offset, end, isSame: isPlaced } = this.#placeIn(all);
    const before = this.#before ?? all;
    this.#reached(all);
    if (!isPresent) [this.#isDue, this.#cursor] = [true, -1];
    this.#units += ROW_UNITS * (end - offset);
    let length = 0;
    const row = (index: number) => {
      if (length > MOST_LENGTH) return NO_ROW;
      const row = source.row(all.value(index));
      length += row.json.length;
      return row;
    };
    const shown = { rows: this.#rows, from: this.#place.offset };
    const { rows, changes } = nextRows(
      shown,
      { from: offset, to: end, row },
      all.differenceFrom(before, Math.max(end, this.#place.offset + this.#rows.length)),
    );
    if (length > MOST_LENGTH) {
      this.#failure = newStatus(413, "RequestEntityTooLarge", TOO_LARGE);
      return;
    }
    this.#rows = rows;
    if (this.#number > 0 && changes.length === 0 && isPlaced) return;
    this.#place = { total, offset };
    this.#whole = undefined;
    this.#number++;
    this.#units += WRITE_UNITS;
    if (this.#number > 1) this.#keepStep(changes.map(changeText).join(","));
    this.#count();
  }

  #keepStep(changes: string): void {
    const { kind, apiVersion } = this.#options.source.list({});
    const metadata = { resourceVersion: this.#resourceVersion };
    const head = JSON.stringify({ kind, apiVersion, metadata, window: this.#place }).slice(0, -1);
    const text = `{"type":"CHANGES","object":${head},"changes":[${changes}]}}\n`;
    this.#steps.push({ number: this.#number, bytes: encodeUtf8(text) });
    if (this.#steps.length > KEPT_STEPS) this.#steps.shift();
  }

  #all(): Uint8Array {
    const { source, clock } = this.#options;
    if (source.hasAges && monotonicNow(clock) - this.#madeMs >= AGES_MS) this.#makeRows();
    if (this.#whole !== undefined) return this.#whole;
    const { [source.itemsField]: _, ...list } = source.list({ resourceVersion: this.#resourceVersion });
    const head = JSON.stringify({ ...list, window: this.#place }).slice(0, -1);
    const items = this.#rows.map(({ json }) => json).join(",");
    this.#units += items.length * 0.5;
    const text = `{"type":"ROWS","object":${head},"${source.itemsField}":[${items}]}}\n`;
    return this.#whole = encodeUtf8(text);
  }

  /** Makes the rows again, as they have been shown for a while. */
  #makeRows(): void {
    const { source, clock } = this.#options;
    const { offset } = this.#place;
    try {
      this.#rows = this.#rows.map((_, i) => source.row(this.#before!.value(offset + i)));
    } catch {
      return; // one of them is on disk no more: there will be other rows soon
    }
    this.#units += WRITE_UNITS;
    this.#madeMs = monotonicNow(clock);
    this.#whole = undefined;
  }

  /** Counts what the window holds; ends it where there is no room. */
  #count(): void {
    let bytes = 0;
    for (const { json } of this.#rows) bytes += 2 * json.length;
    for (const step of this.#steps) bytes += step.bytes.byteLength;
    if (!this.#options.takeRows(bytes - this.#bytes, this.#number === 1)) {
      this.#failure = newStatus(429, "TooManyRequests", "the server has no room for this window; try again", {
        retryAfterSeconds: 1,
      });
      return;
    }
    this.#bytes = bytes;
  }
}

function changeText(change: RowChange): string {
  if (!("row" in change)) return JSON.stringify(change);
  const { op, at, row } = change;
  return `{"op":"${op}","at":${at},"item":${row.json}}`;
}

function joined(steps: readonly Step[]): Uint8Array {
  return steps.length === 1 ? steps[0].bytes : concatenated(steps.map(({ bytes }) => bytes));
}

/** The feed of one reader of a window. */
export class WindowFeed implements Feed {
  readonly #window: Window;
  readonly #content: { readonly ageMs: number };
  #seen = 0;
  #watch: { wake(): void } | undefined;
  readonly wantsHeartbeat = true;
  readonly endsAtRelist = false;
  /** No entry of the log is kept for it. */
  readonly cursor: number = Infinity;

  constructor(window: Window, content: { readonly ageMs: number }) {
    this.#window = window;
    this.#content = content;
    window.enter(this);
  }

  get hasNext(): boolean {
    return this.#window.hasNext(this.#seen);
  }

  opened(watch: { wake(): void }): void {
    this.#watch = watch;
  }

  wake(): void {
    this.#watch?.wake();
  }

  next(): Piece {
    const piece = this.#window.next(this.#seen);
    this.#seen = piece.number;
    return { ...piece, hasMore: this.hasNext };
  }

  heartbeat(): Uint8Array {
    return this.#window.bookmark(this.#content.ageMs);
  }

  lost(): Status {
    return this.#window.lost();
  }

  close(): void {
    this.#window.leave(this);
  }
}
