/** The options of a reflector, and what an informer hands it besides. */

import { deletionHandlingMetaNamespaceKey, type KeyFunc } from "../meta/object.ts";
import type { Quarantined } from "../meta/list_watch.ts";
import type { GroupVersionKind } from "../meta/resource.ts";
import type { HoldText } from "../text/object_text_reader.ts";
import { Backoff, REFLECTOR_BACKOFF } from "../util/backoff.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { defined } from "../util/json.ts";
import { guardedLogger, type Logger } from "../util/logger.ts";
import { guardedMetrics, type Metrics } from "../util/metrics.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { RetryBackoff } from "./failures.ts";
import { Quarantine } from "./quarantine.ts";
import type { Probe, RestoredContent, Resuming } from "./state.ts";

/**
 * Receives the error of each failed try: a list, and a watch or streamed list that the server refused or that
 * did not reach it. As in client-go, a watch that is answered 429 is repeated silently, and so is a
 * resourceVersion that expired during a watch.
 */
export type WatchErrorHandler = (error: Error) => void;

/** Options of {@linkcode Reflector}. All may be left out. */
export interface ReflectorOptions {
  /** The name in log lines and errors; the source's description by default. */
  readonly name?: string;
  /** How often the store's `resync` is called while watching, in milliseconds; 0, the default, is never. */
  readonly resyncPeriodMs?: number;
  /** Asked when a resync is due; `false` skips it. Always yes by default, and where it throws. */
  readonly shouldResync?: () => boolean;
  /**
   * The least time after which the server ends a watch, in milliseconds; each watch draws a whole number of
   * seconds between this and twice this. 300,000 by default; less is taken as that.
   */
  readonly minWatchTimeoutMs?: number;
  /** The page size of lists; 500 by default where paging helps. */
  readonly watchListPageSize?: number;
  /**
   * Whether to ask a watch for the present objects before listing; true by default. Falls back to a list by
   * itself, and for an hour or longer where such streams do not come to their end ({@linkcode
   * ReflectorStatus.streamPause}).
   */
  readonly useWatchList?: boolean;
  /**
   * How long a streamed list may be silent before a list takes its place, in milliseconds; 10,000 by default.
   */
  readonly watchListSilenceMs?: number;
  /** How long the end of a streamed list may come after its last initial event, in ms; 60,000 by default. */
  readonly watchListEndMs?: number;
  /** How long the server may take to begin to answer a watch, in milliseconds; 30,000 by default. */
  readonly openTimeoutMs?: number;
  /**
   * How long nothing of a list's page may come before it is given up, in milliseconds; 90,000 by default.
   * Bytes and items that arrive are progress, but no page may take longer than ten times this; one from a
   * source that reports neither (`ListWatchContext.onBytes`, `ListWatchContext.intake`), no longer than this.
   */
  readonly listTimeoutMs?: number;
  /**
   * How long a watch may be silent before it is taken for dead; 90,000 by default. Servers send about one
   * bookmark a minute. A server that sends none is watched again once; after that its silence means nothing,
   * until a bookmark comes. When bookmarks stop, as after a restore from a backup, everything is listed once.
   */
  readonly bookmarkSilenceMs?: number;
  /** How long ERROR events of code 500 lead to a watch, not to a list, in milliseconds; 0 by default. */
  readonly maxInternalErrorRetryMs?: number;
  /** The type that every object must have; others are quarantined. Not checked by default. */
  readonly expectedKind?: GroupVersionKind;
  /** Keys of a streamed list; `deletionHandlingMetaNamespaceKey` by default. */
  readonly keyFunc?: KeyFunc;
  /**
   * Receives the error of each failed try, at once. Errors that it throws are logged. The log has one warning
   * when the server is lost and one when it is back, however many tries lie between.
   */
  readonly watchErrorHandler?: WatchErrorHandler;
  /**
   * Receives each quarantined object, and a report of each frame of a watch that could not be decoded (its
   * `path` is `frame`; no more is known of it, so everything is listed again); logs a warning by default, of
   * a frame one for each cause until a watch is well again. Errors that it throws are logged.
   */
  readonly onQuarantined?: (quarantined: Quarantined) => void;
  /**
   * Delays after failures. By default 0.8 s doubling to 15 s, each stretched by up to itself, so that none
   * exceeds 30 s (unless the server asks for more); from the start again after 2 minutes of health.
   */
  readonly backoff?: RetryBackoff;
  /** Receives measurements; there are none by default. */
  readonly metrics?: Metrics;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly logger?: Logger;
}

