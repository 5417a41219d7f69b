/**
 * Fields that a served store has indices for.
 * @module
 */

import { EACH, parseFieldPath } from "../../text/field_path.ts";
import { fieldPathOf } from "../../store/field_index.ts";
import type { Indexer } from "../../store/indexer.ts";
import type { ServedStore } from "../upstream/served_informer.ts";

/** The fields of a store's field indices, as field selectors name them: paths of names with dots between them. */
export function indexedFields(store: ServedStore<unknown>): string[] {
  const indexers = (store as Partial<Indexer<unknown>>).getIndexers?.() ?? {};
  return Object.values(indexers).flatMap((indexFunc) => {
    const path = fieldPathOf(indexFunc);
    if (path === undefined) return [];
    const segments = parseFieldPath(path, { mayEndInElements: true });
    // A selector has no way to write a dot in a name, or elements of an array.
    return segments.every((segment) => segment !== EACH && !segment.includes("."))
      ? [segments.join(".")]
      : [];
  });
}
