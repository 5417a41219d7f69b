/**
 * Which events a store has seen already.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { metaOf, resourceVersionOf } from "../meta/object.ts";
import { isComparableResourceVersion } from "../meta/resource_version.ts";
import { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { Delta } from "../queue/delta.ts";
import { isOlder } from "../reflector/position.ts";
import type { Store } from "../store/store.ts";
import type { IsSameState } from "./same_state.ts";

/**
 * What a delta is to a store.
 *
 * - `next`: something that the store has not seen.
 * - `resent`: the very state of an object that is stored, although the store has moved on since.
 * - `late`: a change under a version that the store has passed, which stays where it stands. So a server tells of what
 *   vanished unseen, as a cache that had to list again does: by the last state that it knew.
 * - `seen`: sent again, for certain: the store has something newer, or has no such object any more.
 * - `doubtful`: older than what the store has seen, and nothing proves that it was sent again.
 */
export type Standing = "next" | "resent" | "late" | "seen" | "doubtful";

/** Options of {@linkcode EventOrder}. */
export interface EventOrderOptions<T> {
  readonly keyFunc: KeyFunc;
  readonly isSame: IsSameState<T>;
  /** Told once, when it turns out that the server's versions do not ascend. */
  readonly onUnordered?: () => void;
}

/**
 * Tells what is new from what is sent again, by a proxy that repeats what it passed on: an event with an older
 * resourceVersion than the store stands at. Versions ascend in a watch, also across objects; what has none, or one that
 * is no number, is always new, and so is one that several objects got from the same write. A list says what is there,
 * whatever its version.
 *
 * That an event is older proves nothing by itself: aggregated APIs send an object under the version it has had for long
 * when somebody is given access to it, versions may count for each object on its own, and a server that was restored from
 * a backup begins again at lower ones. An event was sent again where the store has what came after it: the same object,
 * newer, after this very event; the object of a delete is gone. Everything else is in doubt, and is to be listed. Where
 * two lists show that what was in doubt had happened, although they did not go back themselves, the server's versions do
 * not ascend: then every event is followed.
 *
 * For the deltas of an atomic `RealFIFO`, which keeps the order of events.
 */
export class EventOrder<T> {
  readonly #options: EventOrderOptions<T>;
  // After a list at no particular version a watch begins with the present objects, in any order.
  #isKnown = false;
  /** The last changes that were applied, a ring. */
  readonly #passed: Change<T>[] = [];
  #passedCount = 0;
  /** What was in doubt since the last list, by key. */
  readonly #doubtful = new Map<string, Change<T>>();
  /** Whether the list that is being compared did not go back. */
  #listContinues = false;
  #happened = false;
  /** How many lists have shown that what was in doubt had happened. */
  #lists = 0;

  constructor(options: EventOrderOptions<T>) {
    this.#options = options;
  }

  /** What a delta is to the store; to be asked of each delta, in order, right before it is applied. */
  standingOf(delta: Delta<T>, store: Store<T>): Standing {
    if (delta.type === "SyncAll") return "next";
    const reached = store.lastStoreSyncResourceVersion();
    if (delta.type === "ReplacedAll") {
      const { resourceVersion } = delta.object;
      this.#isKnown = resourceVersion !== "" && resourceVersion !== "0";
      this.#listContinues = !isOlder(resourceVersion, reached);
      return "next";
    }
    if (!this.#isKnown) {
      this.#isKnown = delta.type !== "Added";
      return "next";
    }
    if (delta.type === "Bookmark") return isOlder(delta.object.resourceVersion, reached) ? "seen" : "next";
    if (delta.object instanceof DeletedFinalStateUnknown) return "next";
    const change = delta as Change<T>;
    const standing = this.#standingOf(change, store, reached);
    if (standing === "next") this.#passed[this.#passedCount++ % REMEMBERED] = change;
    if (standing !== "doubtful") return standing;
    if (this.#follows) return "late";
    if (this.#doubtful.size < MOST_DOUBTFUL) {
      this.#doubtful.set(keyOf(this.#options.keyFunc, change.object, "look at"), change);
    }
    return "doubtful";
  }

  /** An object of a list is not as it was stored; `undefined` where the list lacks it. */
  listed(key: string, object: T | undefined): void {
    if (this.#doubtful.size === 0) return; // the ordinary case
    const change = this.#doubtful.get(key);
    if (change === undefined) return;
    const isIt = object === undefined
      ? change.type === "Deleted"
      : change.type !== "Deleted" && this.#options.isSame(change.object, object);
    if (isIt) this.#happened = true;
  }

  /** The list is stored: nothing is in doubt any more. */
  replaced(): void {
    this.#doubtful.clear();
    if (this.#happened && this.#listContinues && ++this.#lists === ENOUGH_LISTS) {
      this.#options.onUnordered?.();
    }
    this.#happened = false;
  }

  get #follows(): boolean {
    return this.#lists >= ENOUGH_LISTS;
  }

  #standingOf(change: Change<T>, store: Store<T>, reached: string): Standing {
    const { type, object } = change;
    const version = resourceVersionOf(object) ?? "";
    const isAgain = version === reached && isComparableResourceVersion(version);
    if (!isOlder(version, reached) && !(type === "Deleted" && isAgain)) return "next";
    const stored = store.getByKey(keyOf(this.#options.keyFunc, object, "look at"));
    if (type === "Deleted") return this.#ofDelete(change, stored, version);
    if (stored === undefined) return "doubtful";
    if (this.#options.isSame(stored, object)) return "resent";
    const isNewerStored = isOlder(version, resourceVersionOf(stored) ?? "");
    return isNewerStored && uidOf(stored) === uidOf(object) && this.#hasPassed(change) ? "seen" : "doubtful";
  }

  /** An object's uid never comes back, but the object itself may, where it left what is watched. */
  #ofDelete(change: Change<T>, stored: T | undefined, version: string): Standing {
    if (stored === undefined) return "seen";
    const isNewerStored = isOlder(version, resourceVersionOf(stored) ?? "");
    const [uid, storedUid] = [uidOf(change.object), uidOf(stored)];
    const isAnother = uid !== storedUid && uid && storedUid;
    if (this.#hasPassed(change)) return isNewerStored ? "seen" : "doubtful";
    return isNewerStored || isAnother ? "doubtful" : "late";
  }

  /** Whether this very change was applied a short while ago. */
  #hasPassed({ type, object }: Change<T>): boolean {
    return this.#passed.some((passed) => passed.type === type && this.#options.isSame(passed.object, object));
  }
}

interface Change<T> {
  readonly type: "Added" | "Updated" | "Deleted";
  readonly object: T;
}

/** How many changes are remembered. What a proxy sends again, it sends soon; of what comes later nothing is known. */
const REMEMBERED = 128;
const MOST_DOUBTFUL = 1_000;
/** One might have another reason: a restored server whose versions have passed the old ones since. */
const ENOUGH_LISTS = 2;

function uidOf(object: unknown): string | undefined {
  return metaOf(object)?.uid;
}