/** @throws {RangeError} A number is negative, `NaN`, or infinite where that has no meaning. */
export function checkReflectorOptions(name: string, options: ReflectorOptions): void {
  const { resyncPeriodMs, minWatchTimeoutMs, watchListPageSize } = options;
  const { watchListSilenceMs, watchListEndMs, openTimeoutMs, listTimeoutMs, bookmarkSilenceMs } = options;
  const what = `reflect ${name}`;
  requireNumbers(what, { resyncPeriodMs, minWatchTimeoutMs, watchListPageSize });
  requireNumbers(
    what,
    { watchListSilenceMs, watchListEndMs, openTimeoutMs, listTimeoutMs, bookmarkSilenceMs },
    { mayBeInfinite: true },
  );
  requireNumbers(what, { maxInternalErrorRetryMs: options.maxInternalErrorRetryMs }, {
    least: -Infinity,
    mayBeInfinite: true,
  });
}

/** A snapshot, to a reflector. */
export interface ReflectedSnapshot {
  readonly resuming: Resuming;
  /** Called before the first request; `undefined` if there is none. Does not reject. */
  load(signal: AbortSignal): Promise<RestoredContent | undefined>;
  /** Asks the server whether a watch from the snapshot's version is possible. */
  probe(signal: AbortSignal): Promise<Probe>;
}

/** The parts of a pipeline that a reflector shares; no option of the user. */
export interface ReflectorWiring {
  /** The sink of the whole pipeline; the reflector makes its own by default. */
  readonly quarantine?: Quarantine;
  /**
   * The objects in the store: a quarantined object of a list leaves the state before it, instead of a delete.
   * Not needed where the store does that itself (`replaceKeeping`).
   */
  readonly knownObjects?: { getByKey(key: string): unknown };
  /**
   * Whether an event of an older resourceVersion leaves the position, as it may have been sent again. For a
   * store that skips such events. `false` by default: every event is followed, as client-go does.
   */
  readonly neverGoesBack?: boolean;
  /**
   * Receives each object of a list as soon as it arrives; its result, in the form in which the store holds
   * objects, takes the item's place. Must not throw.
   */
  readonly intake?: (object: unknown) => unknown;
  /** The content that takes the place of the first list, if there is one. */
  readonly snapshot?: ReflectedSnapshot;
  /** Handed to the source: how the store holds objects of which the source has the text. */
  readonly holdText?: HoldText;
}

type Given = ReflectorOptions & ReflectorWiring;
/** Settings that may be left out, and have no default. */
type Optional =
  | keyof Pick<
    ReflectorOptions,
    | "expectedKind"
    | "metrics"
    | "onQuarantined"
    | "watchErrorHandler"
  >
  | keyof Pick<ReflectorWiring, "holdText" | "intake" | "knownObjects" | "snapshot">;

const DEFAULTS: Required<Omit<Given, Optional | "backoff" | "logger" | "name" | "quarantine">> = {
  resyncPeriodMs: 0,
  minWatchTimeoutMs: 300_000,
  watchListPageSize: 0,
  useWatchList: true,
  watchListSilenceMs: 10_000,
  watchListEndMs: 60_000,
  openTimeoutMs: 30_000,
  listTimeoutMs: 90_000,
  bookmarkSilenceMs: 90_000,
  maxInternalErrorRetryMs: 0,
  keyFunc: deletionHandlingMetaNamespaceKey,
  clock: realClock,
  random: Math.random,
  shouldResync: () => true,
  neverGoesBack: false,
};

/** A reflector's options, with defaults for those that were left out. */
export interface ReflectorSettings extends Required<Omit<Given, Optional>>, Pick<Given, Optional> {
  /** Handed in with a snapshot, so that a program without one is bundled without it. */
  readonly resuming: Resuming | undefined;
}

/** Checks options, and adds what they leave out. */
export function settingsOf(
  name: string,
  options: ReflectorOptions,
  wiring: ReflectorWiring,
): ReflectorSettings {
  checkReflectorOptions(name, options);
  const { random = DEFAULTS.random } = options;
  const logger = guardedLogger(options.logger);
  return {
    quarantine: wiring.quarantine ?? new Quarantine({ ...options, name }),
    backoff: new Backoff(REFLECTOR_BACKOFF, { random }),
    ...DEFAULTS,
    ...defined({ ...options, ...wiring }),
    minWatchTimeoutMs: Math.max(options.minWatchTimeoutMs ?? 0, DEFAULTS.minWatchTimeoutMs),
    name,
    logger,
    metrics: guardedMetrics(options.metrics, logger),
    resuming: wiring.snapshot?.resuming,
  };
}
