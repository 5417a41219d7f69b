/**
 * Kubeconfig files.
 * @module
 */

import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import process from "node:process";
import { isAlias, isScalar, LineCounter, parseDocument, Scalar, visit } from "yaml";
import { CacheError, errorMessage } from "../util/errors.ts";
import { BOOLEAN_FIELDS, isMapping } from "./kubeconfig_fields.ts";
import { hideSecrets, redactedCluster, redactedUser } from "./hidden_secrets.ts";

/**
 * A cluster of a kubeconfig, by the names the file uses.
 *
 * @example
 * ```ts
 * import type { KubeconfigCluster } from "@listwatch/cache/node";
 * const cluster: KubeconfigCluster = {
 *   server: "https://10.0.0.1:6443",
 *   "certificate-authority": "/etc/kubernetes/ca.crt",
 * };
 * ```
 */
export interface KubeconfigCluster {
  readonly server: string;
  readonly "tls-server-name"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  /** A file; absolute after loading. */
  readonly "certificate-authority"?: string;
  /** Base64; wins over the file. */
  readonly "certificate-authority-data"?: string;
  readonly "proxy-url"?: string;
  /** Asks for answers that are not compressed. */
  readonly "disable-compression"?: boolean;
}

/**
 * A program that gives credentials.
 *
 * @example
 * ```ts
 * import type { ExecConfig } from "@listwatch/cache/node";
 * const exec: ExecConfig = {
 *   apiVersion: "client.authentication.k8s.io/v1",
 *   command: "aws",
 *   args: ["eks", "get-token", "--cluster-name", "prod"],
 * };
 * ```
 */
export interface ExecConfig {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
  /** A plugin that must ask a person (`Always`) is refused. */
  readonly interactiveMode?: "Never" | "IfAvailable" | "Always";
}

/**
 * A user of a kubeconfig. Inline data wins over files, a token over a token file. One that was loaded shows that it has
 * credentials, and not which, where it is logged or made into JSON.
 *
 * @example
 * ```ts
 * import type { KubeconfigUser } from "@listwatch/cache/node";
 * const user: KubeconfigUser = { tokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token" };
 * ```
 */
export interface KubeconfigUser {
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly as?: string;
  readonly "as-uid"?: string;
  readonly "as-groups"?: readonly string[];
  readonly "as-user-extra"?: Readonly<Record<string, readonly string[]>>;
  readonly exec?: ExecConfig;
  readonly "auth-provider"?: { readonly name?: string };
}

/**
 * A context of a kubeconfig: a cluster and a user by their names.
 *
 * @example
 * ```ts
 * import type { KubeconfigContext } from "@listwatch/cache/node";
 * const context: KubeconfigContext = { cluster: "prod", user: "jane", namespace: "shop" };
 * ```
 */
export interface KubeconfigContext {
  readonly cluster: string;
  readonly user?: string;
  readonly namespace?: string;
}

/**
 * A kubeconfig, merged from its files.
 *
 * @example
 * ```ts
 * import type { Kubeconfig } from "@listwatch/cache/node";
 * const kubeconfig: Kubeconfig = {
 *   files: [],
 *   "current-context": "dev",
 *   clusters: new Map([["dev", { server: "http://127.0.0.1:8001" }]]),
 *   users: new Map(),
 *   contexts: new Map([["dev", { cluster: "dev" }]]),
 * };
 * ```
 */
export interface Kubeconfig {
  /** The files it was read from. */
  readonly files: readonly string[];
  readonly "current-context"?: string;
  readonly clusters: ReadonlyMap<string, KubeconfigCluster>;
  readonly users: ReadonlyMap<string, KubeconfigUser>;
  readonly contexts: ReadonlyMap<string, KubeconfigContext>;
  /** The file that each entry was taken from, as `cluster NAME`, `user NAME` and `context NAME`: for error texts. */
  readonly origins?: ReadonlyMap<string, string>;
}

/**
 * A kubeconfig cannot be read, or does not hold what was asked of it.
 *
 * @example
 * ```ts
 * import { KubeconfigError, loadKubeconfig } from "@listwatch/cache/node";
 * await loadKubeconfig({ path: "/no/such/file" }).catch((error) => {
 *   console.log(error instanceof KubeconfigError, error.message);
 * });
 * ```
 */
export class KubeconfigError extends CacheError {
  /** Makes the error. */
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("Kubeconfig", message, options);
  }
}

/**
 * Options of {@linkcode loadKubeconfig}.
 *
 * @example
 * ```ts
 * import type { LoadKubeconfigOptions } from "@listwatch/cache/node";
 * const options: LoadKubeconfigOptions = { path: "/home/jane/.kube/config" };
 * ```
 */
