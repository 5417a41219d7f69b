/**
 * Label selectors served from an index.
 * @module
 */

import { NoMetaError } from "../meta/keys.ts";
import type { LabelRequirement, LabelSelector } from "../meta/labels.ts";
import { metaOf } from "../meta/object.ts";
import { type IndexFunc, type IndexValues, markLiveMetadataReader, NAMESPACE_INDEX } from "./index_func.ts";
import type { Indexer } from "./indexer.ts";

/**
 * A name for an index by labels, as `NAMESPACE_INDEX` is one for that by namespace; see {@linkcode labelIndexFunc}.
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
 * Makes an index function over labels: an object is under `key=value` and under `key` for each label it carries.
 *
 * Listers (`newLister`, `listAll`, `listAllByNamespace`) find an index with such a function by themselves, whatever its
 * name, and walk the rarest of what a selector requires (`key=value`, `key in (...)`, `key`, `key>1`) instead of all
 * objects. Selectors that only exclude (`!key`, `key!=value`, `key notin (...)`) are answered by a scan as before.
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

/** One index under one of whose values an object must be. */
interface Condition {
  readonly indexName: string;
  /** The label, if it is one. */
  readonly labelKey: string | undefined;
  readonly values: readonly string[];
  readonly count: number;
}

/**
 * Objects among which are all that a selector matches in a namespace, each once: as few as the indices can find without
 * opening objects. `undefined` if no index can.
 *
 * @param what.namespace Only this one, as the index by namespace has it; without one, `undefined`.
 */
export function labelCandidates<T>(
  indexer: Indexer<T>,
  what: { readonly selector: LabelSelector | undefined; readonly namespace: string | undefined },
): T[] | undefined {
  const conditions = conditionsOf(indexer, what.selector?.requirements ?? []);
  if (what.namespace !== undefined) {
    const count = indexer.countByIndex(NAMESPACE_INDEX, what.namespace);
    conditions.push({ indexName: NAMESPACE_INDEX, labelKey: undefined, values: [what.namespace], count });
  }
  if (conditions.length === 0) return undefined;
  let rarest = conditions[0];
  for (const condition of conditions) if (condition.count < rarest.count) rarest = condition;
  if (rarest.count === 0) return [];
  const all = conditions.filter(({ values }) => values.length === 1);
  if (rarest.values.length === 1) return indexer.byIndices(valuesOf(all));
  const found: T[] = [];
  for (const value of rarest.values) {
    for (const object of indexer.byIndices(valuesOf([...all, { ...rarest, values: [value] }]))) {
      // A key that is none, such as "a=b", can put an object under two values.
      const label = metaOf(object)?.labels?.[rarest.labelKey!];
      if (value === `${rarest.labelKey}=${label}`) found.push(object);
    }
  }
  return found;
}

/**
 * The keys of objects among which are all that a selector matches, ascending and each once: those under the rarest of
 * what it requires, without opening objects. `undefined` if no index can, or if that is most of them.
 */
export function labelCandidateKeys<T>(indexer: Indexer<T>, selector: LabelSelector): string[] | undefined {
  let rarest: Condition | undefined;
  for (const condition of conditionsOf(indexer, selector.requirements)) {
    if (rarest === undefined || condition.count < rarest.count) rarest = condition;
  }
  if (rarest === undefined || rarest.count > indexer.size / 2) return undefined;
  const { indexName, values } = rarest;
  if (values.length === 1) return indexer.indexKeys(indexName, values[0]);
  const keys = new Set<string>();
  for (const value of values) for (const key of indexer.indexKeys(indexName, value)) keys.add(key);
  return Array.from(keys).sort();
}

function conditionsOf<T>(indexer: Indexer<T>, requirements: readonly LabelRequirement[]): Condition[] {
  const conditions: Condition[] = [];
  if (requirements.length === 0) return conditions;
  const indexers = Object.entries<IndexFunc<T>>(indexer.getIndexers());
  for (const requirement of requirements) {
    const values = requiredValues(requirement);
    if (values === undefined) continue;
    const { key } = requirement;
    const index = indexers.find(([, indexFunc]) => {
      const keys = indexedKeys.get(indexFunc);
      return keys === "all" || keys?.has(key) === true;
    });
    if (index === undefined) continue;
    const [indexName] = index;
    let count = 0;
    for (const value of values) count += indexer.countByIndex(indexName, value);
    conditions.push({ indexName, labelKey: key, values, count });
  }
  return conditions;
}

/** Values of an index by labels, under one of which everything is that fulfils a requirement. */
function requiredValues({ key, operator, values }: LabelRequirement): string[] | undefined {
  switch (operator) {
    case "=":
    case "==":
    case "in":
      return Array.from(new Set(values), (value) => `${key}=${value}`);
    case "exists":
    case "gt":
    case "lt":
      return [key];
    default:
      return undefined;
  }
}

/** All of the conditions, each of which has one value. */
function valuesOf(conditions: readonly Condition[]): IndexValues {
  const byIndex = new Map<string, string[]>();
  for (const { indexName, values } of conditions) {
    const others = byIndex.get(indexName);
    if (others === undefined) byIndex.set(indexName, [...values]);
    else others.push(...values);
  }
  return Object.fromEntries(byIndex);
}
