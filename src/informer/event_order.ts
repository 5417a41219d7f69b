/**
 * Which events a store has seen already.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { resourceVersionOf } from "../meta/object.ts";
import { isComparableResourceVersion } from "../meta/resource_version.ts";
import { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { Delta } from "../queue/delta.ts";
import { isOlder } from "../reflector/position.ts";
import type { Store } from "../store/store.ts";

/**
 * What a delta is to a store.
 *
 * - `next`: something that the store has not seen.
 * - `resent`: the very state of an object that is stored, although the store has moved on since.
 * - `late`: the delete of an object that is stored, under a version that the store has passed. So a server tells of what
 *   vanished unseen, as a cache that had to list again does: by the last state that it knew.
 * - `seen`: older than what the store holds.
 */
export type Standing = "next" | "resent" | "late" | "seen";

/**
 * Tells what is new from what is sent again, by a proxy that repeats what it passed on: an event with an older
 * resourceVersion than the store stands at. Versions ascend in a watch, also across objects; what has none, or one that
 * is no number, is always new, and so is one that several objects got from the same write. A list says what is there,
 * whatever its version.
 *
 * For the deltas of an atomic `RealFIFO`, which keeps the order of events.
 */
export class EventOrder {
  // After a list at no particular version a watch begins with the present objects, in any order.
  #isKnown = false;

  /** What a delta is to the store; to be asked of each delta, in order, right before it is applied. */
  standingOf<T>(delta: Delta<T>, store: Store<T>, keyFunc: KeyFunc): Standing {
    if (delta.type === "SyncAll") return "next";
    if (delta.type === "ReplacedAll") {
      const { resourceVersion } = delta.object;
      this.#isKnown = resourceVersion !== "" && resourceVersion !== "0";
      return "next";
    }
    if (!this.#isKnown) {
      this.#isKnown = delta.type !== "Added";
      return "next";
    }
    const reached = store.lastStoreSyncResourceVersion();
    if (delta.type === "Bookmark") return isOlder(delta.object.resourceVersion, reached) ? "seen" : "next";
    const { object } = delta;
    if (object instanceof DeletedFinalStateUnknown) return "next";
    const version = resourceVersionOf(object) ?? "";
    if (delta.type === "Deleted") {
      if (!isOlder(version, reached) && (version !== reached || !isComparableResourceVersion(version))) {
        return "next";
      }
      const stored = store.getByKey(keyOf(keyFunc, object, "delete"));
      return stored === undefined || isOlder(version, resourceVersionOf(stored) ?? "") ? "seen" : "late";
    }
    if (!isOlder(version, reached)) return "next";
    const stored = store.getByKey(keyOf(keyFunc, object, "add"));
    return stored !== undefined && resourceVersionOf(stored) === version ? "resent" : "seen";
  }
}
