/** Which objects a list has: a page of one snapshot. */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import type { ListOptions } from "../../meta/list_watch.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import type { VersionWaitOptions } from "../../meta/version_waiters.ts";
import type { Held } from "../../store/holding.ts";
import { decodeContinue, encodeContinue, LATEST } from "../../protocol/continue_token.ts";
import { continueTooOld, isStatus } from "../../protocol/statuses.ts";
import type { Content } from "./content.ts";
import { OPEN_UNITS, type Pacer } from "../../util/turns.ts";
import { narrowed, type Selection } from "./selection.ts";
import { firstFrom, type IndexValue, type Snapshot } from "./states.ts";

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
  identity(): string;
  /** Its signal ends the walk over objects. */
  readonly wait: VersionWaitOptions;
  readonly pacer: Pacer;
}

/** Which part of which state a page is. */
export interface PagePlace<T> {
  /** A state of the past; `undefined`: the content now. */
  readonly past: Snapshot<T> | undefined;
  /** The version of the content now, if the page is of that one only. */
  readonly at?: string;
  /** The least key. */
  readonly start: string;
  /** The most objects. */
  readonly limit: number;
}

/** One page: a range of a snapshot, which may be shared by many pages, or objects of its own. */
export interface Page<T> {
  /** The version of the snapshot. */
  readonly resourceVersion: string;
  /**
   * What the list says of the pages after it, if there are some, at this version or at a later one at which the content
   * is the same.
   */
  readonly next?: (resourceVersion: string) => ListMeta;
  /** An object as the store holds it. */
  object(index: number): Held<T>;
  /** The first of the page. */
  readonly from: number;
  /** The one after the last. */
  readonly to: number;
  /** The memory that a page of the past shares with others; `undefined` if it takes little. */
  readonly past: object | undefined;
}

/** Where the first page of the content now is; `undefined` if another state or another page is requested. */
export function presentPlace(request: ListRequest): PagePlace<never> | undefined {
  const { resourceVersion = "0", continue: continued } = request.options;
  return resourceVersion === "0" && continued === undefined ? firstPlace(request) : undefined;
}

function firstPlace({ options, namespace }: ListRequest): PagePlace<never> {
  const start = namespace === "" ? "" : `${namespace}/`;
  // A list at resourceVersion 0 comes whole, as from an API server's cache:
  // https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
  const limit = options.resourceVersion === "0" ? Infinity : options.limit ?? Infinity;
  return { past: undefined, start, limit };
}

/**
 * Where any other page is, or the Status that refuses it. Gives others a turn before it looks at many changes;
 * looks at no object.
 */
export async function placePage<T extends KubernetesObject>(
  { log, states }: Content<T>,
  request: ListRequest,
): Promise<PagePlace<T> | Status> {
  const { options, pacer } = request;
  const first = firstPlace(request);
  const { start, limit } = first;
  const stateAt = async (resourceVersion: string) => {
    if (pacer.isDue) await pacer.rest();
    // In the turn in which it is done.
    pacer.spend(states.unitsOf(resourceVersion));
    return states.stateAt(resourceVersion);
  };
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (isStatus(token)) return token;
    // The API server's own, whose keys begin after the namespace, and whose states only it has.
    if (token.list === undefined) return continueFrom(start + token.start, request);
    if (token.list !== request.identity()) {
      return newStatus(
        400,
        "BadRequest",
        "invalid continue token: it is of another list; continue with the same path, selectors and user",
      );
    }
    const place = { past: undefined, start: token.start > start ? token.start : start, limit };
    if (token.resourceVersion === LATEST) return place;
    if (token.resourceVersion === log.window.resourceVersion) return { ...place, at: token.resourceVersion };
    const past = await stateAt(token.resourceVersion);
    return past === undefined ? continueFrom(token.start, request) : { ...place, past };
  }
  const { resourceVersion = "0", resourceVersionMatch } = options;
  // A page at a resourceVersion is one of exactly that state, as it was before resourceVersionMatch was
  // invented.
  const isExact = resourceVersionMatch === "Exact" ||
    (resourceVersionMatch === undefined && options.limit !== undefined);
  if (!isExact) return first;
  const past = await stateAt(resourceVersion);
  return past === undefined ? stateTooOld(resourceVersion) : { ...first, past };
}

