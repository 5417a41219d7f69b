/**
 * Which objects a list has: a page of one snapshot.
 * @module
 */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import type { ListOptions } from "../../meta/list_watch.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import type { VersionWaitOptions } from "../../meta/version_waiters.ts";
import type { Held } from "../../store/holding.ts";
import { decodeContinue, encodeContinue, LATEST } from "../../protocol/continue_token.ts";
import { continueTooOld, isStatus } from "../../protocol/statuses.ts";
import type { EventLog } from "../watches/event_log.ts";
import { OPEN_UNITS, type Pacer } from "../readers.ts";
import { stateTooOld } from "../answers/responses.ts";
import { narrowed, type Selection } from "./selection.ts";
import { lowerBound } from "../../util/lower_bound.ts";
import type { IndexValue, Snapshot } from "./snapshot.ts";

/** What is listed. */
export interface ListRequest {
  readonly options: ListOptions;
  /** Only this namespace; all of them where empty. */
  readonly namespace: string;
  /** Which objects of the namespace; `undefined`: all of them. */
  readonly selection: Selection | undefined;
  /** Only the objects under this value of an index, which the store has. */
  readonly under?: IndexValue | undefined;
  /** Identifies the list in its continue tokens. */
  readonly identity: string;
  /** Its signal ends the walk over objects. */
  readonly wait: VersionWaitOptions;
  readonly pacer: Pacer;
}

/** Which part of which state a page is. */
export interface PagePlace<T> {
  /** A state of the past; `undefined`: the content now. */
  readonly past: Snapshot<T> | undefined;
  /** The least key. */
  readonly start: string;
  /** The most objects. */
  readonly limit: number;
}

/** One page: a range of an array, which may be that of a snapshot, shared by many pages. */
export interface Page<T> {
  /** The version of the snapshot. */
  readonly resourceVersion: string;
  /** What the list says of itself, at this version or at a later one at which the content is the same. */
  metadata(resourceVersion: string): ListMeta;
  /** As the store holds them. */
  readonly objects: readonly Held<T>[];
  /** The first of the page. */
  readonly from: number;
  /** The one after the last. */
  readonly to: number;
}

/**
 * Where the requested page is, or the Status that refuses it. Waits for a resourceVersion from the future; looks at no
 * object.
 */
export function placePage<T extends KubernetesObject>(
  log: EventLog<T>,
  request: ListRequest,
): PagePlace<T> | Status {
  const { options, namespace } = request;
  const start = namespace === "" ? "" : `${namespace}/`;
  const limit = limitOf(options);
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (isStatus(token)) return token;
    if (token.list !== request.identity) {
      return newStatus(
        400,
        "BadRequest",
        "invalid continue token: it is of another list; continue with the same path, selectors and user",
      );
    }
    const place = { start: token.start > start ? token.start : start, limit };
    if (token.resourceVersion === LATEST || token.resourceVersion === log.resourceVersion) {
      return { ...place, past: undefined };
    }
    const past = log.states.stateAt(token.resourceVersion);
    return past === undefined
      ? continueTooOld(encodeContinue({ ...token, resourceVersion: LATEST }))
      : { ...place, past };
  }
  const { resourceVersion = "0", resourceVersionMatch } = options;
  if (resourceVersion === "0") return { past: undefined, start, limit };
  // A page at a resourceVersion is one of exactly that state, as it was before resourceVersionMatch was invented.
  const isExact = resourceVersionMatch === "Exact" ||
    (resourceVersionMatch === undefined && options.limit !== undefined);
  if (!isExact) return { past: undefined, start, limit };
  const past = log.states.stateAt(resourceVersion);
  return past === undefined ? stateTooOld(resourceVersion) : { past, start, limit };
}

// A list at resourceVersion 0 comes whole, as from an API server's cache:
// https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
function limitOf(options: ListOptions): number {
  return options.limit === undefined || options.resourceVersion === "0" ? Infinity : options.limit;
}

/** The objects among which the page is, and what remains to be tested of them. */
export function pageSource<T extends KubernetesObject>(
  log: EventLog<T>,
  { past }: PagePlace<T>,
  { under, selection }: ListRequest,
): { readonly snapshot: Snapshot<T>; readonly selection: Selection | undefined } {
  if (past === undefined) {
    return {
      snapshot: under === undefined ? log.states.candidates(selection?.indexed) : log.states.indexed(under),
      selection,
    };
  }
  if (under === undefined) return { snapshot: past, selection };
  const valuesOf = log.states.indexer?.getIndexers()[under.index];
  // Takes the held form, as the store's own index functions do.
  const isUnder = (held: unknown) => valuesOf?.(held as Held<T>).includes(under.value) === true;
  return { snapshot: past, selection: narrowed(selection, isUnder) };
}

/**
 * Takes a page out of a snapshot; costs only what it walks over. Gives others a turn while it looks at objects.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function cutPage<T extends KubernetesObject>(
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
    const hasFields = selection.hasFieldsBesides(snapshot.answers);
    for (i = from; i < end && selected.length < limit; i++) {
      if (pacer.spend(selection.units)) {
        await pacer.rest();
        wait.signal?.throwIfAborted();
      }
      if (!selection.mayHave(keys[i]) || selection.hasLabels?.(snapshot.objects[i]) === false) continue;
      if (hasFields !== undefined) {
        const object = holding.peek(snapshot.objects[i]);
        if (object !== snapshot.objects[i]) pacer.spend(OPEN_UNITS);
        if (!hasFields(object)) continue;
      }
      selected.push(snapshot.objects[i]);
    }
    objects = selected;
  }
  const page = selection === undefined ? { objects, from, to: i } : { objects, from: 0, to: objects.length };
  if (i >= end) return { resourceVersion, metadata: (resourceVersion) => ({ resourceVersion }), ...page };
  const start = keys[i - 1] + "\0";
  return {
    resourceVersion,
    metadata: (resourceVersion) => ({
      resourceVersion,
      continue: encodeContinue({ resourceVersion, start, list: at.identity }),
      // Only if it is known without looking at every object.
      ...(selection === undefined && { remainingItemCount: end - i }),
    }),
    ...page,
  };
}
