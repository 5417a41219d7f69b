import type { KubernetesObject } from "../meta/object.ts";
import { isSameJson } from "../util/json.ts";

/**
 * The changes of an object that count: of its generation (the spec, not the status), of its labels, of its
 * metadata (labels, annotations, finalizers, owners), of either, or those for which a function of both states
 * is true.
 *
 * Mirrors controller-runtime's `GenerationChangedPredicate`, `LabelChangedPredicate` and their like. Adds,
 * deletes, resyncs and the beginning of a deletion are no changes in this sense: they are always let through,
 * while a predicate there may drop them.
 */
export type ChangeFilter<T> =
  | "generation"
  | "labels"
  | "metadata"
  | "generationOrMetadata"
  | ((before: T, after: T) => boolean);

type Comparison = (before: KubernetesObject, after: KubernetesObject) => boolean;

const generation: Comparison = (before, after) => before.metadata?.generation !== after.metadata?.generation;

const differs =
  (fields: readonly ("labels" | "annotations" | "finalizers" | "ownerReferences")[]): Comparison =>
  (
    before,
    after,
  ) => fields.some((field) => !isSameJson(before.metadata?.[field], after.metadata?.[field]));

const labels = differs(["labels"]);
const metadata = differs(["labels", "annotations", "finalizers", "ownerReferences"]);

const BY_NAME: Readonly<Record<string, Comparison>> = {
  generation,
  labels,
  metadata,
  generationOrMetadata: (before, after) => generation(before, after) || metadata(before, after),
};

/**
 * Makes the function that decides.
 *
 * @throws {TypeError} There is no filter of this name.
 */
export function changeFilter<T extends KubernetesObject>(
  filter: ChangeFilter<T> = () => true,
): (before: T, after: T) => boolean {
  const decide = typeof filter === "function"
    ? filter
    : Object.hasOwn(BY_NAME, filter)
    ? BY_NAME[filter]
    : undefined;
  if (decide === undefined) {
    throw new TypeError(
      `Cannot filter changes by ${JSON.stringify(filter)}: write one of ${
        Object.keys(BY_NAME).join(", ")
      }, or a function`,
    );
  }
  return (before, after) =>
    before.metadata?.resourceVersion === after.metadata?.resourceVersion ||
    before.metadata?.uid !== after.metadata?.uid ||
    (before.metadata?.deletionTimestamp ?? null) !== (after.metadata?.deletionTimestamp ?? null) ||
    decide(before, after);
}
