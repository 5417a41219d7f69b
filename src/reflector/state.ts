/**
 * The reflector's state: all that a reflector knows is one record, {@linkcode ReflectorState}, and
 * `transition` (transition.ts) makes the next record, the next step and the effects of what happened.
 *
 * ```
 *            +-------------------- start <------------------------------+
 *            | streams?                                                 |
 *      yes   v      refused, stalled, never ends    no                  |
 *         stream -------------------------------> list                  |
 *            | end bookmark                        | listed             | the cycle is over:
 *            +----------------> watch <------------+                    | back off, then start
 *                               |   ^                                   |
 *          ended cleanly, 429,  |   |                                   |
 *          away, or Retry-After +---+ ----------------------------------+
 *                                     expired, broken, refused
 * ```
 *
 * A cycle lists (or streams the present objects) once and then watches for as long as it can. Where the store
 * has the content of a snapshot, it begins with `probe` instead, which leads to `watch`; or to `stream` or
 * `list`, if the server has not reached the snapshot's version.
 *
 * An {@linkcode Outcome} ends a step and leads to the next (`transition`); functions of this file make the
 * state after what happens within one. Only the position moves without either, in place: the writer
 * (store_writer.ts) moves it with each event, after its write. The loop (reflector.ts) does the steps and the
 * {@linkcode Effect}s.
 */

import { ageMs, type Clock, type Moment } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { defined } from "../util/json.ts";
import {
  type Failures,
  isPermanent,
  NEW_TRIAL,
  NO_FAILURES,
  outageLine,
  recoveryLine,
  type ReflectorError,
  type ReflectorOutage,
  type StreamPause,
  type StreamTrial,
} from "./failures.ts";
import { type BookmarkRhythm, type Losses, NO_LOSSES, NO_RHYTHM } from "./relists.ts";
import { NO_POSITION, noteContact, type Position, provenAt, watchingFrom } from "./store_writer.ts";

/**
 * The phase of a reflector.
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

/**
 * A reflector's state at one time: it does not change after it was handed out.
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
  /**
   * When the last bytes of a list, an event or a bookmark arrived; earlier by as much as a cache that has
   * sent them says that it is old. A watch that is opened is no contact.
   */
  readonly lastContactTimeMs?: number;
  /**
   * How many milliseconds before this status the last contact was; absent before the first contact. On a
   * quiet resource, bookmarks come about once a minute: up to that, a lag is ordinary. The larger age by the
   * monotonic and the wall clock counts.
   */
  readonly lagMs?: number;
  /** The server sends no bookmarks, as a watch has shown: a quiet resource has no contact. */
  readonly hasNoBookmarks?: true;
  /** How many tries in a row have failed; 0 while all is well. */
  readonly attempt: number;
  /** When the next try comes, while backing off. */
  readonly nextRetryTimeMs?: number;
  /** The last error, if there ever was one. */
  readonly lastError?: ReflectorError;
  /** While the server cannot be read: from the first request that failed until a watch is open. */
  readonly outage?: ReflectorOutage;
  /** How many objects were quarantined since the start, and frames of a watch that could not be decoded. */
  readonly quarantined: number;
  /** The status of each namespace, by name, if the source has a set of them. */
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

/** The next step of a reflector. */
export type Step =
  /** Ask for the server's version, before the watch from a snapshot's. */
  | { readonly do: "probe" }
  /** Ask a watch for the present objects. */
  | { readonly do: "stream" }
  /** List; `again` once more, after the first try of this cycle found its resourceVersion unavailable. */
  | { readonly do: "list"; readonly again?: ListAttempt }
  /** Watch from the last resourceVersion, on the stream that is open if there is one. */
  | { readonly do: "watch" }
  /** Wait, then continue; `error` is reported as what ended the cycle. */
  | { readonly do: "backOff"; readonly then: "stream" | "list" | "watch" | "start"; readonly error?: Error };

/** The first list of a cycle, which a second one repeats without its resourceVersion. */
export interface ListAttempt {
  readonly resourceVersion: string;
  /** The page size; 0 for none. */
  readonly limit: number;
  /** Says that the version is a floor, where it would be taken for more than that. */
  readonly resourceVersionMatch?: "NotOlderThan";
}

/** The reflector's settings on which transitions depend. */
export interface DecidingSettings {
  readonly name: string;
  readonly useWatchList: boolean;
  readonly neverGoesBack: boolean;
  readonly bookmarkSilenceMs: number;
  readonly maxInternalErrorRetryMs: number;
  /** Handed in with a snapshot, so that a program without one is bundled without it. */
  readonly resuming?: Resuming | undefined;
}

