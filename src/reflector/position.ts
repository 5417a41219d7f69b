/** How far a store is, whether the server still says how far it is itself, and what was lost. Pure. */

import { hasReached } from "../meta/merged_version.ts";
import { isOlder } from "../meta/object.ts";
import type { Moment } from "../util/clock.ts";

/**
 * How far the store is, when the server last showed that, and what the present watch has brought. The one
 * part of the state that moves in place, as it moves with each event.
 */
export interface Position {
  /** The version of the content: everything up to it was written; `""` before the first list. */
  resourceVersion: string;
  /**
   * Where the next watch begins, if that is not the version of the content: a proof by state has moved that.
   * Events of objects that were created and deleted in between may still arrive.
   */
  watchedVersion: string;
  /** The version of the last event, where that was older than the position. */
  olderVersion: string | undefined;
  /** The latest version of a quarantined event; the position does not move with it. */
  quarantinedVersion: string;
  /** The version of the last proof, until the watch has come to it. */
  provenVersion: string;
  /** The version of the last list or bookmark: everything up to it was there. */
  completeVersion: string;
  /** Whether ADDED events move the position: of a watch from no version, the first come in any order. */
  follows: boolean;
  /** How many events of the present watch reached the store, and how many bookmarks came. */
  events: number;
  bookmarks: number;
  /** Whether the server has confirmed the content: until then, that of a snapshot has no contact. */
  isConfirmed: boolean;
  /**
   * The last contact with the server: something that shows how far it is, a list, an event or a bookmark, and
   * as old as its last bytes are. A watch that is opened shows nothing: the server may not follow its own
   * storage any more.
   */
  contact: Moment | undefined;
  /** When the last event arrived, and the last bookmark, by the wall clock. */
  lastEventTimeMs: number | undefined;
  lastBookmarkTimeMs: number | undefined;
}

export const NO_POSITION: Readonly<Position> = {
  resourceVersion: "",
  watchedVersion: "",
  olderVersion: undefined,
  quarantinedVersion: "",
  provenVersion: "",
  completeVersion: "",
  follows: false,
  events: 0,
  bookmarks: 0,
  isConfirmed: true,
  contact: undefined,
  lastEventTimeMs: undefined,
  lastBookmarkTimeMs: undefined,
};

/** All of a list was written; what was quarantined before it may be of another history. */
export function listedAt(position: Position, resourceVersion: string, contact: Moment): Position {
  const { lastEventTimeMs, lastBookmarkTimeMs } = position;
  const complete = { resourceVersion, completeVersion: resourceVersion, contact };
  return { ...NO_POSITION, ...complete, lastEventTimeMs, lastBookmarkTimeMs };
}

/** Something came, last at this time, with news of this age. */
export function noteContact(position: Position, { wallMs, monotonicMs }: Moment, ageMs: number): void {
  if (!position.isConfirmed) return;
  const contact = { wallMs: wallMs - ageMs, monotonicMs: monotonicMs - ageMs };
  // What a cache says of its own contact may be less than what was known before.
  const { contact: before } = position;
  if (ageMs === 0 || before === undefined || contact.monotonicMs > before.monotonicMs) {
    position.contact = contact;
  }
}

/** A watch begins; `isFollowing`: after a streamed list, which is at its version, whatever the version. */
export function watchingFrom(position: Position, isFollowing: boolean): Position {
  const { resourceVersion } = position;
  const follows = isFollowing || (resourceVersion !== "" && resourceVersion !== "0");
  return { ...position, follows, events: 0, bookmarks: 0 };
}

/** Whether every change up to this version arrived; quarantined ones did. */
export function hasReceived(position: Position, resourceVersion: string): boolean {
  return hasReached(position.resourceVersion, resourceVersion) ||
    hasReached(position.quarantinedVersion, resourceVersion);
}

/** Everything up to this version was written; an older one leaves the position, unless that goes back. */
export function reach(position: Position, resourceVersion: string, neverGoesBack: boolean): void {
  if (isOlder(resourceVersion, position.resourceVersion)) {
    const { watchedVersion } = position;
    if (watchedVersion !== "" && !isOlder(resourceVersion, watchedVersion)) {
      position.watchedVersion = resourceVersion;
      return;
    }
    if (neverGoesBack) {
      position.olderVersion = resourceVersion;
      return;
    }
  }
  position.resourceVersion = resourceVersion;
  position.watchedVersion = "";
  position.olderVersion = undefined;
}

/** Where the next watch begins. */
export function watchVersion({ resourceVersion, watchedVersion }: Position): string {
  return watchedVersion || resourceVersion;
}

/** Whether a bookmark goes back: it was sent again, or the server has started a new history. */
export function goesBack(position: Position, resourceVersion: string): boolean {
  return isOlder(resourceVersion, watchVersion(position)) ||
    isOlder(resourceVersion, position.completeVersion);
}

