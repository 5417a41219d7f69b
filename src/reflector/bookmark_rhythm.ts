/**
 * Whether a server's bookmarks come, and what it means when they do not any more.
 * @module
 */

/** One watch, when it is over. */
export interface EndedWatch {
  /** How many bookmarks it brought. */
  readonly bookmarks: number;
  readonly lastedMs: number;
}

/**
 * Follows the bookmarks of one watch after another.
 *
 * A server that was restored from a backup accepts a watch from a version that it has not reached again, and sends
 * nothing of what happens up to it, bookmarks neither: https://github.com/kubernetes/kubernetes/issues/107457. So where
 * bookmarks came, and a new watch that was long enough for one (or several that were together) brings none, everything
 * is listed, once: a server that
 * sends no bookmarks any more gives the same list, and its silence means nothing from then on. A single bookmark is no
 * rhythm yet: then it takes a second silent watch.
 */
export class BookmarkRhythm {
  /** How long a watch lasts that must have brought a bookmark. */
  readonly silenceMs: number;
  #isExpected = true;
  #bookmarks = 0;
  /** How long watches lasted since a bookmark came, and how often that was long enough for one. */
  #silentMs = 0;
  #silentWatches = 0;
  /** Whether everything was listed as no bookmark came, and none has come since on a watch. */
  #hasListed = false;

  constructor(silenceMs: number) {
    this.silenceMs = silenceMs;
  }

  /** Whether a watch that brings nothing at all for so long is taken for dead: at first, and until a watch had none. */
  get isExpected(): boolean {
    return this.#isExpected;
  }

  /** Everything was listed; `byBookmark`: a bookmark said that it was all. */
  listed({ byBookmark }: { readonly byBookmark: boolean }): void {
    this.#silentMs = this.#silentWatches = 0;
    if (byBookmark && !this.#hasListed) this.#bookmarks++;
  }

  /** A watch is over; whether everything is to be listed. */
  ended({ bookmarks, lastedMs }: EndedWatch): boolean {
    if (bookmarks > 0) {
      this.#isExpected = true;
      this.#hasListed = false;
      this.#bookmarks += bookmarks;
      this.#silentMs = this.#silentWatches = 0;
      return false;
    }
    if (lastedMs >= this.silenceMs) this.#isExpected = false; // a short watch says nothing about bookmarks
    this.#silentMs += lastedMs;
    if (this.#silentMs < this.silenceMs) return false;
    this.#silentMs = 0;
    if (this.#bookmarks === 0 || ++this.#silentWatches + this.#bookmarks < 3) return false;
    this.#bookmarks = 0;
    this.#hasListed = true;
    return true;
  }
}
