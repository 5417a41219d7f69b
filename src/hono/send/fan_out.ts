/**
 * Who writes to which watcher, and when.
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
 * - **Bounds.** An outlet holds `watchBufferBytes` per watch and `maxBufferedBytes` for all. A watch without
 *   room waits for its reader, for `writeTimeoutMs` at most; it is cut off with 410 when the log drops
 *   entries that it has not sent.
 *
 * @module
 */

import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import { Deque } from "../../util/collections.ts";
import { giveWay, Pacer, UNITS_PER_MS } from "../../util/turns.ts";

/** A watch, as the fan-out sees it. */
export interface Recipient {
  /** Whether it waits in the fan-out. Only the fan-out sets it. */
  isQueued: boolean;
  /** Whether it has something to send, and may send it. */
  readonly isReady: boolean;
  /** Sends one piece. Returns whether it has more to send, and may send it. */
  deliver(): boolean;
}

/** A log, as the fan-out sees it. */
export interface FanOutSource {
  /** Its watches. */
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

// The rest after a pass, in proportion to its cost: so fan-out takes a third of the time at most, until the
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
  /** How often a log has grown. */
  #growth = 0;
  #restUntilMs = -Infinity;
  #timer: TimerHandle | undefined;
  #isScheduled = false;
  #isRunning = false;
  #isPassTurn = false;
  readonly #pacer = new Pacer({ units: SLICE_UNITS, turns: { isBusy: false, next: () => this.#giveWay() } });
  /** The work of all slices; watches add theirs. */
  units = 0;

  /** @param clock Measures the rest after a pass. */
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

  /** A log has no watches any more. */
  forget(source: FanOutSource): void {
    this.#changed.delete(source);
    if (this.#changed.size === 0) this.#stopTimer();
  }

  #schedulePass(): void {
    if (this.#sources.length > 0 || this.#timer !== undefined || this.#changed.size === 0) return;
    const waitMs = this.#restUntilMs === -Infinity ? 0 : this.#restUntilMs - monotonicNow(this.#clock);
    if (waitMs <= 0) return this.#schedule();
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      this.#schedule();
    }, waitMs);
  }

  #stopTimer(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
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

  /** Collects the watches that are behind, unless a pass is running or entries gather. */
  #beginPass(): void {
    if (this.#sources.length > 0 || this.#timer !== undefined || this.#changed.size === 0) return;
    this.#sources = Array.from(this.#changed);
    this.#changed.clear();
    this.#passUnits = 0;
    for (const source of this.#sources) {
      for (const recipient of source.recipients) {
        if (recipient.isQueued || !recipient.isReady) continue;
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
    if (this.#restUntilMs !== -Infinity) this.#schedulePass();
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