/** The transitions of a resuming reflector, until the server has confirmed a snapshot's content. */
export interface Resuming {
  /** The content was written. */
  restored(
    state: ReflectorState,
    content: Omit<RestoredContent, "items" | "clusterUid">,
    now: Moment,
  ): ReflectorState;
  /** The version of the server was requested. */
  afterProbe(state: ReflectorState, outcome: Extract<Outcome, { of: "probe" }>, nowMs: number): Transition;
  /** A watch from the snapshot's version is over. */
  afterWatch(state: ReflectorState, end: WatchEnd, nowMs: number): Transition;
}

/** All that a reflector knows. */
export interface ReflectorState {
  readonly settings: DecidingSettings;
  readonly position: Position;
  readonly rhythm: BookmarkRhythm;
  readonly losses: Losses;
  readonly failures: Failures;
  readonly trial: StreamTrial;
  /** The server no longer has the position, or not yet: ask for the most recent data. */
  readonly isResourceVersionUnavailable: boolean;
  /** The server pages even where its cache could answer: it has none, so keep paging. */
  readonly paginatedResult: boolean;
  /** The floor that a list in pages was given exactly; or one from which a watch cannot continue. */
  readonly exactResourceVersion: string | undefined;
  /** The store has the content of a snapshot, from which it is watched, and not listed. */
  readonly resumption: Resumption | undefined;
  readonly watchesSinceList: number;
  readonly phase: ReflectorPhase;
  readonly progress: ReflectorStatus["progress"];
  readonly nextRetryTimeMs: number | undefined;
}

interface Resumption {
  /** How many watches from the snapshot's version failed for a reason that does not concern the version. */
  readonly failedWatches: number;
  /** How many requests for the server's version failed in a row, although there was a connection. */
  readonly failedProbes: number;
}

/** How a watch ended: it was not opened, a change was lost on it, or it was open, and is not any more. */
export type WatchEnd =
  | { readonly refused: unknown }
  | { readonly relist: true }
  | { readonly isShort: boolean }
  /** The watch failed; `retries`: with an internal error after which it is opened again. */
  | { readonly error: unknown; readonly retries: boolean };

export interface RestoredContent {
  /** The objects as the store holds them. */
  readonly items: readonly unknown[];
  readonly resourceVersion: string;
  /** The version at which the watch begins, if it is an earlier one: see `SnapshotChange.watchedVersion`. */
  readonly watchedVersion?: string | undefined;
  /** The time of the last contact that it reflects, by the wall clock. */
  readonly savedAtMs: number;
  /** Whether a watch from its version would miss changes. */
  readonly needsList: boolean;
  /** The identity of the cluster, as `ListerWatcher.clusterUid`; `undefined` if it is not known. */
  readonly clusterUid: string | undefined;
}

/** The server's answer about a snapshot. */
export interface Probe {
  /** The server's present version; `undefined` if the source has no `metadata` to read it with. */
  readonly serverVersion: string | undefined;
  /** Whether the server's cluster is another than that of the snapshot. */
  readonly isOtherCluster: boolean;
}

/** The outcome of a step; `received`: when its last bytes arrived, if its source counts them. */
export type Outcome =
  | { readonly of: "start" }
  | { readonly of: "probe" } & Probe
  | { readonly of: "probe"; readonly error: unknown }
  /** The end bookmark came; its resourceVersion is the list's, which was written. */
  | { readonly of: "stream"; readonly resourceVersion: string; readonly received?: Moment | undefined }
  /** The stream was refused, or stalled, or carried an error; after so long. */
  | { readonly of: "stream"; readonly error: unknown; readonly lastedMs: number }
  /** The stream was closed before its end bookmark; if its connection broke, for this cause. */
  | { readonly of: "stream"; readonly cause: unknown; readonly lastedMs: number }
  /** The list was written. */
  | {
    readonly of: "list";
    readonly resourceVersion: string;
    readonly received?: Moment | undefined;
    readonly paginated: boolean;
    readonly attempt: ListAttempt;
  }
  | { readonly of: "list"; readonly error: unknown; readonly attempt: ListAttempt; readonly again: boolean }
  /** The server did not open the watch. */
  | { readonly of: "watch"; readonly error: unknown }
  /** The watch was open for so long, and is not any more; `ended` if there was a reason. */
  | { readonly of: "watch"; readonly ended: unknown; readonly lastedMs: number };

/** What the loop does besides the next step. */
export type Effect =
  /** A line in the log; `once`: a warning only the first time since a watch was well. */
  | {
    readonly do: "log";
    readonly level: "debug" | "warn";
    readonly text: string;
    readonly isOutage?: true;
    readonly once?: true;
  }
  /** The watch error handler receives it. */
  | { readonly do: "report"; readonly error: Error }
  /** Metrics of a watch that has ended. */
  | {
    readonly do: "measureWatch";
    readonly lastedMs: number;
    readonly events: number;
    readonly isVeryShort: boolean;
  }
  /** A watch was well: what fails from now on is news. */
  | { readonly do: "forgetWarnings" };

