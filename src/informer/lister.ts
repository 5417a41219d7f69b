/** Listers: reads of an informer's store by namespace, name and labels. */

import { metaOf, NoMetaError } from "../meta/object.ts";
import { type LabelSelector, parseLabelSelector } from "../meta/labels.ts";
import { formatGroupResource, type GroupVersionResource, parseResource } from "../meta/resource.ts";
import { newStatus, StatusError } from "../meta/status.ts";
import { type Held, heldStoreOf } from "../store/holding.ts";
import { NAMESPACE_INDEX } from "../store/index_func.ts";
import { candidatesOf } from "../store/candidates.ts";
import type { Indexer, Store } from "../store/store.ts";

/**
 * The objects of one namespace. Mirrors client-go's `GenericNamespaceLister`.
 *
 * @category Keys, indices, listers
 */
export interface NamespaceLister<T> {
  /**
   * The objects that carry the labels selected, all without a selector; in no order that may be relied on.
   * @throws {SelectorParseError} The selector is a text that does not parse.
   * @throws {NoMetaError} There is a selector, and an object without metadata.
   */
  list(selector?: LabelSelector | string): T[];
  /**
   * The object of a name.
   * @throws {StatusError} 404, NotFound: it is not in the store.
   */
  get(name: string): T;
}

/**
 * The objects of a store, read as an API is read; no server is contacted. Objects are shared: read-only.
 * Mirrors client-go's `GenericLister`.
 *
 * @category Keys, indices, listers
 */
export interface Lister<T> extends NamespaceLister<T> {
  /** The objects of all namespaces that carry the labels selected; as {@linkcode NamespaceLister.list}. */
  list(selector?: LabelSelector | string): T[];
  /**
   * A cluster-scoped object by its name, or any by its key (`namespace/name`).
   * @throws {StatusError} 404, NotFound: it is not in the store.
   */
  get(name: string): T;
  /** The objects of one namespace; `""` lists all of them. */
  byNamespace(namespace: string): NamespaceLister<T>;
}

/**
 * Makes a lister over an informer's `indexer`, or any other. With an index `namespace`
 * (`metaNamespaceIndex`), as the informers of a `SharedInformerFactory` have it, listing a namespace costs
 * only what is in it; with an index of a `labelIndexFunc`, a selector costs only what is under the rarest
 * label that it requires. Mirrors client-go's `NewGenericLister`.
 * @param resource The resource of the objects, for the NotFound error: `"v1/pods"`, or its parts.
 * @throws {TypeError} The resource is no such text.
 *
 * @example
 * ```ts
 * import * as cache from "@listwatch/cache";
 * import { newIndexer } from "@listwatch/cache/store";
 * const indexer = newIndexer<cache.KubernetesObject>(cache.metaNamespaceKey, {
 *   [cache.NAMESPACE_INDEX]: cache.metaNamespaceIndex,
 *   [cache.LABEL_INDEX]: cache.labelIndexFunc(["app", "tier"]),
 * });
 * indexer.add({ metadata: { namespace: "shop", name: "web-1", labels: { app: "web", tier: "front" } } });
 * const pods = cache.newLister(indexer, "v1/pods");
 * console.log(pods.byNamespace("shop").get("web-1").metadata?.name, pods.list("app=web,tier!=back").length); // web-1 1
 * try {
 *   pods.byNamespace("shop").get("web-2");
 * } catch (error) {
 *   console.log(cache.isNotFound(error), `${error}`); // true StatusError: pods "web-2" not found
 * }
 * ```
 *
 * @category Keys, indices, listers
 */
export function newLister<T, I extends string>(
  indexer: Indexer<T, I>,
  resource: GroupVersionResource | string,
): Lister<T> {
  const gvr = typeof resource === "string" ? parseResource(resource) : resource;
  const get = (key: string, name: string): T => {
    const object = indexer.getByKey(key);
    if (object === undefined) throw newNotFoundError(gvr, name);
    return object;
  };
  return {
    list: (selector) => listAll(indexer, asSelector(selector)),
    get: (name) => get(name, name),
    byNamespace: (namespace) => ({
      list: (selector) => listAllByNamespace(indexer, namespace, asSelector(selector)),
      get: (name) => get(namespace === "" ? name : `${namespace}/${name}`, name),
    }),
  };
}

