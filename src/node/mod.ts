/**
 * What Node, Deno and Bun can do and an edge runtime cannot: kubeconfig files, service accounts, TLS settings, sockets.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
 * async function connect() {
 *   return newCluster(await restConfigFromKubeconfig(await loadKubeconfig()));
 * }
 * ```
 *
 * @module
 */

export {
  type ExecConfig,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  KubeconfigError,
  type KubeconfigUser,
  loadKubeconfig,
  type LoadKubeconfigOptions,
} from "./kubeconfig.ts";
export {
  inClusterConfig,
  type InClusterOptions,
  type NamespacedRestConfig,
  restConfigFromKubeconfig,
  type RestConfigOptions,
} from "./rest_config.ts";
export { ListenError, type ServedFetch, serveFetch, type ServeFetchOptions } from "./serve_fetch.ts";
export {
  checkServerTls,
  followServerTls,
  type FollowServerTlsOptions,
  readServerTls,
  type ServerTls,
  type ServerTlsFiles,
  TlsError,
} from "./server_tls.ts";
export { createTlsFetch, type TlsOptions } from "./tls_fetch.ts";
