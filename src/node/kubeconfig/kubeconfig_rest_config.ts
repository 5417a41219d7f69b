import { readFile } from "node:fs/promises";
import process from "node:process";
import {
  type FetchFunction,
  type Impersonation,
  type RestConfig,
  tokenFault,
  type TokenSource,
} from "../../client/rest_config.ts";
import { type Clock, realClock } from "../../util/clock.ts";
import { defined } from "../../util/json.ts";
import { errorMessage } from "../../util/errors.ts";
import { consoleLogger, type Logger } from "../../util/logger.ts";
import { fromBase64, toBase64 } from "../../util/bytes.ts";
import { ExecCredentials, type ExecCredentialsOptions } from "./exec_credentials.ts";
import {
  FileToken,
  forgettingOn401,
  hideCredentials,
  hideSecrets,
  redactedHeaders,
  type TlsOptions,
} from "./rest_config.ts";
import {
  ENTRY_FIELDS,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  KubeconfigError,
  type KubeconfigUser,
  wrongField,
} from "./kubeconfig.ts";
import { proxyFault, proxyFromEnvironment } from "../fetch/proxy.ts";
import { createFileCertificateFetch, createTlsFetch } from "../fetch/tls_fetch.ts";

/** Options of {@linkcode restConfigFromKubeconfig}. */
export interface RestConfigOptions {
  /** The context; the current one by default. */
  readonly context?: string;
  /**
   * Environment variables; the process's own by default. A cluster without `proxy-url` is reached through the
   * proxy of `HTTPS_PROXY` or `HTTP_PROXY`, unless `NO_PROXY` excepts it.
   */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Decides when a token is read or requested again. */
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** The time after which a credential plugin is killed, in milliseconds; a minute by default. */
  readonly execTimeoutMs?: number;
}

/**
 * Makes the config of a context's cluster with the credentials of its user: CA, client certificate, bearer
 * token (certificate and token files are read again about every minute), basic auth, impersonation, or a
 * credential plugin (run again when its credentials expire or the server answers 401). Requests go through
 * the cluster's `proxy-url`, or else the proxy of the environment, if there is one.
 *
 * @throws {KubeconfigError} The context, its cluster or its user is missing or cannot be used.
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
): Promise<RestConfig> {
  const { clock = realClock, logger = consoleLogger } = options;
  const name = options.context ?? kubeconfig["current-context"];
  const files = kubeconfig.files.join(", ") || "the kubeconfig";
  const contexts = [...kubeconfig.contexts.keys()];
  const known = contexts.length === 0 ? "it has no contexts" : `its contexts: ${contexts.join(", ")}`;
  if (name === undefined) {
    throw new KubeconfigError(`Cannot choose a context: ${files} has no current-context; ${known}`);
  }
  const context = kubeconfig.contexts.get(name);
  const useless = `Cannot use the context ${JSON.stringify(name)}`;
  if (context === undefined) throw new KubeconfigError(`${useless}: ${files} has no such context; ${known}`);
  const fail = (kind: string, of: string | undefined, why: string) =>
    new KubeconfigError(`${useless} of ${files}: its ${kind} ${JSON.stringify(of)} ${why}`);
  const cluster = kubeconfig.clusters.get(context.cluster);
  if (typeof cluster?.server !== "string" || cluster.server === "") {
    throw fail("cluster", context.cluster, cluster === undefined ? "does not exist" : "has no server");
  }
  const user = kubeconfig.users.get(context.user ?? "") ?? (context.user ? undefined : {});
  if (user === undefined) throw fail("user", context.user, "does not exist");
  checkEntries(name, { context, cluster, user }, kubeconfig);
  const certificates = await tlsOptions(cluster, user);
  const server = withScheme(cluster.server, certificates);
  const proxy = cluster["proxy-url"] || proxyFromEnvironment(server, options.env ?? process.env);
  const tls = defined({ ...certificates, proxy });
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
  const config: RestConfig = {
    server,
    fetch,
    ...(token !== undefined && { token }),
    ...(Object.keys(allHeaders).length > 0 && { headers: hideSecrets(allHeaders, redactedHeaders) }),
    ...(impersonate !== undefined && { impersonate }),
    ...(context.namespace && { namespace: context.namespace }),
    clock,
    logger,
  };
  return hideCredentials(config);
}

interface Entries {
  readonly context: KubeconfigContext;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser;
}

/** Refuses fields of a wrong type, and fields that contradict each other. */
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
      refuseBoth(cluster, "certificate-authority", "certificate-authority-data", fail);
      if (hasCa && cluster["insecure-skip-tls-verify"]) {
        throw fail(
          "its certificate-authority is ignored with insecure-skip-tls-verify: true; remove one of them",
        );
      }
      if (cluster.server.includes("@")) {
        throw fail("its server URL contains a user or password; give the user a token instead");
      }
      const fault = cluster["proxy-url"] ? proxyFault(cluster["proxy-url"]) : undefined;
      if (fault !== undefined) throw fail(`its proxy-url cannot be used: ${fault}`);
    }
    if (kind !== "user") continue;
    refuseBoth(user, "client-certificate", "client-certificate-data", fail);
    refuseBoth(user, "client-key", "client-key-data", fail);
    refuseBoth(user, "token", "username", fail);
    refuseBoth(user, "token", "password", fail);
    refuseBoth(user, "tokenFile", "username", fail);
    const { as, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = user;
    if (!as && (uid || groups?.length || Object.keys(extra ?? {}).length > 0)) {
      throw fail("as-groups, as-uid and as-user-extra need as, the name of the user to impersonate");
    }
    const { exec, "auth-provider": provider } = user;
    if (provider) {
      throw fail(
        `its auth-provider ${
          provider.name ?? "without a name"
        } is not supported; use an exec credential plugin`,
      );
    }
    if (exec && !exec.command) throw fail("its exec has no command");
    if (exec?.env?.some(({ name }) => !name)) throw fail("its exec has a variable (env) without a name");
    const mode = exec?.interactiveMode;
    if (mode && !["Never", "IfAvailable", "Always"].includes(mode)) {
      throw fail("its exec.interactiveMode must be Never, IfAvailable or Always");
    }
  }
}

