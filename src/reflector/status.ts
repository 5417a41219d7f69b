/**
 * How a reflector is doing, as data.
 * @module
 */

/**
 * What a reflector is at.
 *
 * - `idle`: not started.
 * - `listing`: a list is under way.
 * - `streaming`: a watch sends the present objects; its end bookmark has not come.
 * - `watching`: the store follows the server.
 * - `backingOff`: something failed; the next try comes at `nextRetryTimeMs`.
 * - `stopped`: its signal was aborted.
 */
export type ReflectorPhase = "idle" | "listing" | "streaming" | "watching" | "backingOff" | "stopped";

/** What went wrong last. */
export interface ReflectorError {
  readonly message: string;
  /** The reason of a `Status` (`Forbidden`), of a network failure (`ConnectionRefused`), or an error's code. */
  readonly code: string;
  /** When, in milliseconds since the epoch. */
  readonly timeMs: number;
}

/**
 * How a reflector is doing: a snapshot; it does not change after it was handed out.
 *
 * @example
 * ```ts
 * import type { ReflectorStatus } from "@listwatch/cache";
 * function line(status: ReflectorStatus): string {
 *   return `${status.phase} at ${status.resourceVersion || "nothing yet"}, attempt ${status.attempt}`;
 * }
 * ```
 */
export interface ReflectorStatus {
  readonly phase: ReflectorPhase;
  /** The last resourceVersion seen; `""` before the first list. */
  readonly resourceVersion: string;
  /** When the last event of a watch arrived (bookmarks too). */
  readonly lastEventTimeMs?: number;
  /** When the last bookmark arrived. */
  readonly lastBookmarkTimeMs?: number;
  /** How many tries in a row have failed; 0 while all is well. */
  readonly attempt: number;
  /** When the next try comes, while backing off. */
  readonly nextRetryTimeMs?: number;
  /** What went wrong last, if anything ever did. */
  readonly lastError?: ReflectorError;
  /** How many objects were set aside since the start. */
  readonly quarantined: number;
  /** While a list, or a streamed one, is under way: how far it has come. */
  readonly progress?: {
    /** Items so far. */
    readonly items: number;
    /** Items to come, where the server says so. */
    readonly remaining?: number;
  };
}
