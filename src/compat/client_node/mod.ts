/**
 * The informers of `@kubernetes/client-node`, 1.x and 2.x, by their own signatures, over this
 * package's: on the same `KubeConfig`, with another import. They continue by themselves after
 * failures, list in pages and say how they are doing. For Node, Deno and Bun;
 * `docs/from_client_node.md` has the differences and the next steps.
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
export { ListWatch, type ListWatchOptions, makeInformer, type WatchLike } from "./list_watch.ts";
