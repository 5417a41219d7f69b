/**
 * Heads of objects, for handlers that receive those.
 * @module
 */

import type { Holding, KeyedHead } from "../store/holding.ts";
import { freezeObject } from "./intake.ts";
import type { Opener } from "./processor_listener.ts";

/**
 * What gives a listener heads where others have their objects opened; for one listener. Nothing is opened.
 */
export function newHeadOpener<T>(
  holding: Pick<Holding<T>, "head">,
  { freezes }: { readonly freezes: boolean | undefined },
): Opener<KeyedHead> {
  return {
    convert: (whole, conversion) => conversion(whole),
    open(held) {
      const head = holding.head(held as T);
      return freezes ? freezeObject(head) : head;
    },
  };
}