/** Everything up to this later version was written, although no event says so. */
export function provenAt(
  position: Position,
  resourceVersion: string,
  { neverGoesBack, byState }: { readonly neverGoesBack: boolean; readonly byState: boolean },
): Position {
  if (byState) {
    return {
      ...position,
      resourceVersion,
      watchedVersion: watchVersion(position),
      provenVersion: resourceVersion,
    };
  }
  const next = { ...position, provenVersion: resourceVersion, completeVersion: resourceVersion };
  reach(next, resourceVersion, neverGoesBack);
  return next;
}

/**
 * The bookmarks of one watch after another. A server that was restored from a backup accepts a watch from a
 * version that it has not reached again, and sends nothing up to it, bookmarks neither:
 * https://github.com/kubernetes/kubernetes/issues/107457. So where bookmarks came, and new watches that
 * together were long enough for one bring none, everything is listed, once; the silence means nothing from
 * then on. A single bookmark is no rhythm yet: then it takes a second silent watch.
 */
export interface BookmarkRhythm {
  /** Whether a silent watch is taken for dead: until one was silent, and once after a server was away. */
  readonly isExpected: boolean;
  readonly bookmarks: number;
  /** How long watches lasted since a bookmark came, and how often that was long enough for one. */
  readonly silentMs: number;
  readonly silentWatches: number;
  /** Whether everything was listed as no bookmark came, and none has come since on a watch. */
  readonly hasListed: boolean;
}

export const NO_RHYTHM: BookmarkRhythm = {
  isExpected: true,
  bookmarks: 0,
  silentMs: 0,
  silentWatches: 0,
  hasListed: false,
};

/**
 * Everything was listed; `byBookmark`: a bookmark said that it was all; `wasAway`: after tries that failed,
 * so that the silence before them says nothing about bookmarks.
 */
export function rhythmAfterList(
  rhythm: BookmarkRhythm,
  { byBookmark, wasAway }: { readonly byBookmark: boolean; readonly wasAway: boolean },
): BookmarkRhythm {
  const bookmarks = rhythm.bookmarks + (byBookmark && !rhythm.hasListed ? 1 : 0);
  return { ...rhythm, isExpected: rhythm.isExpected || wasAway, bookmarks, silentMs: 0, silentWatches: 0 };
}

/** A watch is over; `silenceMs` is long enough for a bookmark; `isDue`: everything is to be listed. */
export function rhythmAfterWatch(
  rhythm: BookmarkRhythm,
  { bookmarks, lastedMs, silenceMs }: Readonly<Record<"bookmarks" | "lastedMs" | "silenceMs", number>>,
): { readonly rhythm: BookmarkRhythm; readonly isDue: boolean } {
  if (bookmarks > 0) {
    return { rhythm: { ...NO_RHYTHM, bookmarks: rhythm.bookmarks + bookmarks }, isDue: false };
  }
  const isExpected = rhythm.isExpected && lastedMs < silenceMs; // a short watch says nothing about bookmarks
  const silentMs = rhythm.silentMs + lastedMs;
  if (silentMs < silenceMs) return { rhythm: { ...rhythm, isExpected, silentMs }, isDue: false };
  const silentWatches = rhythm.silentWatches + (rhythm.bookmarks === 0 ? 0 : 1);
  const silent = { ...rhythm, isExpected, silentMs: 0, silentWatches };
  if (rhythm.bookmarks === 0 || silentWatches + rhythm.bookmarks < 3) return { rhythm: silent, isDue: false };
  return { rhythm: { ...silent, bookmarks: 0, hasListed: true }, isDue: true };
}

const FIRST_RELIST_MS = 60_000;
const LAST_RELIST_MS = 1_800_000;

/** Changes that were lost, or may have been, and the relist that repairs them. */
export interface Losses {
  /** When a relist is due, in the clock's milliseconds; `undefined` if nothing was lost since the last. */
  readonly relistDueMs: number | undefined;
  /** How long after the next loss. */
  readonly delayMs: number;
  readonly lastLossMs: number | undefined;
}

export const NO_LOSSES: Losses = { relistDueMs: undefined, delayMs: FIRST_RELIST_MS, lastLossMs: undefined };

/**
 * A change was lost: a relist is due after a minute; twice as long each time that losses continue, up to 30
 * minutes. Where the content of the store is known to be incomplete, it is due at once.
 */
export function afterLoss(losses: Losses, nowMs: number, isIncomplete: boolean): Losses {
  if (isIncomplete) return { ...losses, relistDueMs: nowMs };
  const { lastLossMs, relistDueMs } = losses;
  const isFirst = lastLossMs === undefined || nowMs - lastLossMs > 2 * LAST_RELIST_MS;
  const delayMs = isFirst ? FIRST_RELIST_MS : losses.delayMs;
  if (relistDueMs !== undefined) return { relistDueMs, delayMs, lastLossMs: nowMs };
  return {
    relistDueMs: nowMs + delayMs,
    delayMs: Math.min(delayMs * 2, LAST_RELIST_MS),
    lastLossMs: nowMs,
  };
}