/** The place of a page whose state may have become one of the past since it was placed. */
export function stillPlaced<T extends KubernetesObject>(
  { log, states }: Content<T>,
  request: ListRequest,
  place: PagePlace<T>,
): PagePlace<T> | Status {
  const { at, start, limit } = place;
  if (at === undefined || at === log.window.resourceVersion) return place;
  const past = states.stateAt(at);
  return past === undefined ? continueFrom(start, request) : { past, start, limit };
}

/** 410: a list at a resourceVersion whose state is not known any more. */
function stateTooOld(asked: string): Status {
  return newStatus(410, "Expired", `The resourceVersion for the provided list is too old: ${asked}`);
}

/** 410, with a token for the rest of the list as it is then. */
function continueFrom(start: string, { identity }: ListRequest): Status {
  return continueTooOld(encodeContinue({ resourceVersion: LATEST, start, list: identity() }));
}

// Fewer are copied, so that a page does not keep the whole snapshot in memory.
const SMALL_PAGE = 5_000;

/**
 * Takes a page out of the content as it is when this is called, or out of a state of the past; costs only
 * what it walks over. Gives others a turn while it looks at objects.
 *
 * @throws The signal's reason, once it is aborted.
 */
export async function cutPage<T extends KubernetesObject>(
  { holding, states }: Content<T>,
  request: ListRequest,
  { past, start, limit }: PagePlace<T>,
): Promise<Page<T>> {
  const { namespace, under, pacer, wait, identity } = request;
  let { selection } = request;
  let snapshot = past;
  if (snapshot === undefined) {
    snapshot = under === undefined ? states.candidates(selection?.indexed) : states.indexed(under);
  } else if (under !== undefined) {
    const valuesOf = states.indexer?.getIndexers()[under.index];
    // Takes the held form, as the store's own index functions do.
    selection = narrowed(selection, (held) => valuesOf?.(held as Held<T>).includes(under.value) === true);
  }
  const { resourceVersion } = snapshot;
  // "0" is the character after "/".
  const end = namespace === "" ? snapshot.length : firstFrom(snapshot, `${namespace}0`);
  const from = firstFrom(snapshot, start);
  let i = Math.max(from, Math.min(end, from + limit));
  let own: Held<T>[] | undefined;
  if (selection !== undefined) {
    own = [];
    const hasFields = selection.hasFieldsBesides(snapshot.answers);
    for (i = from; i < end && own.length < limit; i++) {
      if (pacer.spend(selection.units)) {
        await pacer.rest();
        wait.signal?.throwIfAborted();
      }
      if (!selection.mayHave(snapshot.key(i))) continue;
      const held = snapshot.object(i);
      if (selection.hasLabels?.(held) === false) continue;
      if (hasFields !== undefined) {
        const object = holding.peek(held);
        if (object !== held) pacer.spend(OPEN_UNITS);
        if (!hasFields(object)) continue;
      }
      own.push(held);
    }
  } else if (past !== undefined && i - from <= SMALL_PAGE) {
    own = Array.from({ length: i - from }, (_, index) => snapshot.object(from + index));
  }
  const page = own === undefined
    ? { resourceVersion, object: snapshot.object, from, to: i, past: past?.shared }
    : {
      resourceVersion,
      object: (index: number) => own[index],
      from: 0,
      to: own.length,
      past: past !== undefined && own.length > SMALL_PAGE ? own : undefined,
    };
  if (i >= end) return page;
  const last = snapshot.key(i - 1);
  return {
    ...page,
    next: (resourceVersion) => ({
      continue: encodeContinue({ resourceVersion, start: `${last}\0`, list: identity() }),
      // Only if it is known without looking at every object.
      ...(selection === undefined && { remainingItemCount: end - i }),
    }),
  };
}
