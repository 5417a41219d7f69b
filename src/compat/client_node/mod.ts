/**
 * The informers of `@kubernetes/client-node`, 1.x and 2.x, by their own signatures, over this
 * package's: on the same `KubeConfig`, with another import. They continue by themselves after
 * failures, list in pages and say how they are doing. For Node, Deno and Bun;
 * `docs/from_client_node.md` has the differences and the next steps.
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
 *
 * @module
 */

export {
  ADD,
  CHANGE,
  type ClientNodeInformer,
  type ClientNodeObject,
  CONNECT,
  DELETE,
  ERROR,
  type ErrorCallback,
  type ListPromise,
  ListWatchError,
  type ObjectCache,
  type ObjectCallback,
  UPDATE,
} from "./verbs.ts";
export { clusterOfKubeConfig, type KubeConfigClusterOptions, type KubeConfigLike } from "./kube_config.ts";
export { ListWatch, type ListWatchOptions, type WatchLike } from "./list_watch.ts";
export { makeInformer } from "./make_informer.ts";
