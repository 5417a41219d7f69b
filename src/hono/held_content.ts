/**
 * A served store, as it holds its objects.
 *
 * What is kept for readers - snapshots, pages, the past - is kept as the store holds it, so that a store of encoded
 * objects stays as small as it is when it is read. An object is opened for as long as it is looked at.
 *
 * @module
 */

import { heldEvent } from "../informer/opened_event.ts";
import { type IsSameState, newIsSameState } from "../informer/same_state.ts";
import type { StoreEvent } from "../informer/store_event.ts";
import type { LabelSelector } from "../meta/labels.ts";
import type { Indexer } from "../store/indexer.ts";
import { labelCandidateKeys } from "../store/label_index.ts";
import { type EncodedContent, encodedContentOf, EncodedObject, type Held } from "../store/object_codec.ts";
import type { ServedStore } from "./served_informer.ts";

/** Reads a store without opening its objects, and opens them one by one. */
export class HeldContent<T> {
  readonly #store: ServedStore<T>;
  readonly #encoded: EncodedContent<T> | undefined;
  /** Whether two states, as they are held, are the same. */
  readonly isSame: IsSameState<Held<T>>;

  /** @param store Whose content it is. */
  constructor(store: ServedStore<T>) {
    this.#store = store;
    this.#encoded = encodedContentOf<T>(store);
    this.isSame = newIsSameState(this.#encoded?.codec);
  }

  /** Whether objects are held encoded, so that opening one costs something. */
  get isEncoded(): boolean {
    return this.#encoded !== undefined;
  }

  /** All keys, in any order. */
  listKeys(): string[] {
    return this.#store.listKeys();
  }

  /** What is held under a key. */
  getByKey(key: string): Held<T> | undefined {
    return this.#encoded === undefined ? this.#store.getByKey(key) : this.#encoded.held.getByKey(key);
  }

  /**
   * The keys of a few objects among which are all that a selector matches, ascending; `undefined` if no index of the
   * store can tell, or not well enough.
   */
  candidates(labels: LabelSelector): string[] | undefined {
    const store = this.#store as ServedStore<T> & Partial<Indexer<T>>;
    const isIndexed = store.indexKeys !== undefined && store.countByIndex !== undefined &&
      store.getIndexers !== undefined;
    return isIndexed ? labelCandidateKeys(store as Indexer<T>, labels) : undefined;
  }

  /** The object, which is to be let go soon. */
  open(held: Held<T>): T {
    return this.#encoded === undefined ? held as T : this.#encoded.codec.peek(held);
  }

  /** The object's JSON text, where that costs less than the object. */
  json(held: Held<T>): string | undefined {
    return held instanceof EncodedObject ? this.#encoded?.codec.json(held) : undefined;
  }

  /** What the store's informer tells, with objects as they are held. */
  heldEvent(event: StoreEvent<T>): StoreEvent<Held<T>> {
    return this.#encoded === undefined ? event : heldEvent(event, this.#encoded.codec);
  }
}
