/**
 * The `ETag`s of a remote's answers, to answer 304 without a request to it.
 * @module
 */

import { hasReached } from "../../meta/merged_version.ts";
import { matchesTag } from "../../protocol/if_none_match.ts";

/** What an answer of a remote has shown. */
export interface KnownTag {
  readonly tag: string;
  /** What the remote had reached; `""` if it did not say. */
  readonly resourceVersion: string;
  /** How old its content was. */
  readonly ageMs: number | undefined;
  readonly isSynced: boolean;
  /** When the request was sent, on the monotonic clock: the content is at least that new. */
  readonly askedMs: number;
}

/** What a reader has, and how old an answer it takes. */
export interface TagQuery {
  readonly ifNoneMatch: string | undefined;
  readonly nowMs: number;
  /** How long ago the tag may have been seen at the remote. */
  readonly maxStaleMs: number;
  /** What the answer must have reached at least. */
  readonly notOlderThan: string | undefined;
}

const MAX_ENTRIES = 1_000;
const MAX_KEY_LENGTH = 2_048;

/** The last tag of each of the last answers. */
export class KnownTags {
  readonly #tags = new Map<string, KnownTag>();

  /** An answer came. `undefined`: it has no tag. */
  note(key: string, known: KnownTag | undefined): void {
    const before = this.#tags.get(key);
    // An earlier request may be answered later.
    if (before !== undefined && known !== undefined && before.askedMs > known.askedMs) return;
    this.#tags.delete(key);
    if (known === undefined || key.length > MAX_KEY_LENGTH) return;
    this.#tags.set(key, known);
    if (this.#tags.size > MAX_ENTRIES) this.#tags.delete(this.#tags.keys().next().value!);
  }

  /** The tag, if the reader has what it stands for and it is new enough. */
  find(key: string, { ifNoneMatch, nowMs, maxStaleMs, notOlderThan }: TagQuery): KnownTag | undefined {
    const known = this.#tags.get(key);
    if (known === undefined || !known.isSynced || !matchesTag(ifNoneMatch, known.tag)) return undefined;
    if (nowMs - known.askedMs > maxStaleMs) return undefined;
    if (notOlderThan === undefined) return known;
    if (known.resourceVersion === "") return undefined;
    return hasReached(known.resourceVersion, notOlderThan) ? known : undefined;
  }
}
