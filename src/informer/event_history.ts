import { isOlder, isSameState, metaOf, resourceVersionOf } from "../meta/object.ts";
import type { Holding } from "../store/holding.ts";

/** An event of one object. */
export interface Change<T> {
  readonly type: "Added" | "Updated" | "Deleted";
  readonly object: T;
}

/**
 * How an event relates to a store that has reached a later version.
 *
 * - `resent`: the very state of an object that is stored.
 * - `late`: a change under a version that the store has passed; the store's version stays. A server sends
 *   such events of objects that vanished unseen, with the last state it knew, as a cache does that had to
 *   list again.
 * - `seen`: certainly sent again: the store has something newer, or no such object any more.
 * - `doubtful`: nothing proves that it was sent again.
 */
export type Standing = "resent" | "late" | "seen" | "doubtful";

/**
 * Distinguishes new events from those that a proxy sends again: events under an older resourceVersion than
 * the store has reached. Versions ascend in a watch, also across objects; one that is missing or no number is
 * always new, and so is one that several objects got from the same write.
 *
 * An older version alone proves nothing: aggregated APIs send an object under an old version when a user is
 * given access to it, versions may count for each object, and a restored server starts again at lower ones.
 * An event was sent again if the store has what came after it: the same object, newer, after this very event;
 * or the object of a delete is not stored. All others are doubtful, and a list decides. If two lists that did
 * not go back show that doubtful events had happened, versions do not ascend: then every event is applied.
 */
export class EventHistory<T> {
  readonly #holding: Pick<Holding<T>, "isSameContent">;
  readonly #applied: readonly Change<T>[];
  readonly #onUnordered: () => void;
  /** The doubtful changes since the last list, by key. */
  readonly #doubtful = new Map<string, Change<T>>();
  /** Whether the list that is being compared did not go back. */
  #listContinues = false;
  #happened = false;
  /** How many lists have shown that a doubtful change had happened. */
  #lists = 0;

  /**
   * @param applied The last changes that were applied, in any order.
   * @param onUnordered Called once, when it turns out that the server's versions do not ascend.
   */
  constructor(
    holding: Pick<Holding<T>, "isSameContent">,
    applied: readonly Change<T>[],
    onUnordered: () => void,
  ) {
    this.#holding = holding;
    this.#applied = applied;
    this.#onUnordered = onUnordered;
  }

  /**
   * Classifies a change with an older version than the store has reached; `stored` is what the store has for
   * its key.
   */
  classify(change: Change<T>, key: string, stored: T | undefined): Standing {
    const standing = change.type === "Deleted"
      ? this.#ofDelete(change, stored)
      : this.#ofWrite(change, stored);
    if (standing !== "doubtful") return standing;
    if (this.#lists >= ENOUGH_LISTS) return "late";
    if (this.#doubtful.size < MOST_DOUBTFUL) this.#doubtful.set(key, change);
    return "doubtful";
  }

  /** A list is going to be compared with a store that has reached `reached`. */
  listBegins(resourceVersion: string, reached: string): void {
    this.#listContinues = !isOlder(resourceVersion, reached);
  }

  /** An object of a list differs from what is stored; `undefined` if the list lacks it. */
  listed(key: string, object: T | undefined): void {
    if (this.#doubtful.size === 0) return; // the ordinary case
    const change = this.#doubtful.get(key);
    if (change === undefined) return;
    const isIt = object === undefined
      ? change.type === "Deleted"
      : change.type !== "Deleted" && isSameState(this.#holding, change.object, object);
    if (isIt) this.#happened = true;
  }

  /** The list is stored: no change is doubtful any more. */
  listEnds(): void {
    this.#doubtful.clear();
    if (this.#happened && this.#listContinues && ++this.#lists === ENOUGH_LISTS) this.#onUnordered();
    this.#happened = false;
  }

  #ofWrite(change: Change<T>, stored: T | undefined): Standing {
    if (stored === undefined) return "doubtful";
    const { object } = change;
    if (isSameState(this.#holding, stored, object)) return "resent";
    return isNewer(stored, object) && uidOf(stored) === uidOf(object) && this.#wasApplied(change)
      ? "seen"
      : "doubtful";
  }

  /** A uid never comes back, but an object may: one that left the selection and entered it again. */
  #ofDelete(change: Change<T>, stored: T | undefined): Standing {
    if (stored === undefined) return "seen";
    const isNewerStored = isNewer(stored, change.object);
    const [uid, storedUid] = [uidOf(change.object), uidOf(stored)];
    const isAnother = uid !== storedUid && uid && storedUid;
    if (this.#wasApplied(change)) return isNewerStored ? "seen" : "doubtful";
    return isNewerStored || isAnother ? "doubtful" : "late";
  }

  /** Whether this very change was applied a short while ago. */
  #wasApplied({ type, object }: Change<T>): boolean {
    return this.#applied.some((applied) =>
      applied.type === type && isSameState(this.#holding, applied.object, object)
    );
  }
}

const MOST_DOUBTFUL = 1_000;
/** One list may have another reason: a restored server whose versions have passed the old ones. */
const ENOUGH_LISTS = 2;

function isNewer(stored: unknown, object: unknown): boolean {
  return isOlder(resourceVersionOf(object) ?? "", resourceVersionOf(stored) ?? "");
}

function uidOf(object: unknown): string | undefined {
  return metaOf(object)?.uid;
}
