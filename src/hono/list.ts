/**
 * Lists: pages of one snapshot.
 * @module
 */

import type { KubernetesObject, ListMeta } from "../meta/object.ts";
import type { ListOptions } from "../meta/list_watch.ts";
import type { LabelSelector } from "../meta/labels.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import type { Held } from "../store/holding.ts";
import { decodeContinue, encodeContinue, LATEST } from "../protocol/continue_token.ts";
import { continueTooOld, isStatus, tooLargeResourceVersion } from "../protocol/statuses.ts";
import type { EventLog } from "./event_log.ts";
import { OPEN_UNITS, type Pacer } from "./pacer.ts";
import { stateTooOld } from "./responses.ts";
import type { Selection } from "./selection.ts";
import { lowerBound, type Snapshot } from "./snapshot.ts";

/** What is listed. */
export interface ListRequest {
  readonly options: ListOptions;
  /** Only this namespace; all of them where empty. */
  readonly namespace: string;
  /** Which objects of the namespace; `undefined`: all of them. */
  readonly selection: Selection | undefined;
  /** The labels of the selection, for which there may be an index. */
  readonly labels: LabelSelector | undefined;
  /** What a continue token of this list is good for. */
  readonly identity: string;
  /** What bounds the wait for a resourceVersion from the future; its signal ends the looking at objects, too. */
  readonly wait: VersionWaitOptions;
  readonly pacer: Pacer;
}

/** One page: its objects stand in an array, which may be that of a snapshot, shared by many pages. */
export interface Page<T> {
  readonly metadata: ListMeta;
  /** As the store holds them. */
  readonly objects: readonly Held<T>[];
  /** The first of the page. */
  readonly from: number;
  /** The one after the last. */
  readonly to: number;
}

/**
 * The page that was asked for, or the Status that refuses it.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function readPage<T extends KubernetesObject>(
  log: EventLog<T>,
  request: ListRequest,
): Promise<Page<T> | Status> {
  const { options, namespace } = request;
  let start = namespace === "" ? "" : `${namespace}/`;
  let snapshot: Snapshot<T> | undefined;
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (isStatus(token)) return token;
    if (token.list !== request.identity) {
      return newStatus(
        400,
        "BadRequest",
        "invalid continue token: it is of another list; go on with the same path, selectors and user as before",
      );
    }
    if (token.start > start) start = token.start;
    const isNow = token.resourceVersion === LATEST || token.resourceVersion === log.resourceVersion;
    snapshot = isNow ? log.candidates(request.labels) : log.stateAt(token.resourceVersion);
    if (snapshot === undefined) {
      return continueTooOld(encodeContinue({ ...token, resourceVersion: LATEST }));
    }
  } else {
    const state = await stateFor(log, request);
    if ("status" in state) return state.status;
    snapshot = state.snapshot;
  }
  return await cut(log, snapshot, { ...request, start, limit: limitOf(options) });
}

// A list at resourceVersion 0 comes whole, as from an API server's cache.
function limitOf(options: ListOptions): number {
  return options.limit === undefined || options.resourceVersion === "0" ? Infinity : options.limit;
}

/** Which state a list without a continue token is about. */
async function stateFor<T extends KubernetesObject>(
  log: EventLog<T>,
  request: ListRequest,
): Promise<{ readonly snapshot: Snapshot<T> } | { readonly status: Status }> {
  const { resourceVersion = "0", resourceVersionMatch, limit } = request.options;
  if (resourceVersion === "0") return { snapshot: log.candidates(request.labels) };
  if (!await log.reaches(resourceVersion, request.wait)) {
    return { status: tooLargeResourceVersion(resourceVersion, log.resourceVersion) };
  }
  // A page at a resourceVersion is one of exactly that state, as it was before resourceVersionMatch was invented.
  const isExact = resourceVersionMatch === "Exact" ||
    (resourceVersionMatch === undefined && limit !== undefined);
  if (!isExact) return { snapshot: log.candidates(request.labels) };
  const snapshot = log.stateAt(resourceVersion);
  return snapshot === undefined ? { status: stateTooOld(resourceVersion) } : { snapshot };
}

/** Takes a page out of a snapshot; costs only what it walks over. Gives others a turn while it looks at objects. */
async function cut<T extends KubernetesObject>(
  { holding }: EventLog<T>,
  snapshot: Snapshot<T>,
  at: ListRequest & { readonly start: string; readonly limit: number },
): Promise<Page<T>> {
  const { keys, resourceVersion } = snapshot;
  const { selection, limit, pacer, wait } = at;
  // "0" is the character after "/".
  const end = at.namespace === "" ? keys.length : lowerBound(keys, `${at.namespace}0`);
  const from = lowerBound(keys, at.start);
  let objects = snapshot.objects;
  let i = Math.max(from, Math.min(end, from + limit));
  if (selection !== undefined) {
    const selected: Held<T>[] = [];
    for (i = from; i < end && selected.length < limit; i++) {
      if (pacer.spend(selection.units)) {
        await pacer.rest();
        wait.signal?.throwIfAborted();
      }
      if (!selection.mayHave(keys[i]) || selection.hasLabels?.(snapshot.objects[i]) === false) continue;
      if (selection.hasFields !== undefined) {
        if (!holding.holdsAsIs) pacer.spend(OPEN_UNITS);
        if (!selection.hasFields(holding.peek(snapshot.objects[i]))) continue;
      }
      selected.push(snapshot.objects[i]);
    }
    objects = selected;
  }
  const page = selection === undefined ? { objects, from, to: i } : { objects, from: 0, to: objects.length };
  if (i >= end) return { metadata: { resourceVersion }, ...page };
  return {
    metadata: {
      resourceVersion,
      continue: encodeContinue({ resourceVersion, start: keys[i - 1] + "\0", list: at.identity }),
      // Told only where it is known without looking at every object.
      ...(selection === undefined && { remainingItemCount: end - i }),
    },
    ...page,
  };
}
