/**
 * Heads of objects, for handlers that receive those.
 * @module
 */

import type { Holding, KeyedHead } from "../store/holding.ts";
import { freezeObject } from "./intake.ts";

/** What gives a listener heads where others have their objects opened; for one listener. Nothing is opened. */
export function newHeadOpener<T>(
  holding: Pick<Holding<T>, "head">,
  { freezes }: { readonly freezes: boolean | undefined },
): Pick<Holding<KeyedHead>, "holdsAsIs" | "open"> {
  // The last one: a resync's update has the same state twice, and so it has the same head twice.
  let of: unknown;
  let head: KeyedHead | undefined;
  return {
    holdsAsIs: false,
    open(held) {
      if (head === undefined || of !== held) {
        head = holding.head(held as T);
        of = held;
        if (freezes) freezeObject(head);
      }
      return head;
    },
  };
}
