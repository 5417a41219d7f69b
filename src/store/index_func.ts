/**
 * Index functions.
 * @module
 */

import { type KeyFunc, NoMetaError } from "../meta/keys.ts";
import { metaOf } from "../meta/object.ts";
import type { Advice } from "../util/advice.ts";
import { CacheError } from "../util/errors.ts";

/**
 * Computes the values under which an object is found in an index: none, one or several; duplicates count
 * once.
 *
 * Called once with each object that is written; the store remembers the values, and does not ask for those of
 * the old object when it is replaced or deleted, as client-go does. Must depend on nothing but the object.
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
 *
 * @category Stores
 */
export type NoIndexNames<Text extends string = "name an index in `indexers`"> = string & Advice<Text>;

/**
 * The `indexers` of an option. Where the type of the objects is given by itself (`new
 * SharedIndexInformer<Pod>(...)`), the compiler does not infer the names, so it refuses the functions and
 * says what to write.
 *
 * @category Stores
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

/**
 * A value of each of several indices, or several values of one: what an object must be under all of.
 *
 * @category Stores
 */
export type IndexValues<I extends string = string> = { readonly [K in I]?: string | readonly string[] };

/**
 * The name by which informers index objects by namespace; see {@linkcode metaNamespaceIndex}.
 *
 * @example
 * ```ts
 * import { metaNamespaceIndex, metaNamespaceKey, NAMESPACE_INDEX } from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
 * const indexer = newIndexer<unknown, "namespace">(metaNamespaceKey, { [NAMESPACE_INDEX]: metaNamespaceIndex });
 * console.log(indexer.byIndex(NAMESPACE_INDEX, "shop").length); // 0
 * ```
 *
 * @category Keys, indices, listers
 */
export const NAMESPACE_INDEX = "namespace";

/**
 * Indexes by namespace; cluster-scoped objects are under `""`.
 *
 * Mirrors client-go's `MetaNamespaceIndexFunc`.
 *
 * @throws {NoMetaError} The value has no metadata.
 *
 * @example
 * ```ts
 * import { metaNamespaceIndex } from "@listwatch/cache";
 * console.log(metaNamespaceIndex({ metadata: { namespace: "shop", name: "web-1" } })); // ["shop"]
 * ```
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
 * An index function that must give exactly one value gave none, or several.
 *
 * @example
 * ```ts
 * import { indexFuncToKeyFunc, IndexKeyError } from "@listwatch/cache/store";
 * try {
 *   indexFuncToKeyFunc(() => [])({});
 * } catch (error) {
 *   if (error instanceof IndexKeyError) console.log(error.code); // EmptyIndexKeys
 * }
 * ```
 *
 * @category Stores
 */
export class IndexKeyError extends CacheError {
  /** Makes the error for the values that the index function returned. */
  constructor(values: readonly string[]) {
    const isEmpty = values.length === 0;
    super(
      isEmpty ? "EmptyIndexKeys" : "TooManyKeys",
      isEmpty ? "unexpected empty indexKeys" : `too many keys: ${values.join(", ")}`,
    );
  }
}

/**
 * Makes a key function out of an index function that gives exactly one value.
 *
 * Mirrors client-go's `IndexFuncToKeyFuncAdapter`; the key function throws an {@linkcode IndexKeyError} where
 * the index function gives no value or several.
 *
 * @example
 * ```ts
 * import { indexFuncToKeyFunc } from "@listwatch/cache/store";
 * const byUid = indexFuncToKeyFunc<{ metadata: { uid: string } }>((object) => [object.metadata.uid]);
 * console.log(byUid({ metadata: { uid: "u-1" } })); // u-1
 * ```
 *
 * @category Stores
 */
export function indexFuncToKeyFunc<T>(indexFunc: IndexFunc<T>): KeyFunc {
  return (value) => {
    const values = indexFunc(value as T);
    if (values.length !== 1) throw new IndexKeyError(values);
    return values[0];
  };
}