/** The new state, and what to do about it. */
export interface Change {
  readonly state: ReflectorState;
  readonly effects: readonly Effect[];
}

/** A change of the state, and the next step. */
export interface Transition extends Change {
  readonly step: Step;
}

export function initialState(settings: DecidingSettings): ReflectorState {
  return {
    settings,
    position: { ...NO_POSITION },
    rhythm: NO_RHYTHM,
    losses: NO_LOSSES,
    failures: NO_FAILURES,
    trial: NEW_TRIAL,
    isResourceVersionUnavailable: false,
    paginatedResult: false,
    exactResourceVersion: undefined,
    resumption: undefined,
    watchesSinceList: 0,
    phase: "idle",
    progress: undefined,
    nextRetryTimeMs: undefined,
  };
}

/** A phase begins, or continues. */
export function entered(
  state: ReflectorState,
  phase: ReflectorPhase,
  progress?: ReflectorStatus["progress"],
): ReflectorState {
  return { ...state, phase, progress, nextRetryTimeMs: undefined };
}

/** A watch is requested, on no stream that is open. */
export function rewatched(state: ReflectorState): ReflectorState {
  const { failures, watchesSinceList } = state;
  return {
    ...state,
    failures: { ...failures, lastEnd: undefined },
    watchesSinceList: watchesSinceList + 1,
  };
}

/** A watch is followed from now on; `isFollowing`: after a streamed list, on the same connection. */
export function opened(state: ReflectorState, isFollowing: boolean, now: Moment): Change {
  const { failures, watchesSinceList } = state;
  const healthySinceMs = failures.healthySinceMs ?? now.monotonicMs;
  const next: ReflectorState = {
    ...entered(state, "watching"),
    position: watchingFrom(state.position, isFollowing),
    failures: { ...failures, healthySinceMs, failure: undefined, attempt: 0, outage: undefined },
    watchesSinceList: watchesSinceList + (isFollowing ? 1 : 0),
  };
  return { state: next, effects: outageEffects(recoveryLine(failures, now)) };
}

/** Another request has proven that nothing is missing up to a version. */
export function proven(
  state: ReflectorState,
  { through, ageMs, byState }: {
    readonly through: string;
    readonly ageMs: number;
    readonly byState: boolean;
  },
  now: Moment,
): ReflectorState {
  const { neverGoesBack } = state.settings;
  const position = provenAt(state.position, through, { neverGoesBack, byState });
  noteContact(position, now, ageMs);
  return { ...state, position };
}

/** The server has confirmed the content of a snapshot; `isComplete`: it has reached its version. */
export function confirmed(state: ReflectorState, isComplete: boolean, contact: Moment): ReflectorState {
  if (state.position.isConfirmed) return state;
  const position = { ...state.position, isConfirmed: true, contact };
  const rhythm = isComplete ? { ...state.rhythm, bookmarks: 0 } : state.rhythm;
  return { ...state, position, rhythm, resumption: undefined };
}

/** The next try comes after so long, if it is known. */
export function waiting(state: ReflectorState, delayMs: number | undefined, { wallMs }: Moment): Change {
  const { failures, line } = outageLine(state.failures, delayMs);
  const effects = outageEffects(line);
  if (delayMs === undefined) return { state: { ...state, failures }, effects };
  const next: ReflectorState = {
    ...entered(state, "backingOff"),
    failures: { ...failures, attempt: failures.attempt + 1 },
    nextRetryTimeMs: wallMs + delayMs,
  };
  return { state: next, effects };
}

function outageEffects(line: string | undefined): readonly Effect[] {
  return line === undefined ? [] : [{ do: "log", level: "warn", text: line, isOutage: true }];
}

/** The status of what does not run yet. */
export const IDLE: ReflectorStatus = { phase: "idle", resourceVersion: "", attempt: 0, quarantined: 0 };

/** The status that a state has at present. */
export function statusOf(state: ReflectorState, quarantined: number, clock: Clock): ReflectorStatus {
  const { phase, position, failures, rhythm, trial, nextRetryTimeMs, progress } = state;
  const { resourceVersion, contact, lastEventTimeMs, lastBookmarkTimeMs } = position;
  const { attempt, lastError, outage } = failures;
  return defined<ReflectorStatus>({
    phase,
    resourceVersion,
    attempt,
    quarantined,
    lastEventTimeMs,
    lastBookmarkTimeMs,
    lastContactTimeMs: contact?.wallMs,
    lagMs: contact && ageMs(contact, clock),
    hasNoBookmarks: rhythm.isExpected ? undefined : true,
    nextRetryTimeMs,
    lastError,
    streamPause: trial.pause,
    outage: outage && defined<ReflectorOutage>({
      sinceTimeMs: outage.sinceTimeMs,
      failedTries: outage.failedTries,
      permanent: isPermanent(outage.last) ? errorMessage(outage.last) : undefined,
    }),
    progress,
  });
}
