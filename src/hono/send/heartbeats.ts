/**
 * Signs of life for the watches of one log.
 * @module
 */

import { type Clock, monotonicNow, type TimerHandle } from "../../util/clock.ts";
import type { Recipient } from "./fan_out.ts";

/** A watch, as its log sees it. */
export interface LogReader extends Recipient {
  /** The sequence number of the next entry it will read. */
  readonly cursor: number;
  /** Whether it wants {@linkcode LogReader.heartbeat}. */
  readonly wantsHeartbeat: boolean;
  /**
   * Whether the difference between two lists is not enough for it: it requires each event, or has seen a
   * state in between, elsewhere.
   */
  readonly endsAtRelist: boolean;
  /** Time for a sign of life. */
  heartbeat(): void;
  /** Sends at once what it has room for. */
  flush(): void;
  /** The entries that it would read next were dropped. */
  cut(): void;
  /** The log is closed: end in good order. */
  end(): void;
}

// An API server sends a bookmark about once a minute; a merged resource has one after each event.
const HEARD_MS = 5_000;

/**
 * Gives a heartbeat to each watch that wants it, at the same time to all. There is a timer while a watch
 * wants one.
 */
export class Heartbeats {
  readonly #readers: Iterable<LogReader>;
  readonly #clock: Clock;
  readonly #heartbeatMs: number;
  /** How many watches want it. */
  #wanted = 0;
  #timer: TimerHandle | undefined;
  #heardMs = -Infinity;

  /** @param options `heartbeatMs` is the time between two. */
  constructor(
    readers: Iterable<LogReader>,
    { clock, heartbeatMs }: { readonly clock: Clock; readonly heartbeatMs: number },
  ) {
    this.#readers = readers;
    this.#clock = clock;
    this.#heartbeatMs = heartbeatMs;
  }

  /** A watch has been added. */
  added({ wantsHeartbeat }: LogReader): void {
    if (wantsHeartbeat && this.#wanted++ === 0) this.#schedule();
  }

  /** A watch has been removed. */
  removed({ wantsHeartbeat }: LogReader): void {
    if (!wantsHeartbeat || --this.#wanted > 0) return;
    this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** The API server was heard: caches above learn it at once, or their ages would add up. */
  heard(): void {
    if (this.#wanted === 0) return;
    const nowMs = monotonicNow(this.#clock);
    if (nowMs - this.#heardMs < HEARD_MS) return;
    this.#heardMs = nowMs;
    for (const reader of this.#readers) if (reader.wantsHeartbeat && reader.endsAtRelist) reader.heartbeat();
  }

  #schedule(): void {
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      for (const reader of this.#readers) if (reader.wantsHeartbeat) reader.heartbeat();
      if (this.#wanted > 0 && this.#timer === undefined) this.#schedule();
    }, this.#heartbeatMs);
  }
}