export interface LoadKubeconfigOptions {
  /** The one file to read; it must be there. By default the files of `KUBECONFIG`, or `~/.kube/config`. */
  readonly path?: string;
  /** Environment variables; those of the process by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Reads and merges kubeconfig files, as client-go does: a cluster, user or context is taken whole from the first file
 * that names it, the current context from the first that sets one. Files of `KUBECONFIG` that are not there are passed
 * over. Relative paths in a file are taken from its folder.
 *
 * @throws {KubeconfigError} No file is there, or one cannot be read.
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
  const { path, env = process.env } = options;
  if (path !== undefined) return merge([await readOne(resolve(path))]);
  const listed = [...new Set((env.KUBECONFIG ?? "").split(delimiter).filter((file) => file !== ""))];
  const paths = listed.length > 0 ? listed : [join(env.HOME || homedir(), ".kube", "config")];
  const files: Loaded[] = [];
  for (const file of paths) {
    try {
      files.push(await readOne(resolve(file)));
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
  if (files.length > 0) return merge(files);
  throw new KubeconfigError(
    `Cannot find a kubeconfig: ${paths.join(", ")} ${paths.length === 1 ? "is" : "are"} not there; ` +
      "name a file, or set KUBECONFIG",
  );
}

interface Loaded {
  readonly path: string;
  readonly content: RawKubeconfig;
}

interface RawKubeconfig {
  readonly "current-context"?: unknown;
  readonly clusters?: unknown;
  readonly users?: unknown;
  readonly contexts?: unknown;
}

async function readOne(path: string): Promise<Loaded> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const why = isMissing(error) ? "it is not there" : errorMessage(error);
    throw new KubeconfigError(`Cannot read the kubeconfig ${path}: ${why}`, { cause: error });
  }
  const content = parseYaml(text, path);
  if (content === null || content === undefined) return { path, content: {} };
  if (!isMapping(content)) {
    throw new KubeconfigError(`Cannot read the kubeconfig ${path}: it holds no mapping`);
  }
  return { path, content };
}

// The words that YAML 1.1 has for true and false, and YAML 1.2 has not.
const TRUE_WORDS = new Set(["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"]);
const FALSE_WORDS = new Set(["n", "N", "no", "No", "NO", "off", "Off", "OFF"]);

/**
 * Reads YAML. In the fields that must be true or false, `yes` and its like are what YAML 1.1 makes of them, as kubectl
 * reads them; elsewhere they are texts. What is wrong is told without a word of the text: it may be a credential.
 */
function parseYaml(text: string, path: string): unknown {
  const fail = (what: string, line?: number) =>
    new KubeconfigError(
      `Cannot read the kubeconfig ${path}: it is not YAML: ${what}${
        line === undefined ? "" : ` at line ${line}`
      }`,
    );
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { merge: true, prettyErrors: false, lineCounter, logLevel: "silent" });
  const [error] = document.errors;
  if (error !== undefined) {
    throw fail(error.code.toLowerCase().replaceAll("_", " "), lineCounter.linePos(error.pos[0]).line);
  }
  let unknownAlias: number | undefined;
  visit(document, {
    Pair(_, pair) {
      if (!isScalar(pair.key) || !BOOLEAN_FIELDS.has(String(pair.key.value))) return;
      const value = isAlias(pair.value) ? pair.value.resolve(document) : pair.value;
      if (!isScalar(value) || value.type !== Scalar.PLAIN || typeof value.value !== "string") return;
      if (TRUE_WORDS.has(value.value)) pair.value = new Scalar(true);
      if (FALSE_WORDS.has(value.value)) pair.value = new Scalar(false);
    },
    Alias(_, alias) {
      if (alias.resolve(document) === undefined) unknownAlias ??= alias.range?.[0] ?? 0;
    },
  });
  if (unknownAlias !== undefined) {
    throw fail("an alias without anchor", lineCounter.linePos(unknownAlias).line);
  }
  try {
    return document.toJS();
  } catch {
    throw fail("too many aliases");
  }
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
      throw new KubeconfigError(`Cannot read the kubeconfig ${path}: current-context is no text`);
    }
    current ||= named;
    const from = { file: path, origins };
    collect(clusters, content.clusters, { ...from, field: "cluster", paths: ["certificate-authority"] });
    collect(users, content.users, {
      ...from,
      field: "user",
      paths: ["client-certificate", "client-key", "tokenFile"],
    });
    collect(contexts, content.contexts, { ...from, field: "context", paths: [] });
  }
  for (const user of users.values()) hideSecrets(user, redactedUser);
  for (const cluster of clusters.values()) hideSecrets(cluster, redactedCluster);
  const merged = { files: files.map((file) => file.path), clusters, users, contexts, origins };
  return current ? { ...merged, "current-context": current } : merged;
}

interface Collected {
  /** What the entries are: `cluster`, `user` or `context`. */
  readonly field: string;
  readonly file: string;
  /** The fields that name files. */
  readonly paths: readonly string[];
  readonly origins: Map<string, string>;
}

function collect<T>(into: Map<string, T>, entries: unknown, options: Collected): void {
  const { field, file, paths, origins } = options;
  const fail = (why: string) => new KubeconfigError(`Cannot read the kubeconfig ${file}: ${why}`);
  if (entries === undefined || entries === null) return;
  if (!Array.isArray(entries)) throw fail(`${field}s is no list`);
  for (const entry of entries) {
    const name: unknown = entry?.name;
    if (name === undefined || name === null) throw fail(`a ${field} has no name`);
    if (typeof name !== "string") throw fail(`the name of a ${field} is no text: write it in quotes`);
    if (into.has(name)) continue;
    const given: unknown = entry[field] ?? {};
    if (!isMapping(given)) throw fail(`the ${field} ${JSON.stringify(name)} is no mapping`);
    const value = { ...given };
    for (const key of paths) {
      const path = value[key];
      if (typeof path === "string" && path !== "" && !isAbsolute(path)) {
        value[key] = join(dirname(file), path);
      }
    }
    const { exec } = value;
    if (isMapping(exec) && typeof exec.command === "string" && /[/\\]/.test(exec.command)) {
      if (!isAbsolute(exec.command)) value.exec = { ...exec, command: join(dirname(file), exec.command) };
    }
    into.set(name, value as T);
    origins.set(`${field} ${name}`, file);
  }
}

function isMissing(error: unknown): boolean {
  for (let e = error; e instanceof Error; e = e.cause) {
    if ((e as { code?: unknown }).code === "ENOENT") return true;
  }
  return false;
}
