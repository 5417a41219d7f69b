/**
 * When to give a watch up that gives no reason to.
 * @module
 */

import { NetworkError } from "../meta/status.ts";
import type { LinkedAbort } from "../util/abort.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { StallDetector } from "./stall.ts";
import { Watchdog } from "./watchdog.ts";

/** Ends a watch because a change was lost, and everything must be listed again. */
export class RelistDue extends Error {}

/** Ends a watch because the program stood still: its connection has probably died meanwhile. */
export class StoodStillError extends NetworkError {
  constructor(ms: number) {
    const seconds = Math.round(ms / 1_000);
    super(
      "DeadPeer",
      `the program stood still for ${seconds} s: the watch is opened again from where it was`,
    );
  }
}

/** Options of {@linkcode WatchGuard}. */
export interface WatchGuardOptions {
  /** When the server must have ended the watch, in the clock's milliseconds. */
  readonly deadlineMs: number;
  /** How long a watch on which bookmarks come may be silent, in milliseconds. */
  readonly bookmarkSilenceMs: number;
  /** Whether bookmarks are expected before the first one has come. */
  readonly expectsBookmarks: boolean;
}

/**
 * Ends a watch whose other end is dead: one that the server should have ended by its timeout, or on which nothing at all
 * comes for longer than bookmarks are apart. A connection that was cut half-open shows no other sign.
 */
export class WatchGuard {
  readonly #clock: Clock;
  readonly #link: LinkedAbort;
  readonly #bookmarkSilenceMs: number;
  readonly #deadline: TimerHandle;
  readonly #stall: StallDetector;
  #silence: Watchdog | undefined;
  #relist: TimerHandle;

  constructor(clock: Clock, link: LinkedAbort, options: WatchGuardOptions) {
    this.#clock = clock;
    this.#link = link;
    this.#bookmarkSilenceMs = options.bookmarkSilenceMs;
    this.#deadline = clock.setTimeout(
      () => this.#drop("the server did not end it by its timeout"),
      options.deadlineMs - monotonicNow(clock),
    );
    this.#stall = new StallDetector(clock, (ms) => link.abort(new StoodStillError(ms)));
    if (options.expectsBookmarks) this.bookmark();
  }

  /**
   * Something arrived.
   *
   * @returns Whether it may be taken in; not what was held back while the program stood still, which ends the watch.
   */
  feed(): boolean {
    this.#silence?.feed();
    return !this.#stall.look();
  }

  /** It was a bookmark, or one is sure to come: this server sends them, so they must go on coming. */
  bookmark(): void {
    this.#silence ??= new Watchdog(
      this.#clock,
      this.#bookmarkSilenceMs,
      () => this.#drop(`nothing came for ${this.#bookmarkSilenceMs} ms, no bookmark either`),
    );
  }

  /** Ends the watch at that time, to list again; `undefined` for never. */
  relistAt(dueMs: number | undefined): void {
    if (dueMs === undefined) return;
    this.#clock.clearTimeout(this.#relist);
    this.#relist = this.#clock.setTimeout(
      () => this.#link.abort(new RelistDue("a change was lost: list again")),
      Math.max(0, dueMs - monotonicNow(this.#clock)),
    );
  }

  /** The watch has ended. */
  stop(): void {
    this.#clock.clearTimeout(this.#deadline);
    this.#clock.clearTimeout(this.#relist);
    this.#silence?.stop();
    this.#stall.stop();
  }

  #drop(why: string): void {
    if (this.#stall.look()) return; // that is why
    this.#link.abort(new NetworkError("DeadPeer", `the watch is taken for dead: ${why}`));
  }
}
