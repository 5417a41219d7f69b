/**
 * The store of an informer, and how it holds objects.
 * @module
 */

import type { KeyFunc } from "../meta/keys.ts";
import { newCache } from "../store/cache.ts";
import type { Held, Holding } from "../store/holding.ts";
import type { Indexers } from "../store/index_func.ts";
import type { Indexer } from "../store/indexer.ts";
import { freezeObject } from "./freeze_object.ts";
import { type IsSameState, newIsSameState } from "./same_state.ts";
import type { SharedIndexInformerOptions } from "./shared_informer_options.ts";

/** A store, as its readers see it and as it is written. */
export interface InformerStorage<T, I extends string> {
  readonly indexer: Indexer<T, I>;
  /** The store with its objects in their held form. */
  readonly held: Indexer<Held<T>, I>;
  readonly holding: Holding<T>;
  /** Whether two states, in their held form, are the same. */
  readonly isSame: IsSameState<Held<T>>;
}

/** Makes an empty store as the options say. */
export function newInformerStorage<T, I extends string>(
  keyFunc: KeyFunc,
  options: Pick<SharedIndexInformerOptions<T, I>, "indexers" | "storage" | "freezeObjects">,
): InformerStorage<T, I> {
  const indexer = newCache<T, I>(keyFunc, (options.indexers ?? {}) as Indexers<T, I>, {
    storage: options.storage,
    ...(options.freezeObjects && { onOpened: freezeObject }),
  });
  const { held, holding } = indexer;
  return { indexer, held, holding, isSame: newIsSameState(holding) };
}
