import process from "node:process";
import { type Cluster, newCluster } from "../../client/cluster.ts";
import type { RestConfig } from "../../client/rest_config.ts";
import { type Clock, realClock } from "../../util/clock.ts";
import { consoleLogger, type Logger } from "../../util/logger.ts";
import type { Metrics } from "../../util/metrics.ts";
import { restConfigFromKubeconfig } from "./kubeconfig_rest_config.ts";
import { readFile } from "node:fs/promises";
import { errorChain, errorMessage } from "../../util/errors.ts";
import {
  FileToken,
  forgettingOn401,
  hideCredentials,
  hideSecrets,
  redactedCluster,
  redactedUser,
} from "./rest_config.ts";
import {
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigContext,
  KubeconfigError,
  type KubeconfigUser,
  parseKubeconfigYaml,
} from "./kubeconfig.ts";
import { type Environment, proxyFromEnvironment } from "../fetch/proxy.ts";
import { createTlsFetch } from "../fetch/tls_fetch.ts";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { defined, isRecord } from "../../util/json.ts";

/** Options of {@linkcode loadCluster}. */
export interface LoadClusterOptions extends InClusterOptions {
  /** The only kubeconfig file to read; it must exist. */
  readonly kubeconfig?: string;
  /** The context of the kubeconfig; its current one by default. */
  readonly context?: string;
  /** `Cluster.namespace`; that of the context or of the service account by default, or `default`. */
  readonly namespace?: string;
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
  const { kubeconfig: path, context, env = process.env, serviceAccountPath, clock, logger } = options;
  const found = await findKubeconfig({ env, path });
  const isEmpty = found === undefined || (found.clusters.size === 0 && found.contexts.size === 0);
  const isPod = Boolean(env.KUBERNETES_SERVICE_HOST) && Boolean(env.KUBERNETES_SERVICE_PORT);
  // A context that is given is one of a kubeconfig.
  if (isEmpty && isPod && path === undefined && context === undefined) {
    return await inClusterConfig({ env, clock, logger, serviceAccountPath });
  }
  if (found === undefined) throw noKubeconfig(env);
  return await restConfigFromKubeconfig(found, { env, clock, logger, context });
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Options of {@linkcode inClusterConfig}. */
export interface InClusterOptions {
  /** Environment variables; the process's own by default. */
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
  const { env = process.env, serviceAccountPath = SERVICE_ACCOUNT } = options;
  const { clock = realClock, logger = consoleLogger } = options;
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
  const tls = defined({ ca, proxy });
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

/** Options of {@linkcode loadKubeconfig}. */
export interface LoadKubeconfigOptions {
  /** The only file to read; it must exist. By default the files in `KUBECONFIG`, or `~/.kube/config`. */
  readonly path?: string;
  /** Environment variables; the process's own by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads and merges kubeconfig files, as client-go does
 * (https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/#merging-kubeconfig-files):
 * a cluster, user or context comes whole from the first file that names it, the current
 * context from the first file that sets one. Missing files of `KUBECONFIG` are skipped.
 * Relative paths in a file are relative to its folder.
 *
 * @throws {KubeconfigError} No file exists, or one cannot be read.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
 * async function connect(context: string) {
 *   return newCluster(await restConfigFromKubeconfig(await loadKubeconfig(), { context }));
 * }
 * ```
 */
export async function loadKubeconfig(options: LoadKubeconfigOptions = {}): Promise<Kubeconfig> {
  const found = await findKubeconfig(options);
  if (found === undefined) throw noKubeconfig(options.env ?? process.env);
  return found;
}

function noKubeconfig(env: Environment): KubeconfigError {
  const paths = pathsOf(env);
  return new KubeconfigError(
    `Cannot find a kubeconfig: ${paths.join(", ")} ${paths.length === 1 ? "does" : "do"} not exist; ` +
      "name a file, or set KUBECONFIG",
  );
}

/** The result of {@linkcode loadKubeconfig}; `undefined` if no `path` is given and no file is there. */
export async function findKubeconfig(options: LoadKubeconfigOptions = {}): Promise<Kubeconfig | undefined> {
  const { path, env = process.env } = options;
  if (path !== undefined) return merge([await readOne(resolve(path))]);
  const files: Loaded[] = [];
  for (const file of pathsOf(env)) {
    try {
      files.push(await readOne(resolve(file)));
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  return files.length > 0 ? merge(files) : undefined;
}

/** The files in `KUBECONFIG`, each once, or the default one. */
function pathsOf(env: Environment): string[] {
  const listed = [...new Set((env.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== ""))];
  return listed.length > 0 ? listed : [join(env.HOME || homedir(), ".kube", "config")];
}

interface Loaded {
  readonly path: string;
  readonly content: Readonly<Record<string, unknown>>;
}

async function readOne(path: string): Promise<Loaded> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const why = isMissing(error) ? "the file does not exist" : errorMessage(error);
    throw new KubeconfigError(`Cannot read the kubeconfig ${path}: ${why}`, { cause: error });
  }
  const content = await parseKubeconfigYaml(text, path) ?? {};
  if (!isRecord(content)) {
    throw new KubeconfigError(`Cannot read the kubeconfig ${path}: it is not a mapping`);
  }
  for (const [field, wanted] of [["apiVersion", "v1"], ["kind", "Config"]] as const) {
    if ((content[field] || wanted) === wanted) continue;
    throw new KubeconfigError(`Cannot read the kubeconfig ${path}: its ${field} is not ${wanted}`);
  }
  return { path, content };
}

function merge(files: readonly Loaded[]): Kubeconfig {
  let current: string | undefined;
  const clusters = new Map<string, KubeconfigCluster>();
  const users = new Map<string, KubeconfigUser>();
  const contexts = new Map<string, KubeconfigContext>();
  const origins = new Map<string, string>();
  for (const { path, content } of files) {
    const named = content["current-context"] ?? "";
    if (typeof named !== "string") {
      throw new KubeconfigError(`Cannot read the kubeconfig ${path}: current-context is not a string`);
    }
    current ||= named;
    const from = { file: path, origins };
    collect(clusters, content.clusters, { ...from, field: "cluster" });
    collect(users, content.users, { ...from, field: "user" });
    collect(contexts, content.contexts, { ...from, field: "context" });
  }
  for (const user of users.values()) hideSecrets(user, redactedUser);
  for (const cluster of clusters.values()) hideSecrets(cluster, redactedCluster);
  const merged = { files: files.map((file) => file.path), clusters, users, contexts, origins };
  return current ? { ...merged, "current-context": current } : merged;
}

interface Collected {
  /** The kind of the entries. */
  readonly field: "cluster" | "user" | "context";
  readonly file: string;
  readonly origins: Map<string, string>;
}

/** The fields that hold file paths. */
const PATHS: readonly string[] = ["certificate-authority", "client-certificate", "client-key", "tokenFile"];

function collect<T>(into: Map<string, T>, entries: unknown, options: Collected): void {
  const { field, file, origins } = options;
  const fail = (why: string) => new KubeconfigError(`Cannot read the kubeconfig ${file}: ${why}`);
  if (entries === undefined || entries === null) return;
  if (!Array.isArray(entries)) throw fail(`${field}s is not a list`);
  const names = new Set<string>();
  for (const listed of entries) {
    const entry = listed ?? {};
    if (!isRecord(entry)) throw fail(`a ${field} has no name`);
    const name = entry.name ?? "";
    if (typeof name !== "string") throw fail(`the name of a ${field} is not a string: write it in quotes`);
    if (names.has(name)) throw fail(`two ${field}s have the name ${JSON.stringify(name)}`);
    names.add(name);
    if (into.has(name)) continue;
    const given: unknown = entry[field] ?? {};
    if (!isRecord(given)) throw fail(`the ${field} ${JSON.stringify(name)} is not a mapping`);
    const value = { ...given };
    for (const key of PATHS) {
      const path = value[key];
      if (typeof path === "string" && path !== "" && !isAbsolute(path)) {
        value[key] = join(dirname(file), path);
      }
    }
    const { exec } = value;
    if (isRecord(exec) && typeof exec.command === "string" && /[/\\]/.test(exec.command)) {
      if (!isAbsolute(exec.command)) value.exec = { ...exec, command: join(dirname(file), exec.command) };
    }
    into.set(name, value as T);
    origins.set(`${field} ${name}`, file);
  }
}

function isMissing(error: unknown): boolean {
  return errorChain(error).some((each) => (each as { code?: unknown }).code === "ENOENT");
}
