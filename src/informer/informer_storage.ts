/**
 * The store of an informer, and how it holds objects.
 * @module
 */

import type { KeyFunc } from "../meta/keys.ts";
import type { Indexers } from "../store/index_func.ts";
import type { Held, ObjectCodec } from "../store/object_codec.ts";
import { newEncodedIndexer, newIndexer } from "../store/cache.ts";
import type { Indexer } from "../store/indexer.ts";
import { freezeObject } from "./freeze_object.ts";
import { type IsSameState, newIsSameState } from "./same_state.ts";
import type { SharedIndexInformerOptions } from "./shared_informer_options.ts";

/** An empty store, as its readers see it and as it is written. */
export interface InformerStorage<T, I extends string> {
  readonly indexer: Indexer<T, I>;
  /** The store as those see it who pass objects on without looking inside: as they are held. */
  readonly held: Indexer<Held<T>, I>;
  /** Of objects that are held encoded. */
  readonly codec: ObjectCodec<T> | undefined;
  /** Keys of objects as they are held. */
  readonly keyFunc: KeyFunc;
  /** Whether two states, as they are held, are the same. */
  readonly isSame: IsSameState<Held<T>>;
}

/** Makes the store that the options ask for. */
export function newInformerStorage<T, I extends string>(
  keyFunc: KeyFunc,
  options: Pick<SharedIndexInformerOptions<T, I>, "indexers" | "storage" | "freezeObjects">,
): InformerStorage<T, I> {
  const indexers = options.indexers ?? ({} as Indexers<T, I>);
  if (options.storage === "encoded") {
    const onDecoded = options.freezeObjects ? { onDecoded: freezeObject } : {};
    const { indexer, held, codec } = newEncodedIndexer<T, I>(keyFunc, indexers, onDecoded);
    return { indexer, held, codec, keyFunc: codec.keyFunc, isSame: newIsSameState(codec) };
  }
  const indexer = newIndexer<T, I>(keyFunc, indexers, { storage: options.storage ?? "objects" });
  const held = indexer as unknown as Indexer<Held<T>, I>;
  return { indexer, held, codec: undefined, keyFunc, isSame: newIsSameState<T>() };
}
