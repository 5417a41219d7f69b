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
 *          server is away       +---+ ----------------------------------+
 *                                     expired, broken, refused
 * ```
 *
 * A cycle lists (or streams the present objects) once and then watches for as long as it can. Where the store
 * has the content of a snapshot, it begins with `probe` instead, which leads to `watch`; or to `stream` or
 * `list`, if the server has not reached the snapshot's version.
 *
 * An {@linkcode Outcome} ends a step and leads to the next (`transition`); an {@linkcode Incident} happens
 * within one ({@linkcode noted}). Only the position moves without either, in place: the writer
 * (store_writer.ts) moves it with each event, after its write. The loop (reflector.ts) does the steps and the
 * {@linkcode Effect}s.
 *
 * @module
 */

import type { Moment } from "../util/clock.ts";
import {
  type Failures,
  NEW_TRIAL,
  NO_FAILURES,
  outageLine,
  recoveryLine,
  type StreamTrial,
} from "./failures.ts";
import {
  afterLoss,
  type BookmarkRhythm,
  listedAt,
  type Losses,
  NO_LOSSES,
  NO_POSITION,
  NO_RHYTHM,
  noteContact,
  type Position,
  provenAt,
  watchingFrom,
} from "./position.ts";
import type { Probe, ReflectorSettings, RestoredContent } from "./reflector_options.ts";
import type { ReflectorPhase, ReflectorStatus, StreamPause } from "./status.ts";

/** What a reflector does next. */
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

type DecidingSettings = Pick<
  ReflectorSettings,
  "name" | "useWatchList" | "neverGoesBack" | "bookmarkSilenceMs" | "maxInternalErrorRetryMs"
>;

/** All that a reflector knows. */
export interface ReflectorState {
  readonly settings: DecidingSettings;
  readonly position: Position;
  readonly rhythm: BookmarkRhythm;
  readonly losses: Losses;
  readonly failures: Failures;
  readonly trial: StreamTrial;
  readonly streamPause: StreamPause | undefined;
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
  /** How many watches from its version failed for a reason that does not concern the version. */
  readonly failedWatches: number;
  /** How many requests for the server's version failed in a row, other than as there was no connection. */
  readonly failedProbes: number;
}

/** What came of a step; `received`: when its last bytes arrived, where its source counts them. */
export type Outcome =
  | { readonly of: "start" }
  | { readonly of: "probe" } & Probe
  | { readonly of: "probe"; readonly error: unknown }
  /** The end bookmark came; its resourceVersion is the list's, which was written. */
  | { readonly of: "stream"; readonly resourceVersion: string; readonly received?: Moment | undefined }
  /** The stream was refused, or stalled, or carried an error; after so long. */
  | { readonly of: "stream"; readonly error: unknown; readonly lastedMs: number }
  /** The stream was closed before its end bookmark, in these words; its connection broke for this cause. */
  | { readonly of: "stream"; readonly closed: string; readonly cause?: unknown; readonly lastedMs: number }
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
  | { readonly of: "watch"; readonly refused: unknown }
  /** The watch was open for so long, and is not any more; `ended` if there was a reason. */
  | { readonly of: "watch"; readonly ended: unknown; readonly lastedMs: number };

/** What happens within a step, or beside it. */
export type Incident =
  /** The content of a snapshot was written. */
  | { readonly of: "restored" } & Omit<RestoredContent, "items" | "clusterUid">
  /** A phase begins, or continues. */
  | { readonly of: "enters"; readonly phase: ReflectorPhase; readonly progress?: ReflectorStatus["progress"] }
  /** A watch is requested, on no stream that is open. */
  | { readonly of: "rewatches" }
  /** A watch is followed from now on; `isFollowing`: after a streamed list, on the same connection. */
  | { readonly of: "opened"; readonly isFollowing: boolean }
  /** Another request has proven that nothing is missing up to a version. */
  | { readonly of: "proven"; readonly through: string; readonly ageMs: number; readonly byState: boolean }
  /** The server has confirmed the content of a snapshot; `isComplete`: it has reached its version. */
  | { readonly of: "confirmed"; readonly isComplete: boolean; readonly received?: Moment | undefined }
  /** A change was lost; `isIncomplete`: objects are known to be missing. */
  | { readonly of: "lost"; readonly isIncomplete: boolean }
  /** The next try comes after so long, if it is known. */
  | { readonly of: "waits"; readonly delayMs: number | undefined };

/** What the loop does besides the step. */
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
  /** The listeners receive the status. */
  | { readonly do: "notify" }
  /** Metrics of a watch that has ended. */
  | {
    readonly do: "measureWatch";
    readonly lastedMs: number;
    readonly events: number;
    readonly isVeryShort: boolean;
  }
  /** A watch was well: what fails from now on is news. */
  | { readonly do: "forgetWarnings" }
  /** The watch that is open ends at this time of the clock. */
  | { readonly do: "relistAt"; readonly dueMs: number };

/** The new state, and what to do about it. */
export interface Change {
  readonly state: ReflectorState;
  readonly effects: readonly Effect[];
}

/** The same, and the next step. */
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
    streamPause: undefined,
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

const NOTIFY: Effect = { do: "notify" };

/** The state after what happens within a step. */
export function noted(state: ReflectorState, incident: Incident, now: Moment): Change {
  switch (incident.of) {
    case "restored":
      return restored(state, incident, now);
    case "enters": {
      const { phase, progress } = incident;
      return change({ ...state, phase, progress, nextRetryTimeMs: undefined }, NOTIFY);
    }
    case "rewatches": {
      const { failures, watchesSinceList } = state;
      return change({
        ...state,
        failures: { ...failures, lastEnd: undefined },
        watchesSinceList: watchesSinceList + 1,
      });
    }
    case "opened":
      return opened(state, incident.isFollowing, now);
    case "proven": { // by another request
      const { position: before, settings } = state;
      const { through, ageMs, byState } = incident;
      const position = provenAt(before, through, { neverGoesBack: settings.neverGoesBack, byState });
      noteContact(position, now, ageMs);
      return change({ ...state, position });
    }
    case "confirmed": {
      if (state.position.isConfirmed) return change(state);
      const { isComplete, received = now } = incident;
      const position = { ...state.position, isConfirmed: true, contact: received };
      const rhythm = isComplete ? { ...state.rhythm, bookmarks: 0 } : state.rhythm;
      return change({ ...state, position, rhythm, resumption: undefined });
    }
    case "lost": {
      const losses = afterLoss(state.losses, now.monotonicMs, incident.isIncomplete);
      const { relistDueMs: dueMs } = losses;
      const isNew = dueMs !== undefined && dueMs !== state.losses.relistDueMs;
      return change({ ...state, losses }, isNew && { do: "relistAt", dueMs });
    }
    case "waits":
      return waiting(state, incident.delayMs, now);
  }
}

function change(state: ReflectorState, ...effects: (Effect | false | undefined)[]): Change {
  return { state, effects: effects.filter((effect) => effect !== undefined && effect !== false) };
}

/** A watch from the snapshot's version would miss changes if it needs a list. */
function restored(
  state: ReflectorState,
  { resourceVersion, watchedVersion = "", savedAtMs, needsList }: Extract<Incident, { of: "restored" }>,
  now: Moment,
): Change {
  const wallMs = Math.min(savedAtMs, now.wallMs); // the clock may have been set back
  const contact = { wallMs, monotonicMs: now.monotonicMs - (now.wallMs - wallMs) };
  const next = {
    ...state,
    position: { ...listedAt(state.position, resourceVersion, contact), watchedVersion, isConfirmed: false },
    // If the watch to come brings no bookmark, the server may not have reached the snapshot's version.
    rhythm: { ...state.rhythm, bookmarks: 2 },
  };
  return change(
    needsList
      ? { ...next, exactResourceVersion: resourceVersion }
      : { ...next, resumption: { failedWatches: 0, failedProbes: 0 } },
  );
}

function opened(state: ReflectorState, isFollowing: boolean, now: Moment): Change {
  const { failures, watchesSinceList } = state;
  const healthySinceMs = failures.healthySinceMs ?? now.monotonicMs;
  const next: ReflectorState = {
    ...state,
    position: watchingFrom(state.position, isFollowing),
    failures: { ...failures, healthySinceMs, failure: undefined, attempt: 0, outage: undefined },
    watchesSinceList: watchesSinceList + (isFollowing ? 1 : 0),
    phase: "watching",
    progress: undefined,
    nextRetryTimeMs: undefined,
  };
  return change(next, outageEffect(recoveryLine(failures, now)), NOTIFY);
}

function waiting(state: ReflectorState, delayMs: number | undefined, { wallMs }: Moment): Change {
  const { failures, line } = outageLine(state.failures, delayMs);
  const known = { ...state, failures };
  if (delayMs === undefined) return change(known, outageEffect(line));
  const next: ReflectorState = {
    ...known,
    failures: { ...failures, attempt: failures.attempt + 1 },
    phase: "backingOff",
    progress: undefined,
    nextRetryTimeMs: wallMs + delayMs,
  };
  return change(next, outageEffect(line), NOTIFY);
}

function outageEffect(line: string | undefined): Effect | undefined {
  return line === undefined ? undefined : { do: "log", level: "warn", text: line, isOutage: true };
}