/**
 * The objects of a store that carry the labels selected: a new array, in no order that may be relied on. A
 * selector of nothing, or of everything, does not look at labels. The cost is proportional to the objects
 * under the rarest required label, if the store has an index of a `labelIndexFunc`, and to the whole store if
 * not. Mirrors client-go's `ListAll`.
 * @throws {NoMetaError} An object has no metadata, and the selector asks for labels.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceIndex, metaNamespaceKey } from "@listwatch/cache";
 * import { listAll, listAllByNamespace } from "@listwatch/cache/informer";
 * import { parseLabelSelector } from "@listwatch/cache/selectors";
 * import { newIndexer } from "@listwatch/cache/store";
 * const indexer = newIndexer<KubernetesObject>(metaNamespaceKey, { namespace: metaNamespaceIndex });
 * indexer.add({ metadata: { namespace: "shop", name: "a", labels: { app: "web" } } });
 * console.log(listAll(indexer, parseLabelSelector("app in (web, api)")).length); // 1
 * console.log(listAllByNamespace(indexer, "other").length); // 0
 * ```
 */
export function listAll<T>(store: Store<T>, selector?: LabelSelector): T[] {
  if (selector?.selectable === false) return [];
  if (selector === undefined || selector.empty) return store.list();
  return select(store, { selector, namespace: undefined });
}

/**
 * The objects of one namespace, or of all for `""`, that carry the selected labels. The cost is proportional
 * to the objects of the namespace if the indexer has an index `namespace`, to fewer with an index of a
 * `labelIndexFunc`, and to the whole store if it has neither. Mirrors client-go's `ListAllByNamespace`.
 * @throws {NoMetaError} An object has no metadata, and the call needs it.
 */
export function listAllByNamespace<T, I extends string>(
  indexer: Indexer<T, I>,
  namespace: string,
  selector?: LabelSelector,
): T[] {
  if (selector?.selectable === false) return [];
  if (namespace === "") return listAll(indexer, selector);
  const matches = selector === undefined || selector.empty ? undefined : selector;
  if (matches === undefined && isNamespaceIndexed(indexer)) {
    return indexer.byIndex(NAMESPACE_INDEX as I, namespace);
  }
  return select(indexer, { selector: matches, namespace });
}

/**
 * Looks through a store as it holds its objects: they are found by live metadata, and only found objects are
 * decoded.
 */
function select<T>(
  store: Store<T>,
  what: { readonly selector: LabelSelector | undefined; readonly namespace: string | undefined },
): T[] {
  const { holding, held: content } = heldStoreOf<T, Store<Held<T>>>(store as Store<Held<T>>);
  const { selector, namespace } = what;
  const isIndexed = namespace === undefined || isIndexer(content) && isNamespaceIndexed(content);
  const candidates = isIndexer(content)
    ? candidatesOf(content, { labels: selector, namespace: isIndexed ? namespace : undefined })
    : undefined;
  const found: Held<T>[] = [];
  for (const held of candidates ?? content.values()) {
    const metadata = labelled(held);
    if (!isIndexed && metadata.namespace !== namespace) continue;
    if (selector === undefined || selector.matches(metadata.labels)) found.push(held);
  }
  return found.map((held) => holding.openListed(held));
}

function isNamespaceIndexed<T, I extends string>(indexer: Indexer<T, I>): boolean {
  return Object.hasOwn(indexer.getIndexers(), NAMESPACE_INDEX);
}

function isIndexer<T>(store: Store<T>): store is Indexer<T> {
  return "byIndices" in store;
}

function labelled(object: unknown) {
  const metadata = metaOf(object);
  if (metadata === undefined) throw new NoMetaError(object);
  return metadata;
}

function asSelector(selector: LabelSelector | string | undefined): LabelSelector | undefined {
  return typeof selector === "string" ? parseLabelSelector(selector) : selector;
}

function newNotFoundError(gvr: GroupVersionResource, name: string): StatusError {
  const { group, resource } = gvr;
  const message = `${formatGroupResource(gvr)} ${JSON.stringify(name)} not found`;
  const details = { name, ...(group === "" ? {} : { group }), kind: resource };
  return new StatusError(newStatus(404, "NotFound", message, details));
}
