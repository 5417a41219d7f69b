/**
 * For Node, Deno and Bun: kubeconfig files, service accounts, TLS settings and HTTP servers.
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
} from "./kubeconfig.ts";
export { loadKubeconfig, type LoadKubeconfigOptions } from "./load_kubeconfig.ts";
export { restConfigFromKubeconfig, type RestConfigOptions } from "./kubeconfig_rest_config.ts";
export { inClusterConfig, type InClusterOptions } from "./in_cluster.ts";
export type { NamespacedRestConfig, TlsOptions } from "./rest_config.ts";
export { sqliteSnapshot } from "./sqlite_snapshot.ts";
export {
  ListenError,
  type ServedFetch,
  serveFetch,
  type ServeFetchOptions,
  upgradeServed,
} from "./serve_fetch.ts";
export {
  checkServerTls,
  followServerTls,
  type FollowServerTlsOptions,
  readServerTls,
  type ServerTls,
  type ServerTlsFiles,
  TlsError,
} from "./server_tls.ts";
export { createTlsFetch } from "./tls_fetch.ts";
