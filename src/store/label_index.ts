/**
 * Indices by labels.
 * @module
 */

import { NoMetaError } from "../meta/keys.ts";
import { metaOf } from "../meta/object.ts";
import { type IndexFunc, markLiveMetadataReader } from "./index_func.ts";

/**
 * A name for an index by labels, as `NAMESPACE_INDEX` is one for that by namespace; see {@linkcode
 * labelIndexFunc}.
 *
 * @example
 * ```ts
 * import { LABEL_INDEX, labelIndexFunc, metaNamespaceKey } from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
 * const indexer = newIndexer<unknown, "labels">(metaNamespaceKey, { [LABEL_INDEX]: labelIndexFunc() });
 * console.log(indexer.countByIndex(LABEL_INDEX, "app=web")); // 0
 * ```
 *
 * @category Keys, indices, listers
 */
export const LABEL_INDEX = "labels";

/**
 * Makes an index function over labels: an object is under `key=value` and under `key` for each label it
 * carries.
 *
 * Listers (`newLister`, `listAll`, `listAllByNamespace`) find an index with such a function by themselves,
 * whatever its name, and walk the rarest of what a selector requires (`key=value`, `key in (...)`, `key`,
 * `key>1`) instead of all objects. Selectors that only exclude (`!key`, `key!=value`, `key notin (...)`) are
 * answered by a scan as before.
 *
 * It costs memory and time for two values a label: name the keys that selectors use, where they are known.
 *
 * @param labelKeys The labels that are indexed; all by default.
 * @returns A function that throws a {@linkcode NoMetaError} for a value without metadata.
 *
 * @example
 * ```ts
 * import {
 *   type KubernetesObject,
 *   LABEL_INDEX,
 *   labelIndexFunc,
 *   metaNamespaceKey,
 *   newLister,
 * } from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
 * const indexer = newIndexer<KubernetesObject, "labels">(metaNamespaceKey, {
 *   [LABEL_INDEX]: labelIndexFunc(["app", "tier"]),
 * });
 * indexer.add({ metadata: { namespace: "shop", name: "web-1", labels: { app: "web", tier: "front" } } });
 * console.log(newLister(indexer, "v1/pods").list("app=web,tier!=back").length); // 1
 * console.log(indexer.countByIndex("labels", "app=web"), indexer.countByIndex("labels", "tier")); // 1 1
 * ```
 *
 * @category Keys, indices, listers
 */
export function labelIndexFunc(labelKeys?: readonly string[]): IndexFunc<unknown> {
  const only = labelKeys === undefined ? undefined : new Set(labelKeys);
  const indexFunc: IndexFunc<unknown> = (object) => {
    const metadata = metaOf(object);
    if (metadata === undefined) throw new NoMetaError(object);
    const labels = metadata.labels;
    const values: string[] = [];
    if (labels === undefined || labels === null) return values;
    for (const key of Object.keys(labels)) {
      if (only === undefined || only.has(key)) values.push(key, `${key}=${labels[key]}`);
    }
    return values;
  };
  indexedKeys.set(indexFunc, only ?? "all");
  markLiveMetadataReader(indexFunc);
  return indexFunc;
}

/** Which labels the functions that {@linkcode labelIndexFunc} made know of. */
const indexedKeys = new WeakMap<IndexFunc<never>, ReadonlySet<string> | "all">();

/** Whether a function that {@linkcode labelIndexFunc} made indexes a label. */
export function indexesLabel(indexFunc: IndexFunc<never>, key: string): boolean {
  const keys = indexedKeys.get(indexFunc);
  return keys === "all" || keys?.has(key) === true;
}
