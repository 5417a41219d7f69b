/**
 * Adding indices to a store, in steps.
 * @module
 */

import { STEP_OBJECTS, type Steps } from "../util/steps.ts";
import type { Indexers } from "./index_func.ts";
import type { StoreContent } from "./store_content.ts";
import { type Entry, newEntry, StoreIndex } from "./store_index.ts";

/**
 * Adds indices to what is stored, in steps. The last one makes them all there is; until then readers and writers find
 * the store as it was. What is written meanwhile is taken in; if all is replaced, it is begun again.
 *
 * It makes a second set of entries, as a `replace` does: for its time it costs the memory of the indices once more.
 *
 * @throws {IndexerConflictError} A name is taken; nothing was added.
 * @throws {IndexFuncError} An index function threw; nothing was added.
 */
export function* additionSteps<T>(
  content: StoreContent<T>,
  indexers: Indexers<T>,
  stepObjects: number = STEP_OBJECTS,
): Steps {
  const added = new StoreIndex(indexers);
  for (;;) {
    const before = content.entries;
    const { indexChanges } = content;
    const isOutdated = () => content.entries !== before || content.indexChanges !== indexChanges;
    const index = content.index.extendedCopy(indexers);
    const entries = new Map<string, Entry<T>>();
    const written = new Set<string>();
    const copy = (stored: Entry<T>) => {
      const { key, object } = stored;
      const values = content.index.valuesAt(stored).concat(added.valuesOf(key, object, "addIndexers"));
      const entry = entries.get(key);
      if (entry === undefined) {
        const first = newEntry(key, object);
        entries.set(key, first);
        index.insert(first, values);
      } else {
        entry.object = object;
        index.move(entry, values);
      }
    };
    content.journals.add(written);
    try {
      let step = 0;
      for (const stored of before.values()) {
        copy(stored);
        if (++step % stepObjects !== 0) continue;
        yield;
        if (isOutdated()) break;
      }
      while (!isOutdated()) {
        for (const key of written) {
          written.delete(key);
          const stored = before.get(key);
          const entry = entries.get(key);
          if (stored !== undefined) copy(stored);
          else if (entry !== undefined) {
            index.remove(entry);
            entries.delete(key);
          }
          if (++step % stepObjects === 0) break;
        }
        if (written.size === 0) return content.become(entries, index);
        yield;
      }
    } finally {
      content.journals.delete(written);
    }
  }
}
