/** What a reflector says of itself: the types of its status. */

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
 */
export type ReflectorPhase =
  | "idle"
  | "resuming"
  | "listing"
  | "streaming"
  | "watching"
  | "backingOff"
  | "stopped";

/** What went wrong last. */
export interface ReflectorError {
  readonly message: string;
  /**
   * The reason of a `Status` (`Forbidden`) or a network failure (`ConnectionRefused`), or an error's code.
   */
  readonly code: string;
  /** When, in milliseconds since the epoch. */
  readonly timeMs: number;
}

/**
 * Why lists take the place of streamed ones: for an hour at first, and twice as long, at most a day, each
 * time that the one stream which is tried after that does not finish either.
 */
export interface StreamPause {
  /**
   * `stalled`: a stream was open and did not come to its end. `unfinished`: three in a row, or thirty seconds
   * of them, were closed, broke off, were not answered or carried no events, and a list succeeded then.
   * `refused`: the server refused them for a minute - it was busy, away, or had not reached their version -,
   * and a list succeeded then.
   */
  readonly cause: "stalled" | "unfinished" | "refused";
  readonly message: string;
  /** Since when, in milliseconds since the epoch. */
  readonly sinceTimeMs: number;
  /** After this time the next list that is due is a stream again; in milliseconds since the epoch. */
  readonly untilTimeMs: number;
}

/** A time in which a server cannot be read. */
export interface ReflectorOutage {
  /** When the first request failed, in milliseconds since the epoch. */
  readonly sinceTimeMs: number;
  /** How many have failed since. */
  readonly failedTries: number;
  /**
   * Why waiting will not help, if the last try has shown that: the request is wrong (400), the server does
   * not serve the resource or the version (404, 405), or its certificate is not trusted. It is tried again
   * all the same: the definition of a resource may be installed later.
   */
  readonly permanent?: string;
}

/** A request that failed. */
export interface FailedTry {
  /** What it failed with: a `StatusError` or a `NetworkError`, or an error that has one among its causes. */
  readonly error: Error;
  /** How many have failed in this outage: this one and those before it. */
  readonly failedTries: number;
}

/**
 * How a reflector is doing: a snapshot; it does not change after it was handed out.
 *
 * @category Informers
 */
export interface ReflectorStatus {
  readonly phase: ReflectorPhase;
  /** The resourceVersion of the content, the last one reached; `""` before the first list. */
  readonly resourceVersion: string;
  /** When the last event of a watch arrived (bookmarks too). */
  readonly lastEventTimeMs?: number;
  readonly lastBookmarkTimeMs?: number;
  /** When the last bytes of a list, an event or a bookmark arrived. A watch that is opened is no contact. */
  readonly lastContactTimeMs?: number;
  /**
   * How many milliseconds ago that was, when this status was taken; absent before the first contact. On a
   * quiet resource, bookmarks come about once a minute: up to that, a lag is ordinary. Of the monotonic and
   * the wall clock, the larger answer counts.
   */
  readonly lagMs?: number;
  /** The server sends no bookmarks, as a watch has shown: a quiet resource has no contact. */
  readonly hasNoBookmarks?: true;
  /** How many tries in a row have failed; 0 while all is well. */
  readonly attempt: number;
  /** When the next try comes, while backing off. */
  readonly nextRetryTimeMs?: number;
  /** What went wrong last, if anything ever did. */
  readonly lastError?: ReflectorError;
  /** While the server cannot be read: from the first request that failed until a watch is open. */
  readonly outage?: ReflectorOutage;
  /** How many objects were quarantined since the start, and frames of a watch that could not be decoded. */
  readonly quarantined: number;
  /** Of a source with a set of namespaces: how each of them is, by name. */
  readonly namespaces?: Readonly<Record<string, ReflectorStatus>>;
  /** Why lists take the place of streamed ones, while they do. */
  readonly streamPause?: StreamPause;
  /** While a list, or a streamed one, is in progress: how far it has come. */
  readonly progress?: {
    readonly items: number;
    /** Items to come, where the server says so. */
    readonly remaining?: number;
  };
}
