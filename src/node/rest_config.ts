/**
 * From a kubeconfig, or a pod's service account, to a way to reach the server.
 * @module
 */

import { readFile } from "node:fs/promises";
import process from "node:process";
import { tokenFault } from "../client/credentials.ts";
import type { FetchFunction, Impersonation, RestConfig, TokenSource } from "../client/rest_config.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import { fromBase64, toBase64 } from "./base64.ts";
import { ExecCredentials, type ExecCredentialsOptions } from "./exec_credentials.ts";
import { FileToken } from "./file_token.ts";
import { hideSecrets, REDACTED, redactedHeaders } from "./hidden_secrets.ts";
import {
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  KubeconfigError,
  type KubeconfigUser,
} from "./kubeconfig.ts";
import { ENTRY_FIELDS, wrongField } from "./kubeconfig_fields.ts";
import { createTlsFetch, type TlsOptions } from "./tls_fetch.ts";

/**
 * Options of {@linkcode restConfigFromKubeconfig}.
 *
 * @example
 * ```ts
 * import type { RestConfigOptions } from "@listwatch/cache/node";
 * const options: RestConfigOptions = { context: "prod" };
 * ```
 */
export interface RestConfigOptions {
  /** The context; the current one by default. */
  readonly context?: string;
  /** When a token is read, or asked for, anew. */
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** How long a credential plugin may take before it is killed, in milliseconds; a minute by default. */
  readonly execTimeoutMs?: number;
}

/**
 * A {@linkcode RestConfig}, and the namespace that goes with it.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import type { NamespacedRestConfig } from "@listwatch/cache/node";
 * function podsOf(config: NamespacedRestConfig) {
 *   return newCluster(config).resource("v1/pods", { namespace: config.namespace ?? "default" });
 * }
 * ```
 */
export interface NamespacedRestConfig extends RestConfig {
  /** The context's, or the service account's; absent if there is none. */
  readonly namespace?: string;
}

/**
 * How to reach the cluster of a context, as its user: CA, client certificate, bearer token (a token file is read anew
 * about every minute), basic auth, impersonation, or a credential plugin (asked again when its credentials expire, or
 * the server answers 401).
 *
 * @throws {KubeconfigError} There is no such context, its cluster or user is missing or cannot be used.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
 * async function connect() {
 *   return newCluster(await restConfigFromKubeconfig(await loadKubeconfig()));
 * }
 * ```
 */
export async function restConfigFromKubeconfig(
  kubeconfig: Kubeconfig,
  options: RestConfigOptions = {},
): Promise<NamespacedRestConfig> {
  const { clock = realClock, logger = consoleLogger } = options;
  const name = options.context ?? kubeconfig["current-context"];
  const files = kubeconfig.files.join(", ") || "the kubeconfig";
  const contexts = [...kubeconfig.contexts.keys()];
  const known = contexts.length === 0 ? "it has none" : `it has: ${contexts.join(", ")}`;
  if (name === undefined) {
    throw new KubeconfigError(`Cannot choose a context: ${files} sets no current-context; ${known}`);
  }
  const context = kubeconfig.contexts.get(name);
  if (context === undefined) {
    throw new KubeconfigError(`There is no context ${JSON.stringify(name)} in ${files}; ${known}`);
  }
  const cluster = kubeconfig.clusters.get(context.cluster);
  if (typeof cluster?.server !== "string" || cluster.server === "") {
    throw new KubeconfigError(
      `Cannot use the context ${JSON.stringify(name)} of ${files}: its cluster ${
        JSON.stringify(context.cluster)
      } ` +
        (cluster === undefined ? "is not there" : "has no server"),
    );
  }
  const user = context.user ? kubeconfig.users.get(context.user) : {};
  if (user === undefined) {
    throw new KubeconfigError(
      `Cannot use the context ${JSON.stringify(name)} of ${files}: its user ${
        JSON.stringify(context.user)
      } is not there`,
    );
  }
  checkEntries(name, { context, cluster, user }, kubeconfig);
  refuseUnsupported(name, cluster, user);
  const tls = await tlsOptions(cluster, user);
  const server = withScheme(cluster.server, tls);
  const { token, headers, fetch } = await credentials(user, {
    context: name,
    cluster: { ...cluster, server },
    tls,
    clock,
    logger,
    ...(options.execTimeoutMs !== undefined && { timeoutMs: options.execTimeoutMs }),
  });
  const impersonate = impersonation(user);
  const allHeaders = { ...headers, ...(cluster["disable-compression"] && { "Accept-Encoding": "identity" }) };
  const config: NamespacedRestConfig = {
    server,
    fetch,
    ...(token !== undefined && { token }),
    ...(Object.keys(allHeaders).length > 0 && { headers: hideSecrets(allHeaders, redactedHeaders) }),
    ...(impersonate !== undefined && { impersonate }),
    ...(context.namespace && { namespace: context.namespace }),
    clock,
    logger,
  };
  return hideSecrets(config, redactedConfig, { isCopied: true });
}

