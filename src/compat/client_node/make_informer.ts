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
 *
 * @example
 * ```ts
 * import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
 * import { makeInformer } from "@listwatch/cache/compat/client-node";
 * async function followPods() {
 *   const kubeConfig = new KubeConfig();
 *   kubeConfig.loadFromDefault();
 *   const api = kubeConfig.makeApiClient(CoreV1Api);
 *   const informer = makeInformer(kubeConfig, "/api/v1/pods", () => api.listPodForAllNamespaces());
 *   informer.on("add", (pod) => console.log("added", pod.metadata?.name));
 *   informer.on("error", (error) => console.log(error.message)); // it tries again by itself
 *   await informer.start();
 *   return informer;
 * }
 * ```
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
