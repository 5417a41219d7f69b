/**
 * For Node, Deno and Bun: kubeconfig files, service accounts, TLS settings and HTTP servers.
 *
 * @example
 * ```ts
 * import { loadCluster } from "@listwatch/cache/node";
 * async function podsOf(context: string) {
 *   return (await loadCluster({ context })).resource("v1/pods");
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
} from "./kubeconfig/kubeconfig.ts";
export {
  inClusterConfig,
  type InClusterOptions,
  loadCluster,
  type LoadClusterOptions,
  loadKubeconfig,
  type LoadKubeconfigOptions,
} from "./kubeconfig/load_cluster.ts";
export { restConfigFromKubeconfig, type RestConfigOptions } from "./kubeconfig/kubeconfig_rest_config.ts";
export type { TlsOptions } from "./kubeconfig/rest_config.ts";
export { runManager, type RunManagerOptions } from "./run_manager.ts";
export { sqliteSnapshot } from "./sqlite_snapshot.ts";
export {
  ListenError,
  type ServedFetch,
  serveFetch,
  type ServeFetchOptions,
  upgradeServed,
} from "./serving/serve_fetch.ts";
export {
  checkServerTls,
  followServerTls,
  type FollowServerTlsOptions,
  readServerTls,
  type ServerTls,
  type ServerTlsFiles,
  TlsError,
} from "./serving/server_tls.ts";
export { createTlsFetch, type TlsFetchOptions } from "./fetch/tls_fetch.ts";
