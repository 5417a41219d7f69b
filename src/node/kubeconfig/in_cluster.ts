/** The cluster that a program runs in. */

import { readFile } from "node:fs/promises";
import process from "node:process";
import { type Clock, realClock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { consoleLogger, type Logger } from "../../util/logger.ts";
import type { RestConfig } from "../../client/rest_config.ts";
import { FileToken, forgettingOn401, hideCredentials } from "./rest_config.ts";
import { KubeconfigError } from "./kubeconfig.ts";
import { proxyFromEnvironment } from "../fetch/proxy.ts";
import { createTlsFetch } from "../fetch/tls_fetch.ts";

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
