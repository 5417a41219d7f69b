/** Selectors served from indices. */

import type { FieldRequirement } from "../meta/fields.ts";
import type { LabelRequirement, LabelSelector } from "../meta/labels.ts";
import { metaOf } from "../meta/object.ts";
import {
  indexesField,
  indexesLabel,
  type IndexFunc,
  type IndexValues,
  NAMESPACE_INDEX,
} from "./index_func.ts";
import type { Indexer } from "./store.ts";

/** An index under one of whose values an object must be. */
interface Condition {
  readonly indexName: string;
  /** The label, if it is one. */
  readonly labelKey: string | undefined;
  readonly values: readonly string[];
  readonly count: number;
  /** The requirement that exactly the objects under the value fulfil, if there is one. */
  readonly answers?: FieldRequirement;
}

/** Keys of objects among which are all that a query matches. */
export interface CandidateKeys {
  readonly keys: string[];
  /** The requirement that all of them fulfil, as an index says: they need not be opened for it. */
  readonly answers: FieldRequirement | undefined;
}

/** A query for candidates, as far as indices can answer it. */
export interface CandidateQuery {
  readonly labels?: LabelSelector | undefined;
  /** Requirements on fields whose selectable value is the value at their path. */
  readonly fields?: readonly FieldRequirement[] | undefined;
  /** Only objects of this namespace, as the index by namespace has it. */
  readonly namespace?: string | undefined;
}

/**
 * Objects among which are all that a query matches, each once: as few as the indices can find without opening
 * objects. `undefined` if no index can.
 */
export function candidatesOf<T>(indexer: Indexer<T>, what: CandidateQuery): T[] | undefined {
  const conditions = conditionsOf(indexer, what);
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
 * The keys of objects among which are all that a query matches, ascending and each once: those under the
 * rarest of what it requires, without opening objects. `undefined` if no index can, or if that is most of
 * them.
 */
export function candidateKeysOf<T>(
  indexer: Indexer<T>,
  what: Omit<CandidateQuery, "namespace">,
): CandidateKeys | undefined {
  let rarest: Condition | undefined;
  for (const condition of conditionsOf(indexer, what)) {
    if (rarest === undefined || condition.count < rarest.count) rarest = condition;
  }
  if (rarest === undefined || rarest.count > indexer.size / 2) return undefined;
  const { indexName, values, answers } = rarest;
  if (values.length === 1) return { keys: indexer.indexKeys(indexName, values[0]), answers };
  const keys = new Set<string>();
  for (const value of values) for (const key of indexer.indexKeys(indexName, value)) keys.add(key);
  return { keys: Array.from(keys).sort(), answers };
}

function conditionsOf<T>(indexer: Indexer<T>, { labels, fields = [] }: CandidateQuery): Condition[] {
  const conditions: Condition[] = [];
  const requirements = labels?.requirements ?? [];
  if (requirements.length === 0 && fields.length === 0) return conditions;
  const indexers = Object.entries<IndexFunc<T>>(indexer.getIndexers());
  for (const requirement of requirements) {
    const values = requiredValues(requirement);
    if (values === undefined) continue;
    const { key } = requirement;
    const index = indexers.find(([, indexFunc]) => indexesLabel(indexFunc, key));
    if (index === undefined) continue;
    const [indexName] = index;
    let count = 0;
    for (const value of values) count += indexer.countByIndex(indexName, value);
    conditions.push({ indexName, labelKey: key, values, count });
  }
  for (const requirement of fields) {
    const { field, operator, value } = requirement;
    // An absent field has the empty value, and is under no value of an index.
    if (operator !== "=" || value === "") continue;
    const index = indexers.find(([, indexFunc]) => indexesField(indexFunc, field));
    if (index === undefined) continue;
    const [indexName] = index;
    conditions.push({
      indexName,
      labelKey: undefined,
      values: [value],
      count: indexer.countByIndex(indexName, value),
      answers: requirement,
    });
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
