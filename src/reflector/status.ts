/** The status of a reflector. */

import { networkErrorOf } from "../meta/request.ts";
import { statusErrorOf } from "../meta/status.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import { CacheError, callGuarded, errorMessage } from "../util/errors.ts";
import type { StreamPauseBegin } from "./stream_trial.ts";
import type { ReflectorOutage } from "./outage.ts";

/**
 * What a reflector is at.
 *
 * - `idle`: not started.
 * - `resuming`: a snapshot is loaded, or its version is compared with the server's.
 * - `listing`: a list is in progress.
 * - `streaming`: a watch sends the present objects; its end bookmark has not come.
 * - `watching`: the store follows the server.
 * - `backingOff`: something failed; the next try comes at `nextRetryTimeMs`.
 * - `stopped`: its signal was aborted.
 *
 * @category Reflector
 */
export type ReflectorPhase =
  | "idle"
  | "resuming"
  | "listing"
  | "streaming"
  | "watching"
  | "backingOff"
  | "stopped";

/**
 * What went wrong last.
 *
 * @category Reflector
 */
export interface ReflectorError {
  readonly message: string;
  /**
   * The reason of a `Status` (`Forbidden`), of a network failure (`ConnectionRefused`), or an error's code.
   */
  readonly code: string;
  /** When, in milliseconds since the epoch. */
  readonly timeMs: number;
}

/**
 * Why lists take the place of streamed ones: those do not come to their end here. For an hour at first, and
 * twice as long each time (at most a day) that the one stream which is tried after that does not finish
 * either.
 *
 * @category Reflector
 */
export interface StreamPause {
  /**
   * `stalled`: a stream was open and did not come to its end. `unfinished`: three in a row, or thirty seconds
   * of them, were closed, broke off, were not answered or carried no events, and a list succeeded then.
   * `refused`: the server refused them for a minute - it was busy, away, or had not reached their version -,
   * and a list succeeded then.
   */
  readonly cause: "stalled" | "unfinished" | "refused";
  /** What ended the last stream. */
  readonly message: string;
  /** Since when, in milliseconds since the epoch. */
  readonly sinceTimeMs: number;
  /**
   * When a stream is tried again: with the first list that is due after that, in milliseconds since the
   * epoch.
   */
  readonly untilTimeMs: number;
}

/**
 * How a reflector is doing: a snapshot; it does not change after it was handed out.
 *
 * @category Informers
 */
export interface ReflectorStatus {
  readonly phase: ReflectorPhase;
  /** The resourceVersion at which the next watch begins: the last one reached; `""` before the first list. */
  readonly resourceVersion: string;
  /** When the last event of a watch arrived (bookmarks too). */
  readonly lastEventTimeMs?: number;
  /** When the last bookmark arrived. */
  readonly lastBookmarkTimeMs?: number;
  /**
   * The time of the last contact with the server: when the last bytes of a list, an event or a bookmark
   * arrived. A watch that it opens is none: it says nothing of how far the server is.
   */
  readonly lastContactTimeMs?: number;
  /**
   * How many milliseconds ago that was, when this status was taken; absent before the first contact. On a
   * quiet resource, contacts are bookmarks, which come, about once a minute: up to that, a lag is ordinary.
   *
   * Measured by both clocks, of which the larger answer counts: the monotonic one stops while a computer is
   * suspended, and the wall clock may be set back. Set forward, it makes the lag too large until the next
   * contact.
   */
  readonly lagMs?: number;
  /**
   * The server sends no bookmarks, as a watch has shown: a quiet resource has no contact. Absent while
   * bookmarks are expected.
   */
  readonly hasNoBookmarks?: true;
  /** How many tries in a row have failed; 0 while all is well. */
  readonly attempt: number;
  /** When the next try comes, while backing off. */
  readonly nextRetryTimeMs?: number;
  /** What went wrong last, if anything ever did. */
  readonly lastError?: ReflectorError;
  /**
   * Since when the server cannot be read, from the first request that failed until a watch is open; absent if
   * it can.
   */
  readonly outage?: ReflectorOutage;
  /** How many objects were quarantined since the start, and frames of a watch that could not be decoded. */
  readonly quarantined: number;
  /** Why lists take the place of streamed ones, while they do. */
  readonly streamPause?: StreamPause;
  /** While a list, or a streamed one, is in progress: how far it has come. */
  readonly progress?: {
    /** Items so far. */
    readonly items: number;
    /** Items to come, where the server says so. */
    readonly remaining?: number;
  };
}

/**
 * The last contacts with the server: a record that the loop and the store's writer keep, event by event, and
 * the status reads.
 */
export interface ContactTimes {
  /** By the wall clock; `undefined` before the first contact. */
  wallMs: number | undefined;
  monotonicMs: number;
  /** When the last event arrived, and the last bookmark, by the wall clock. */
  lastEventTimeMs: number | undefined;
  lastBookmarkTimeMs: number | undefined;
}

/** How many milliseconds ago a contact was: at least what one of the two clocks says (see watchdog.ts). */
export function ageMs(
  contact: { readonly wallMs: number; readonly monotonicMs: number },
  clock: Clock,
): number {
  const monotonicMs = monotonicNow(clock) - contact.monotonicMs;
  return Math.ceil(Math.max(monotonicMs, clock.now() - contact.wallMs));
}

