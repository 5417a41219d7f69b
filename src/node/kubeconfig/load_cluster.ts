import process from "node:process";
import { type Cluster, newCluster } from "../../client/cluster.ts";
import type { RestConfig } from "../../client/rest_config.ts";
import { type Clock, realClock } from "../../util/clock.ts";
import { consoleLogger, type Logger } from "../../util/logger.ts";
import type { Metrics } from "../../util/metrics.ts";
import { restConfigFromKubeconfig } from "./kubeconfig_rest_config.ts";
import { findKubeconfig, loadKubeconfig } from "./load_kubeconfig.ts";
import { readFile } from "node:fs/promises";
import { errorMessage } from "../../util/errors.ts";
import { FileToken, forgettingOn401, hideCredentials } from "./rest_config.ts";
import { KubeconfigError } from "./kubeconfig.ts";
import { proxyFromEnvironment } from "../fetch/proxy.ts";
import { createTlsFetch } from "../fetch/tls_fetch.ts";

/** Options of {@linkcode loadCluster}. */
export interface LoadClusterOptions {
  /** The only kubeconfig file to read; it must exist. */
  readonly kubeconfig?: string;
  /** The context of the kubeconfig; its current one by default. */
  readonly context?: string;
  /** `Cluster.namespace`; that of the context or of the service account by default, or `default`. */
  readonly namespace?: string;
  /** Environment variables; those of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The folder of the service account's files; see `InClusterOptions.serviceAccountPath`. */
  readonly serviceAccountPath?: string;
  /** What the requests are logged with, and where time comes from. */
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Counts the requests; see `RestConfig.metrics`. */
  readonly metrics?: Metrics;
}

/**
 * Connects as kubectl and client-go do: by the kubeconfig file given, by the files
 * in `KUBECONFIG`, by `~/.kube/config`, and, where none of them exists, by the
 * service account of the pod that the program runs in.
 *
 * Credentials stay fresh while the program runs: the files of tokens and client certificates are read again,
 * credential plugins run again.
 *
 * Requests go through the `proxy-url` of the kubeconfig's cluster, or the proxy of `HTTPS_PROXY` or
 * `HTTP_PROXY`, unless `NO_PROXY` excepts the server.
 *
 * Mirrors `clientcmd`'s deferred loading with its default rules.
 *
 * @throws {KubeconfigError} The file or the context given is not there or cannot be used; or there is no
 * kubeconfig, and this is no pod. Its message names each place that was looked at.
 *
 * @example
 * ```ts
 * import { loadCluster } from "@listwatch/cache/node";
 * async function namesOfPods() {
 *   const cluster = await loadCluster();
 *   const { items } = await cluster.resource("v1/pods", { namespace: cluster.namespace }).list();
 *   return items.map((pod) => pod.metadata?.name);
 * }
 * ```
 */
export async function loadCluster(options: LoadClusterOptions = {}): Promise<Cluster> {
  const config = await configOf(options);
  const { namespace = config.namespace, metrics } = options;
  return newCluster({ ...config, namespace, metrics });
}

async function configOf(options: LoadClusterOptions): Promise<RestConfig> {
  const { kubeconfig: path, context, env = process.env, clock, logger } = options;
  const found = await findKubeconfig({ env, path });
  const isEmpty = found === undefined || (found.clusters.size === 0 && found.contexts.size === 0);
  const isPod = Boolean(env.KUBERNETES_SERVICE_HOST) && Boolean(env.KUBERNETES_SERVICE_PORT);
  // A context that is given is one of a kubeconfig.
  if (isEmpty && isPod && path === undefined && context === undefined) {
    const serviceAccountPath = options.serviceAccountPath || undefined;
    return await inClusterConfig({ env, clock, logger, serviceAccountPath });
  }
  const kubeconfig = found ?? await loadKubeconfig({ env, path });
  return await restConfigFromKubeconfig(kubeconfig, { env, clock, logger, context });
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Options of {@linkcode inClusterConfig}. */
export interface InClusterOptions {
  /** Environment variables; those of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * The folder of the service account's files; `/var/run/secrets/kubernetes.io/serviceaccount` by default.
   */
  readonly serviceAccountPath?: string;
  /** Decides when the token file is read again. */
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * Makes the config of the cluster that this program runs in, with the credentials of its
 * service account. The token file is read again about every minute; proxy variables are
 * heeded. Mirrors `rest.InClusterConfig` of client-go.
 *
 * @throws {KubeconfigError} The program does not run in a pod, or its token file cannot be read.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { inClusterConfig } from "@listwatch/cache/node";
 * async function connect() {
 *   return newCluster(await inClusterConfig());
 * }
 * ```
 */
export async function inClusterConfig(options: InClusterOptions = {}): Promise<RestConfig> {
  const { env = process.env, serviceAccountPath = SERVICE_ACCOUNT, clock = realClock } = options;
  const logger = options.logger ?? consoleLogger;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new KubeconfigError(
      "Cannot find the cluster of this program: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; is this a pod?",
    );
  }
  const token = new FileToken(`${serviceAccountPath}/token`, { clock, logger });
  await token.read();
  let ca: string | undefined;
  try {
    ca = await readFile(`${serviceAccountPath}/ca.crt`, "utf8");
  } catch (error) {
    logger.warn(`Cannot read the service account's CA, using the system's roots: ${errorMessage(error)}`);
  }
  const namespace = env.POD_NAMESPACE ||
    await readFile(`${serviceAccountPath}/namespace`, "utf8").then((text) => text.trim(), () => "");
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const proxy = proxyFromEnvironment(server, env);
  const tls = { ...(ca !== undefined && { ca }), ...(proxy !== undefined && { proxy }) };
  const config: RestConfig = {
    server,
    fetch: forgettingOn401(createTlsFetch(tls), (refused) => token.forget(refused)),
    token: () => token.read(),
    ...(namespace !== "" && { namespace }),
    clock,
    logger,
  };
  return hideCredentials(config);
}
