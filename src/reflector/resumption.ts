/**
 * Resuming from a snapshot: its content is written, the server's version is requested, and a watch begins at
 * the snapshot's version. Pure.
 */

import { isConnectionRefused, networkErrorOf } from "../meta/request.ts";
import { isOlder } from "../meta/object.ts";
import { isResourceVersionTooLarge, isTooManyRequests, statusErrorOf } from "../meta/status.ts";
import { before, type Moment } from "../util/clock.ts";
import { isUnavailable } from "./failures.ts";
import { isBrokenFrame } from "./quarantine.ts";
import type { Outcome, ReflectorState, RestoredContent, Resuming, Transition, WatchEnd } from "./state.ts";
import { listedAt } from "./store_writer.ts";
import { afterWatch, begin, go } from "./transition.ts";

/** How many watches from a snapshot's version may fail before everything is listed. */
const MOST_FAILED_RESUMPTIONS = 3;
/** How many times the server's version is requested. */
const MOST_PROBES = 3;

/** The state with a snapshot's content; if that needs a list, a watch from its version misses changes. */
function restored(
  state: ReflectorState,
  { resourceVersion, watchedVersion = "", savedAtMs, needsList }: Omit<
    RestoredContent,
    "items" | "clusterUid"
  >,
  now: Moment,
): ReflectorState {
  const contact = before(now, Math.max(0, now.wallMs - savedAtMs)); // the clock may have been set back
  const next = {
    ...state,
    position: { ...listedAt(state.position, resourceVersion, contact), watchedVersion, isConfirmed: false },
    // If the watch to come brings no bookmark, the server may not have reached the snapshot's version.
    rhythm: { ...state.rhythm, bookmarks: 2 },
  };
  return needsList
    ? { ...next, exactResourceVersion: resourceVersion }
    : { ...next, resumption: { failedWatches: 0, failedProbes: 0 } };
}

function afterProbe(
  state: ReflectorState,
  outcome: Extract<Outcome, { of: "probe" }>,
  nowMs: number,
): Transition {
  if ("error" in outcome) return afterFailedProbe(state, outcome.error, nowMs);
  const { serverVersion, isOtherCluster } = outcome;
  // A server that was restored from a backup would accept the watch, and send nothing of what happens up to
  // that version.
  if (
    isOtherCluster || (serverVersion !== undefined && isOlder(serverVersion, state.position.resourceVersion))
  ) {
    return begin({ ...state, resumption: undefined, isResourceVersionUnavailable: true }, nowMs);
  }
  return go(state, { do: "watch" });
}

/**
 * A server that is away is tried again: a list would fail as well. If it is busy or broken, everything is
 * listed after some tries; if it does not permit the request, or that breaks, the watch may still be
 * possible.
 */
function afterFailedProbe(state: ReflectorState, error: unknown, nowMs: number): Transition {
  if (isConnectionRefused(error)) return go(state, { do: "backOff", then: "start" });
  const { failedWatches = 0, failedProbes: before = 0 } = state.resumption ?? {};
  const failedProbes = before + 1;
  const isBroken = networkErrorOf(error) !== undefined;
  const isRefused = isTooManyRequests(error) || (statusErrorOf(error)?.httpStatus ?? 0) >= 500;
  const next = { ...state, resumption: { failedWatches, failedProbes } };
  if ((isBroken || isRefused) && failedProbes < MOST_PROBES) {
    return go(next, { do: "backOff", then: "start" });
  }
  return isRefused ? begin({ ...state, resumption: undefined }, nowMs) : go(next, { do: "watch" });
}

/** After a watch from a snapshot's version, whose content the server has not confirmed. */
function afterResumed(state: ReflectorState, end: WatchEnd, nowMs: number): Transition {
  const listing = { ...state, resumption: undefined };
  const error = "refused" in end ? end.refused : "error" in end ? end.error : undefined;
  if (isUnavailable(error)) {
    return begin({ ...listing, isResourceVersionUnavailable: isResourceVersionTooLarge(error) }, nowMs);
  }
  const next = afterWatch(state, end, nowMs);
  const { failedWatches: before = 0, failedProbes = 0 } = state.resumption ?? {};
  if (next.step.do === "watch") return next;
  if (next.step.do === "backOff" && next.step.then === "watch") {
    // The server was away, and may be another one, or answer now.
    return failedProbes < MOST_PROBES ? next : { ...next, step: { do: "backOff", then: "start" } };
  }
  const failedWatches = before + 1;
  if ("relist" in end || isBrokenFrame(error) || failedWatches > MOST_FAILED_RESUMPTIONS) {
    return afterWatch(listing, end, nowMs);
  }
  return { ...next, state: { ...next.state, resumption: { failedWatches, failedProbes } } };
}

/** The functions that a snapshot hands its reflector. */
export const RESUMING: Resuming = { restored, afterProbe, afterWatch: afterResumed };