/** What `console.log` and `JSON.stringify` show of a config: no credential, and nothing that is long and says nothing. */
function redactedConfig(config: NamespacedRestConfig): object {
  const { server, token, headers, impersonate, namespace } = config;
  return {
    server,
    ...(token !== undefined && { token: REDACTED }),
    ...(headers !== undefined && { headers: redactedHeaders(headers) }),
    ...(impersonate !== undefined && { impersonate }),
    ...(namespace !== undefined && { namespace }),
  };
}

interface Entries {
  readonly context: KubeconfigContext;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
}

/** Refuses fields of another type than they must have, and those that contradict each other. */
function checkEntries(name: string, entries: Entries, kubeconfig: Kubeconfig): void {
  const { context, cluster, user } = entries;
  const names = { context: name, cluster: context.cluster, user: context.user ?? "" };
  for (const kind of ["context", "cluster", "user"] as const) {
    const file = kubeconfig.origins?.get(`${kind} ${names[kind]}`) ?? kubeconfig.files.join(", ");
    const fail = (why: string) =>
      new KubeconfigError(
        `Cannot use the context ${JSON.stringify(name)} of ${file || "the kubeconfig"}: ` +
          (kind === "context" ? why : `${kind} ${JSON.stringify(names[kind])}: ${why}`),
      );
    const wrong = wrongField(entries[kind], ENTRY_FIELDS[kind]);
    if (wrong !== undefined) throw fail(wrong);
    if (kind === "cluster") {
      const hasCa = cluster["certificate-authority"] || cluster["certificate-authority-data"];
      if (hasCa && cluster["insecure-skip-tls-verify"]) {
        throw fail(
          "its certificate-authority is not looked at with insecure-skip-tls-verify: true; leave one of them out",
        );
      }
      if (cluster.server.includes("@")) {
        throw fail("its server holds a user or password; give the user a token");
      }
    }
    if (kind !== "user") continue;
    if (!user.as && (user["as-uid"] || user["as-groups"]?.length || user["as-user-extra"])) {
      throw fail("it has as-groups, as-uid or as-user-extra, and no as to say whom to speak for");
    }
    const { exec } = user;
    if (exec && !exec.command) throw fail("its exec has no command");
    const mode = exec?.interactiveMode;
    if (mode && !["Never", "IfAvailable", "Always"].includes(mode)) {
      throw fail("its exec.interactiveMode is none of Never, IfAvailable or Always");
    }
  }
}

