/**
 * How events reach watchers: who writes to which watcher, and when.
 *
 * - **Cursors.** A watch has a cursor: the sequence number of the log entry that it sends next. The log keeps
 *   the entries, the watch keeps the cursor. No event is queued for a watch.
 * - **Groups** (watch_groups.ts). Watches of the same view and selection have one group. A group makes the
 *   bytes from one cursor to the end of the log once, as one chunk, and every watch of the group that has
 *   this cursor sends the same chunk. A slow watch has another cursor, so it gets chunks of its own until it
 *   has caught up: it leaves and joins the others without any bookkeeping.
 * - **Passes.** New entries start a pass: every watch of the log that is behind and whose outlet has room
 *   sends one chunk. The first event after a quiet time is written in the turn in which it comes. A pass is
 *   followed by a rest of twice its cost, 25 ms at most, in which entries gather: with few watches nothing
 *   waits, with a thousand a burst goes out in chunks of 25 ms. The rest is a time, not a timer: a timer is
 *   only set for entries that come in the rest.
 * - **Slices.** A pass is cut into slices of about 3 ms. After each slice the event loop runs at least one
 *   turn, in which the informers read from their sockets; while such a turn brings entries, up to {@linkcode
 *   INGEST_TURNS} turns. So ingest never waits longer than a slice, however many watches there are. Work is
 *   counted, not timed: the same work gives way at the same places with every clock.
 * - **Order of work.** A watch whose outlet has drained and that is still behind (a replay, initial events, a
 *   slow reader) takes turns with those of the pass, one by one.
 * - **Bounds.** An outlet holds `watchBufferBytes` per watch and `maxReaderBytes` for all readers. A
 *   watch without room waits for its reader, for `writeTimeoutMs` at most; it is cut off with 410 when
 *   the log drops entries that it has not sent.
 */

import type { KubernetesObject } from "../../meta/object.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import { Deque } from "../../util/collections.ts";
import { giveWay, Pacer, UNITS_PER_MS } from "../../util/turns.ts";
import type { Content } from "../content/content.ts";
import type { LogEntry, LogFollower } from "../content/log_history.ts";
import { EntryViews, WatchGroups } from "./watch_groups.ts";
import { Windows } from "./windows.ts";

export interface Recipient {
  /** Whether the recipient waits in the fan-out. Only the fan-out sets it. */
  isQueued: boolean;
  /** Sends one piece, if it has one and may. Returns whether it has more to send, and may send it. */
  deliver(): boolean;
}

export interface FanOutSource {
  readonly recipients: Iterable<Recipient>;
  /** Every watch that was ready has sent something. `hasGrown`: there are entries that some have not sent. */
  passEnds(hasGrown: boolean): void;
}

/** The most work of one turn, unless one piece is more. */
export const SLICE_UNITS: number = 3 * UNITS_PER_MS;

/** How many turns the event loop runs between two slices, while each of them brings entries. */
const INGEST_TURNS = 4;

/** The longest time for which entries gather. */
export const MOST_GATHER_MS = 25;

// The pause after a pass, in proportion to its cost: fan-out takes at most a third of the time, until the
// bound.
const REST_FACTOR = 2;

/** Runs the watches of all logs of one server, in slices. */
export class FanOut {
  readonly #clock: Clock;
  /** The logs with new entries since the last pass began. */
  readonly #changed = new Set<FanOutSource>();
  /** The logs of this pass, and its watches. */
  #sources: FanOutSource[] = [];
  readonly #pass = new Deque<Recipient>();
  /** Watches that continue independent of passes. */
  readonly #ready = new Deque<Recipient>();
  #passUnits = 0;
  /** How many times a log has grown. */
  #growth = 0;
  #restUntilMs = -Infinity;
  #timer: TimerHandle | undefined;
  #isScheduled = false;
  #isRunning = false;
  #isPassTurn = false;
  readonly #pacer = new Pacer({ units: SLICE_UNITS, turns: { isBusy: false, next: () => this.#giveWay() } });
  /** The work of all slices; watches add theirs. */
  units = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A log has new entries for its watches. */
  grown(source: FanOutSource): void {
    this.#growth++;
    this.#changed.add(source);
    this.#schedulePass();
  }

