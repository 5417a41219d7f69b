/** client-node's `makeInformer`. */

import type { KubeConfigLike } from "./kube_config.ts";
import { ListWatch, type ListWatchOptions } from "./list_watch.ts";
import type { ClientNodeObject, ListPromise } from "./verbs.ts";

/**
 * Makes an informer with the signature of client-node's `makeInformer`,
 * on the same `KubeConfig`; it has not started.
 *
 * @param path The path of the collection: `/api/v1/namespaces/shop/pods`.
 * @param listFn Gives the type of the objects. It is not called:
 * `path` is listed, with the selectors, in pages.
 * @param fieldSelector client-node's `makeInformer` has none.
 * @param options What client-node has no options for.
 *
 * @throws {TypeError} The path is not that of a collection.
 */
export function makeInformer<T extends ClientNodeObject>(
  kubeConfig: KubeConfigLike,
  path: string,
  listFn?: ListPromise<T>,
  labelSelector?: string,
  fieldSelector?: string,
  options?: ListWatchOptions<T>,
): ListWatch<T> {
  return new ListWatch<T>(path, { config: kubeConfig }, listFn, false, labelSelector, fieldSelector, options);
}
