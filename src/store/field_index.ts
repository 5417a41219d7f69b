/**
 * Indices by the values of fields.
 * @module
 */

import { EACH, type IndexedPath, parseFieldPath } from "../text/field_path.ts";
import { fieldValues } from "../text/field_tree.ts";
import type { IndexFunc } from "./index_func.ts";

/**
 * An index function made by {@linkcode fieldIndex}: the path that it carries is all it depends on, so a
 * holding can compute its values from an object's JSON text, without opening the object.
 *
 * @category Stores
 */
export interface FieldIndexFunc<T> extends IndexFunc<T> {
  /** The path of the field. */
  readonly fieldPath: string;
}

/**
 * Makes an index function over a field: an object is under the field's value.
 *
 * A string is a value as it is; a number or a boolean as `String` writes it (an integer beyond 2^53 as
 * JavaScript reads it, rounded). A field that is absent, null, an object or an array gives no value. Below
 * `[]` every element of the array gives its value; a value that occurs twice counts once. Only an object's
 * own properties are fields.
 *
 * Field selectors of a served cache find an index with such a function by themselves, whatever its name:
 * `spec.nodeName=n1` costs what is under `n1`. Stores with short texts compute all such indices in one walk
 * over an object's text, without opening it.
 *
 * @param path Written as `spec.nodeName`, `spec.containers[].image`, `metadata.finalizers[]`,
 * `metadata.annotations["example.com/team"]`. A field that the type of the objects does not have does not
 * compile.
 * @throws {TypeError} The path cannot be read.
 *
 * @example
 * ```ts
 * import { fieldIndex, type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
 * interface Pod extends KubernetesObject {
 *   spec?: { nodeName?: string; containers: { image: string }[] };
 * }
 * const pods = newIndexer<Pod, "byNode" | "byImage">(metaNamespaceKey, {
 *   byNode: fieldIndex("spec.nodeName"),
 *   byImage: fieldIndex("spec.containers[].image"),
 * });
 * pods.add({ metadata: { name: "web-1" }, spec: { nodeName: "n1", containers: [{ image: "web:1" }, { image: "web:1" }] } });
 * console.log(pods.countByIndex("byNode", "n1"), pods.countByIndex("byImage", "web:1")); // 1 1
 * ```
 *
 * @category Keys, indices, listers
 */
export function fieldIndex<T, const Path extends string = string>(
  path: [Path] extends [IndexedPath<T, Path>] ? Path : IndexedPath<T, Path>,
): FieldIndexFunc<T> {
  const segments = parseFieldPath(path, { mayEndInElements: true });
  return withFieldPath((object: T) => fieldValues(object, segments), path);
}

/**
 * Makes an index function over owners: an object is under the `uid` of each of its
 * `metadata.ownerReferences`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey, ownerIndex } from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
 * const pods = newIndexer<KubernetesObject, "byOwner">(metaNamespaceKey, { byOwner: ownerIndex() });
 * const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "u-1" };
 * pods.add({ metadata: { name: "web-1", ownerReferences: [owner] } });
 * console.log(pods.indexKeys("byOwner", "u-1")); // ["web-1"]
 * ```
 *
 * @category Keys, indices, listers
 */
export function ownerIndex(): FieldIndexFunc<unknown> {
  return fieldIndex("metadata.ownerReferences[].uid");
}

/**
 * The path of the field that an index function reads; `undefined` for a function that {@linkcode fieldIndex}
 * did not make.
 */
export function fieldPathOf(indexFunc: IndexFunc<never>): string | undefined {
  return (indexFunc as Partial<FieldIndexFunc<never>>).fieldPath;
}

/**
 * Whether a function indexes the field that a field selector names: a path of names with dots between them.
 */
export function indexesField(indexFunc: IndexFunc<never>, field: string): boolean {
  const path = fieldPathOf(indexFunc);
  if (path === undefined) return false;
  if (!path.includes("[")) return path === field;
  const segments = parseFieldPath(path, { mayEndInElements: true });
  // Selectors have no way to write a dot in a name.
  return segments.every((segment) => segment !== EACH && !segment.includes(".")) &&
    segments.join(".") === field;
}

/** Says that an index function gives the values of a field. */
export function withFieldPath<T>(indexFunc: IndexFunc<T>, fieldPath: string): FieldIndexFunc<T> {
  return Object.assign(indexFunc, { fieldPath });
}