  /** A watch can continue: its outlet has room again, or it has just been opened. */
  ready(recipient: Recipient): void {
    if (recipient.isQueued) return;
    recipient.isQueued = true;
    this.#ready.push(recipient);
    this.#schedule();
  }

  forget(source: FanOutSource): void {
    this.#changed.delete(source);
    if (this.#changed.size > 0) return;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedulePass(): void {
    if (this.#timer !== undefined || this.#changed.size === 0) return;
    const waitMs = this.#restUntilMs - monotonicNow(this.#clock);
    if (waitMs <= 0) return this.#schedule();
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#schedule();
    }, waitMs);
  }

  /** At the end of this turn, so that everything that the turn brings goes out together. */
  #schedule(): void {
    if (this.#isScheduled || this.#isRunning) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    this.#pacer.begin();
    for (;;) {
      this.#beginPass();
      this.#slice();
      if (this.#pass.length === 0) this.#endPass();
      if (this.#pass.length === 0 && this.#ready.length === 0) break;
      await this.#pacer.rest();
    }
    this.#isRunning = false;
    this.#schedulePass();
  }

  /** Collects the watches, all of which are behind, unless a pass is running or entries gather. */
  #beginPass(): void {
    if (this.#sources.length > 0 || this.#timer !== undefined || this.#changed.size === 0) return;
    this.#sources = Array.from(this.#changed);
    this.#changed.clear();
    this.#passUnits = 0;
    for (const source of this.#sources) {
      for (const recipient of source.recipients) {
        if (recipient.isQueued) continue;
        recipient.isQueued = true;
        this.#pass.push(recipient);
      }
    }
  }

  #endPass(): void {
    if (this.#sources.length === 0) return;
    const sources = this.#sources;
    this.#sources = [];
    const restMs = Math.min(REST_FACTOR * this.#passUnits / UNITS_PER_MS, MOST_GATHER_MS);
    // Timers have a resolution of a millisecond.
    this.#restUntilMs = restMs < 1 ? -Infinity : monotonicNow(this.#clock) + restMs;
    for (const source of sources) source.passEnds(this.#changed.has(source));
    this.#schedulePass();
  }

  /** Lets one watch after the other send, until the work of a turn is done. */
  #slice(): void {
    while (!this.#pacer.isDue) {
      const before = this.units;
      this.#isPassTurn = this.#pass.length > 0 && (this.#ready.length === 0 || !this.#isPassTurn);
      const recipient = (this.#isPassTurn ? this.#pass : this.#ready).shift();
      if (recipient === undefined) return;
      recipient.isQueued = false;
      if (recipient.deliver()) this.ready(recipient);
      const units = this.units - before;
      this.#pacer.spend(units);
      if (this.#isPassTurn) this.#passUnits += units;
    }
  }

  /** Lets the informers read from their sockets. */
  async #giveWay(): Promise<void> {
    for (let turn = 0; turn < INGEST_TURNS; turn++) {
      const growth = this.#growth;
      await giveWay();
      if (this.#growth === growth) return;
    }
  }
}

export interface LogReader extends Recipient {
  readonly cursor: number;
  readonly wantsHeartbeat: boolean;
  /**
   * Whether the difference between two lists is not enough for it: it requires each event, or has seen a
   * state in between, elsewhere.
   */
  readonly endsAtRelist: boolean;
  heartbeat(): void;
  /** Sends at once what it has room for. */
  flush(): void;
  /** The entries that it would read next were dropped. */
  cut(): void;
  /** The log is closed: end in good order. */
  end(): void;
}

export interface WatchersOptions {
  readonly clock: Clock;
  readonly fanOut: FanOut;
  readonly heartbeatMs: number;
}

// An API server sends a bookmark about once a minute; a merged resource has one after each event.
const HEARD_MS = 5_000;

/**
 * The open watches of one content: lets them send what comes into its log, ends those that cannot continue,
 * and gives a heartbeat to each one that wants it, at the same time to all. There is a timer while a watch
 * wants one.
 */
export class Watchers<T extends KubernetesObject> implements LogFollower<T>, FanOutSource {
  readonly #options: WatchersOptions;
  /** The entries from here on are not dropped: the watches have not had their turn since. */
  #keepFrom = 0;
  #wanted = 0;
  #timer: TimerHandle | undefined;
  #heardMs = -Infinity;

  readonly content: Content<T>;
  readonly fanOut: FanOut;
  isSending = false;
  readonly #readers = new Set<LogReader>();
  /** The watches that read the log; the others show windows, which wake them. */
  readonly recipients: Set<LogReader> = new Set();
  readonly views: EntryViews<T>;
  readonly groups: WatchGroups<T>;
  readonly windows: Windows<T>;

  constructor(content: Content<T>, options: WatchersOptions) {
    this.content = content;
    this.#options = options;
    this.views = new EntryViews(content.holding);
    this.groups = new WatchGroups(content, this.views);
    this.windows = new Windows(content, options.clock);
    this.fanOut = options.fanOut;
    content.log.follow(this);
  }

  get size(): number {
    return this.#readers.size;
  }

  attach(reader: LogReader): void {
    if (this.content.log.isClosed) return reader.end();
    this.#readers.add(reader);
    if (reader.cursor !== Infinity) this.recipients.add(reader);
    this.isSending = true;
    if (reader.wantsHeartbeat && this.#wanted++ === 0) this.#schedule();
  }

  detach(reader: LogReader): void {
    if (!this.#readers.delete(reader)) return;
    this.recipients.delete(reader);
    if (reader.wantsHeartbeat && --this.#wanted === 0) this.#options.clock.clearTimeout(this.#timer);
    if (this.#readers.size > 0) return;
    this.isSending = false;
    this.fanOut.forget(this);
  }

  passEnds(hasGrown: boolean): void {
    this.views.passEnds();
    this.groups.clear();
    this.content.log.trim(hasGrown ? this.#keepFrom : Infinity);
    // The next pass sends them to every watch that has room.
    this.#keepFrom = hasGrown ? this.content.log.head : 0;
  }

  interrupted(isNewHistory: boolean): () => void {
    const ending = Array.from(this.#readers).filter((reader) => isNewHistory || reader.endsAtRelist);
    for (const reader of ending) reader.flush();
    return () => {
      for (const reader of ending) if (this.#readers.has(reader)) reader.cut();
    };
  }

  grown(): void {
    // All watches are about to read the same entries.
    this.views.isPass = true;
    this.fanOut.grown(this);
    if (this.recipients.size < this.#readers.size) this.windows.grown();
  }

  /** Caches above learn it at once, or their ages would add up. */
  heard(): void {
    if (this.#wanted === 0) return;
    const nowMs = monotonicNow(this.#options.clock);
    if (nowMs - this.#heardMs < HEARD_MS) return;
    this.#heardMs = nowMs;
    for (const reader of this.#readers) {
      if (reader.wantsHeartbeat && reader.endsAtRelist) reader.heartbeat();
    }
  }

  forget(entry: LogEntry<T>): void {
    this.views.forget(entry);
  }

  trimmed(tail: number): void {
    for (const reader of Array.from(this.recipients)) if (reader.cursor < tail) reader.cut();
  }

  /** Ends each watch after its remaining events. */
  end(): void {
    for (const reader of Array.from(this.#readers)) reader.end();
  }

  #schedule(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      for (const reader of this.#readers) if (reader.wantsHeartbeat) reader.heartbeat();
      if (this.#wanted > 0 && this.#timer === undefined) this.#schedule();
    }, this.#options.heartbeatMs);
  }
}
