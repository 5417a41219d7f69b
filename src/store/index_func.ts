/** Index functions. */

import { metaOf, NoMetaError } from "../meta/object.ts";
import { type Advice, EACH, type IndexedPath, parseFieldPath } from "../text/field_path.ts";
import { fieldValues } from "../text/field_tree.ts";

/**
 * Computes the values under which an object is found in an index: none, one or several; duplicates count
 * once.
 *
 * Called with each object that is written; the store remembers the values, and does not ask for those of the
 * old object when it is replaced or deleted, as client-go does. Must depend on nothing but the object: an
 * informer does not call it for an object that has the same strings in all fields that the function has read
 * of an earlier one, and calls it twice with some objects to find out what it reads.
 *
 * @category Keys, indices, listers
 */
export type IndexFunc<T> = (object: T) => readonly string[];

/**
 * Index functions by the name of their index. The names are the ones that lookups accept.
 *
 * @category Keys, indices, listers
 */
export type Indexers<T, I extends string = string> = Readonly<Record<I, IndexFunc<T>>>;

/**
 * The index names of an informer without `indexers`: no text is one of them, and the compiler's error says
 * what to do.
 */
export type NoIndexNames<Text extends string = "name an index in `indexers`"> = string & Advice<Text>;

/**
 * The `indexers` of an option. If the type of the objects is given alone (`new
 * SharedIndexInformer<Pod>(...)`), the compiler does not infer the names, so it refuses the functions and
 * says what to write.
 */
export type IndexersOption<T, I extends string> =
  | Indexers<T, I>
  | ([NoIndexNames] extends [I] ? Readonly<
      Record<
        string,
        IndexFunc<T> & Advice<'leave out <T>, which the source gives, or name the indices: <T, "byNode">'>
      >
    >
    : never);

/** A value of each of several indices, or several values of one: what an object must be under all of. */
export type IndexValues<I extends string = string> = { readonly [K in I]?: string | readonly string[] };

/**
 * The name by which informers index objects by namespace; see {@linkcode metaNamespaceIndex}.
 *
 * @category Keys, indices, listers
 */
export const NAMESPACE_INDEX = "namespace";

/**
 * Indexes by namespace; cluster-scoped objects are under `""`. Mirrors client-go's `MetaNamespaceIndexFunc`.
 * @throws {NoMetaError} The value has no metadata.
 *
 * @category Keys, indices, listers
 */
export function metaNamespaceIndex(object: unknown): string[] {
  const metadata = metaOf(object);
  if (metadata === undefined) throw new NoMetaError(object);
  return [metadata.namespace ?? ""];
}

/** The functions that ask an object for its namespace and its labels only. */
const liveMetadataReaders = new WeakSet<IndexFunc<never>>([metaNamespaceIndex]);

/**
 * Says that an index function asks for namespace and labels only, which stay readable of an object that is
 * encoded.
 */
export function markLiveMetadataReader(indexFunc: IndexFunc<never>): void {
  liveMetadataReaders.add(indexFunc);
}

/** Whether an index function asks for namespace and labels only. */
export function readsLiveMetadata(indexFunc: IndexFunc<never>): boolean {
  return liveMetadataReaders.has(indexFunc);
}

/**
 * An index function made by {@linkcode fieldIndex}: the path that it carries is all it depends on, so a
 * holding can compute its values from an object's JSON text, without opening the object.
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
 * @param path Written as `spec.nodeName`, `spec.containers[].image`, `metadata.finalizers[]`,
 * `metadata.annotations["example.com/team"]`. A field that the type of the objects does not have does not
 * compile.
 * @throws {TypeError} The path cannot be read.
 *
 * @example
 * ```ts
 * import * as cache from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
 * interface Pod extends cache.KubernetesObject {
 *   spec?: { nodeName?: string; containers: { image: string }[] };
 * }
 * const pods = newIndexer<Pod, "byNode" | "byImage" | "byOwner" | "namespace">(cache.metaNamespaceKey, {
 *   byNode: cache.fieldIndex("spec.nodeName"),
 *   byImage: cache.fieldIndex("spec.containers[].image"),
 *   byOwner: cache.ownerIndex(),
 *   [cache.NAMESPACE_INDEX]: cache.metaNamespaceIndex,
 * });
 * pods.add({ metadata: { name: "web-1" }, spec: { nodeName: "n1", containers: [{ image: "web:1" }] } });
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

/**
 * A name for an index by labels, as `NAMESPACE_INDEX` is one for that by namespace; see {@linkcode
 * labelIndexFunc}.
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
 * @param labelKeys The labels that are indexed; all by default.
 * @returns A function that throws a {@linkcode NoMetaError} for a value without metadata.
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

/** The labels that each function made by {@linkcode labelIndexFunc} knows. */
const indexedKeys = new WeakMap<IndexFunc<never>, ReadonlySet<string> | "all">();

/** Whether a function that {@linkcode labelIndexFunc} made indexes a label. */
export function indexesLabel(indexFunc: IndexFunc<never>, key: string): boolean {
  const keys = indexedKeys.get(indexFunc);
  return keys === "all" || keys?.has(key) === true;
}