/** client-go takes neither of the two. */
function refuseBoth<T>(entry: T, one: keyof T, other: keyof T, fail: (why: string) => KubeconfigError): void {
  if (entry[one] && entry[other]) {
    throw fail(`it has ${String(one)} and ${String(other)}; remove one of them`);
  }
}

// As client-go: a server without a scheme gets https if there are TLS settings.
// https://github.com/kubernetes/client-go/blob/master/rest/url_utils.go
function withScheme(server: string, tls: TlsOptions): string {
  if (server.includes("://")) return server;
  const isSecure = tls.ca !== undefined || tls.cert !== undefined || tls.insecureSkipVerify;
  return `${isSecure ? "https" : "http"}://${server}`;
}

async function tlsOptions(cluster: KubeconfigCluster, user: KubeconfigUser): Promise<TlsOptions> {
  const ca = await dataOrFile(cluster["certificate-authority-data"], cluster["certificate-authority"]);
  const cert = await dataOrFile(user["client-certificate-data"], user["client-certificate"]);
  const key = await dataOrFile(user["client-key-data"], user["client-key"]);
  if ((cert === undefined) !== (key === undefined)) {
    throw new KubeconfigError(
      cert === undefined
        ? "Cannot use the kubeconfig's user: it has a client-key without a client-certificate"
        : "Cannot use the kubeconfig's user: it has a client-certificate without a client-key",
    );
  }
  const serverName = cluster["tls-server-name"] || undefined;
  const insecureSkipVerify = cluster["insecure-skip-tls-verify"] || undefined;
  return defined({ ca, cert, key, serverName, insecureSkipVerify });
}

async function dataOrFile(data: string | undefined, path: string | undefined): Promise<string | undefined> {
  if (data) {
    try {
      return fromBase64(data.replace(/\s/g, ""));
    } catch {
      // The cause is left out: the runtime's message may contain the key.
      throw new KubeconfigError(
        "Cannot use the kubeconfig: a certificate or key in it (a field that ends with -data) is not base64",
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

async function credentials(
  user: KubeconfigUser,
  options: ExecCredentialsOptions & { readonly logger: Logger },
): Promise<Credentials> {
  const { context, cluster, tls, clock, logger } = options;
  // Credentials are sent over TLS only, as by client-go: see `ClientConfig` in
  // https://github.com/kubernetes/client-go/blob/master/tools/clientcmd/client_config.go
  if (!/^https:/i.test(cluster.server)) {
    return { fetch: createTlsFetch(defined({ proxy: tls.proxy })) };
  }
  const { "client-certificate": certFile, "client-key": keyFile } = user;
  const fetch = certFile && keyFile
    ? createFileCertificateFetch({ certFile, keyFile }, tls, clock, logger)
    : createTlsFetch(tls);
  if (user.tokenFile) {
    const file = new FileToken(user.tokenFile, { clock, logger, ...(user.token && { token: user.token }) });
    await file.read();
    return { fetch: forgettingOn401(fetch, (token) => file.forget(token)), token: () => file.read() };
  }
  if (user.token) {
    const fault = tokenFault(user.token.trim());
    if (fault !== undefined) {
      throw new KubeconfigError(
        `Cannot use the context ${JSON.stringify(context)}: its user's token is not valid: ${fault}`,
      );
    }
    return { fetch, token: user.token };
  }
  if (user.username) {
    const basic = toBase64(`${user.username}:${user.password ?? ""}`);
    return { fetch, headers: { Authorization: `Basic ${basic}` } };
  }
  if (user.exec) {
    const plugin = new ExecCredentials(user.exec, options);
    return { fetch: plugin.fetch, token: () => plugin.token() };
  }
  return { fetch };
}

function impersonation(user: KubeconfigUser): Impersonation | undefined {
  const { as, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = user;
  if (!as) return undefined;
  return { user: as, ...(uid && { uid }), ...(groups && { groups }), ...(extra && { extra }) };
}