/** Options of {@linkcode StatusKeeper}. */
export interface StatusKeeperOptions {
  /** The resourceVersion to report. */
  readonly resourceVersion: () => string;
  /** The outage to report. */
  readonly outage: () => ReflectorOutage | undefined;
  /** Whether the server is known to send no bookmarks. */
  readonly hasNoBookmarks: () => boolean;
  /** How many objects were quarantined. */
  readonly quarantined: () => number;
  /** Receives what a listener threw. */
  readonly onListenerError: (error: unknown) => void;
}

/** Keeps a reflector's status, and calls its listeners. */
export class StatusKeeper {
  readonly #clock: Clock;
  readonly #resourceVersion: () => string;
  readonly #outage: () => ReflectorOutage | undefined;
  readonly #hasNoBookmarks: () => boolean;
  readonly #quarantined: () => number;
  readonly #onListenerError: (error: unknown) => void;
  readonly #listeners = new Set<(status: ReflectorStatus) => void>();
  #phase: ReflectorPhase = "idle";
  /** How many tries in a row have failed. */
  attempt = 0;
  readonly contact: ContactTimes = {
    wallMs: undefined,
    monotonicMs: 0,
    lastEventTimeMs: undefined,
    lastBookmarkTimeMs: undefined,
  };
  #nextRetryTimeMs: number | undefined;
  #lastError: ReflectorError | undefined;
  #streamPause: StreamPause | undefined;
  #progress: ReflectorStatus["progress"];

  constructor(clock: Clock, options: StatusKeeperOptions) {
    this.#clock = clock;
    this.#resourceVersion = options.resourceVersion;
    this.#outage = options.outage;
    this.#hasNoBookmarks = options.hasNoBookmarks;
    this.#quarantined = options.quarantined;
    this.#onListenerError = options.onListenerError;
  }

  /** The status, now. */
  snapshot(): ReflectorStatus {
    const outage = this.#outage();
    const { wallMs, monotonicMs, lastEventTimeMs, lastBookmarkTimeMs } = this.contact;
    const contact = wallMs === undefined
      ? {}
      : { lastContactTimeMs: wallMs, lagMs: ageMs({ wallMs, monotonicMs }, this.#clock) };
    return {
      phase: this.#phase,
      resourceVersion: this.#resourceVersion(),
      attempt: this.attempt,
      quarantined: this.#quarantined(),
      ...(lastEventTimeMs === undefined ? {} : { lastEventTimeMs }),
      ...(lastBookmarkTimeMs === undefined ? {} : { lastBookmarkTimeMs }),
      ...contact,
      ...(this.#hasNoBookmarks() ? { hasNoBookmarks: true } : {}),
      ...(this.#nextRetryTimeMs === undefined ? {} : { nextRetryTimeMs: this.#nextRetryTimeMs }),
      ...(this.#lastError === undefined ? {} : { lastError: this.#lastError }),
      ...(this.#streamPause === undefined ? {} : { streamPause: this.#streamPause }),
      ...(outage === undefined ? {} : { outage }),
      ...(this.#progress === undefined ? {} : { progress: this.#progress }),
    };
  }

  /** The last contact was that of a snapshot, at this time of the wall clock. */
  restored(contactMs: number): void {
    const nowMs = this.#clock.now();
    const wallMs = Math.min(contactMs, nowMs); // the clock may have been set back
    this.contact.wallMs = wallMs;
    this.contact.monotonicMs = monotonicNow(this.#clock) - (nowMs - wallMs);
  }

  /** Adds a listener; the function returned takes it away. */
  listen(listener: (status: ReflectorStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Goes to a phase, or on within it. */
  enter(phase: ReflectorPhase, { progress }: Pick<ReflectorStatus, "progress"> = {}): void {
    this.#phase = phase;
    this.#progress = progress;
    this.#nextRetryTimeMs = undefined;
    this.#tell();
  }

  /** Waits until the next try. */
  backOff(delayMs: number): void {
    this.attempt++;
    this.#phase = "backingOff";
    this.#progress = undefined;
    this.#nextRetryTimeMs = this.#clock.now() + delayMs;
    this.#tell();
  }

  /** Something went wrong. */
  fail(error: unknown): void {
    this.#lastError = { message: errorMessage(error), code: codeOf(error), timeMs: this.#clock.now() };
  }

  /** Lists take the place of streams. */
  streamsPaused({ cause, message, ms }: StreamPauseBegin): void {
    const sinceTimeMs = this.#clock.now();
    this.#streamPause = { cause, message, sinceTimeMs, untilTimeMs: sinceTimeMs + ms };
  }

  /** A stream came to its end: they are as good as lists. */
  streamFinished(): void {
    this.#streamPause = undefined;
  }

  #tell(): void {
    if (this.#listeners.size === 0) return;
    const status = this.snapshot();
    for (const listener of this.#listeners) {
      callGuarded(() => listener(status), this.#onListenerError);
    }
  }
}

/** What went wrong in one word: a Status's reason, a network failure, or an error's code. */
export function codeOf(error: unknown): string {
  const status = statusErrorOf(error);
  if (status !== undefined) return status.reason || String(status.httpStatus);
  const network = networkErrorOf(error);
  if (network !== undefined) return network.reason;
  return error instanceof CacheError ? error.code : "Other";
}
