/**
 * When everything is listed again although no request failed: bookmarks stop, or a change was lost. Pure.
 * @module
 */

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
  /** How long watches have lasted since a bookmark came, and how many were long enough for one. */
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
 * The rhythm after a list; `byBookmark`: a bookmark ended the list; `wasAway`: failed tries came before, so
 * that the silence says nothing about bookmarks.
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
  if (silentWatches + rhythm.bookmarks < 3) return { rhythm: silent, isDue: false };
  return { rhythm: { ...silent, bookmarks: 0, hasListed: true }, isDue: true };
}

const FIRST_RELIST_MS = 60_000;
const LAST_RELIST_MS = 1_800_000;

/** Changes that were lost, or may have been, and the relist that repairs them. */
export interface Losses {
  /** When a relist is due, in the clock's milliseconds; `undefined` if nothing was lost since the last. */
  readonly relistDueMs: number | undefined;
  /** The delay of the relist after the next loss. */
  readonly delayMs: number;
  readonly lastLossMs: number | undefined;
}

export const NO_LOSSES: Losses = { relistDueMs: undefined, delayMs: FIRST_RELIST_MS, lastLossMs: undefined };

/**
 * A change was lost: a relist is due after a minute, or after twice the last delay while losses continue, 30
 * minutes at most. If the content of the store is known to be incomplete, it is due at once.
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