// A bare host is reached over TLS if the kubeconfig says anything about TLS, as client-go does it.
function withScheme(server: string, tls: TlsOptions): string {
  if (server.includes("://")) return server;
  const isSecure = tls.ca !== undefined || tls.cert !== undefined || tls.insecureSkipVerify;
  return `${isSecure ? "https" : "http"}://${server}`;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Options of {@linkcode inClusterConfig}.
 *
 * @example
 * ```ts
 * import type { InClusterOptions } from "@listwatch/cache/node";
 * const options: InClusterOptions = {
 *   env: { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" },
 * };
 * ```
 */
export interface InClusterOptions {
  /** Environment variables; those of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where the service account's files are. */
  readonly serviceAccountPath?: string;
  /** When the token is read anew. */
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * How a program in a pod reaches its own cluster, as its service account. The token is read anew about every minute.
 *
 * @throws {KubeconfigError} The program does not run in a pod.
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
export async function inClusterConfig(options: InClusterOptions = {}): Promise<NamespacedRestConfig> {
  const { env = process.env, serviceAccountPath = SERVICE_ACCOUNT, clock = realClock } = options;
  const logger = options.logger ?? consoleLogger;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new KubeconfigError(
      "Cannot find the cluster this runs in: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; is this a pod?",
    );
  }
  const token = new FileToken(`${serviceAccountPath}/token`, { clock, logger });
  await token.read();
  let ca: string | undefined;
  try {
    ca = await readFile(`${serviceAccountPath}/ca.crt`, "utf8");
  } catch (error) {
    logger.warn(`Cannot read the service account's CA, trusting the system's roots: ${errorMessage(error)}`);
  }
  const namespace = env.POD_NAMESPACE ||
    await readFile(`${serviceAccountPath}/namespace`, "utf8").then((text) => text.trim(), () => "");
  const config: NamespacedRestConfig = {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    fetch: forgettingOn401(createTlsFetch(ca === undefined ? {} : { ca }), () => token.forget()),
    token: () => token.read(),
    ...(namespace !== "" && { namespace }),
    clock,
    logger,
  };
  return hideSecrets(config, redactedConfig, { isCopied: true });
}

function refuseUnsupported(context: string, cluster: KubeconfigCluster, user: KubeconfigUser): void {
  const refuse = (what: string, instead: string) => {
    throw new KubeconfigError(
      `Cannot use the context ${JSON.stringify(context)}: ${what} is not supported; ${instead}`,
    );
  };
  if (cluster["proxy-url"]) {
    refuse("proxy-url", "set the proxy of the runtime, or give newCluster a fetch of your own");
  }
  const provider = user["auth-provider"];
  if (provider) refuse(`the auth-provider ${provider.name ?? ""}`.trimEnd(), "use an exec credential plugin");
}

async function tlsOptions(cluster: KubeconfigCluster, user: KubeconfigUser): Promise<TlsOptions> {
  const ca = await dataOrFile(cluster["certificate-authority-data"], cluster["certificate-authority"]);
  const cert = await dataOrFile(user["client-certificate-data"], user["client-certificate"]);
  const key = await dataOrFile(user["client-key-data"], user["client-key"]);
  if ((cert === undefined) !== (key === undefined)) {
    throw new KubeconfigError(
      cert === undefined
        ? "Cannot use the kubeconfig's user: it has a client-key and no client-certificate"
        : "Cannot use the kubeconfig's user: it has a client-certificate and no client-key",
    );
  }
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(cluster["tls-server-name"] && { serverName: cluster["tls-server-name"] }),
    ...(cluster["insecure-skip-tls-verify"] && { insecureSkipVerify: true }),
  };
}

async function dataOrFile(data: string | undefined, path: string | undefined): Promise<string | undefined> {
  if (data) {
    try {
      return fromBase64(data.replace(/\s/g, ""));
    } catch {
      // Without the cause: what a runtime says of it may hold the key.
      throw new KubeconfigError(
        "Cannot use the kubeconfig: a certificate or key in it (a field that ends in -data) is not base64",
      );
    }
  }
  if (!path) return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new KubeconfigError(`Cannot read ${path}, which the kubeconfig names: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

interface Credentials {
  readonly fetch: FetchFunction;
  readonly token?: TokenSource;
  readonly headers?: Readonly<Record<string, string>>;
}

interface CredentialsOptions extends ExecCredentialsOptions {
  readonly logger: Logger;
}

async function credentials(user: KubeconfigUser, options: CredentialsOptions): Promise<Credentials> {
  const { context, cluster, tls, clock, logger } = options;
  // As client-go: credentials go over TLS only.
  if (!/^https:/i.test(cluster.server)) return { fetch: createTlsFetch({}) };
  if (user.token) {
    const fault = tokenFault(user.token.trim());
    if (fault !== undefined) {
      throw new KubeconfigError(
        `Cannot use the context ${JSON.stringify(context)}: its user's token cannot be sent: ${fault}`,
      );
    }
    return { fetch: createTlsFetch(tls), token: user.token };
  }
  if (user.tokenFile) {
    const file = new FileToken(user.tokenFile, { clock, logger });
    await file.read();
    return { fetch: forgettingOn401(createTlsFetch(tls), () => file.forget()), token: () => file.read() };
  }
  if (user.username) {
    const basic = toBase64(`${user.username}:${user.password ?? ""}`);
    return { fetch: createTlsFetch(tls), headers: { Authorization: `Basic ${basic}` } };
  }
  if (user.exec) {
    const plugin = new ExecCredentials(user.exec, options);
    return { fetch: forgettingOn401(plugin.fetch, () => plugin.forget()), token: () => plugin.token() };
  }
  return { fetch: createTlsFetch(tls) };
}

/** A 401 means that the credentials are no longer good: the next request asks for new ones. */
function forgettingOn401(fetch: FetchFunction, forget: () => void): FetchFunction {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (response.status === 401) forget();
    return response;
  };
}

function impersonation(user: KubeconfigUser): Impersonation | undefined {
  if (!user.as) return undefined;
  return {
    user: user.as,
    ...(user["as-uid"] && { uid: user["as-uid"] }),
    ...(user["as-groups"] && { groups: user["as-groups"] }),
    ...(user["as-user-extra"] && { extra: user["as-user-extra"] }),
  };
}
