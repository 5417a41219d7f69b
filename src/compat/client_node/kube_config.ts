import {
  CredentialsError,
  type FetchFunction,
  headerFault,
  type RestConfig,
} from "../../client/rest_config.ts";
import { type Cluster, newCluster } from "../../client/cluster.ts";
import { KubeconfigError } from "../../node/kubeconfig/kubeconfig.ts";
import { createAgentFetch, createTlsFetch } from "../../node/fetch/tls_fetch.ts";
import { toBase64 } from "../../util/bytes.ts";
import { errorMessage } from "../../util/errors.ts";

/**
 * The part of a `KubeConfig` that is needed, of `@kubernetes/client-node`, 1.x or 2.x. The package itself is
 * not imported: anything with these methods fits.
 */
export interface KubeConfigLike {
  /** The cluster of the current context. */
  getCurrentCluster(): { readonly server: string; readonly proxyUrl?: string } | null;
  /** Writes TLS settings, headers and an agent into the options of an `https` request. */
  applyToHTTPSOptions(options: object): Promise<void>;
  /** The name of the current context. */
  getCurrentContext?(): string;
  /** A context by its name. */
  getContextObject?(name: string): { readonly namespace?: string } | null;
}

/** The options that a `KubeConfig` fills in. */
interface AppliedOptions {
  headers?: Record<string, string | undefined>;
  /** `user:password`. */
  auth?: string;
  agent?: object;
  ca?: unknown;
  cert?: unknown;
  key?: unknown;
  servername?: string;
  rejectUnauthorized?: boolean;
  [more: string]: unknown;
}

/**
 * Options of {@linkcode clusterOfKubeConfig}. A `fetch` takes the place of one with the config's TLS
 * settings: that of an `InMemoryApiServer`, in tests.
 */
export type KubeConfigClusterOptions = Pick<
  RestConfig,
  "fetch" | "logger" | "clock" | "requestTimeoutMs" | "userAgent" | "headers"
>;

/**
 * Makes a `Cluster` of a `KubeConfig`, for everything in this package that takes one. The
 * config's credentials become those of the requests: it is called before each request, so that
 * tokens and certificates that rotate are never stale; connections are kept while its TLS
 * settings stay the same. A proxy of the config is used.
 *
 * For Node, Deno and Bun.
 *
 * @throws {KubeconfigError} The config has no current cluster.
 *
 * @example
 * ```ts
 * import { KubeConfig } from "@kubernetes/client-node";
 * import { SharedIndexInformer } from "@listwatch/cache";
 * import { clusterOfKubeConfig } from "@listwatch/cache/compat/client-node";
 * function newPodInformer() {
 *   const kubeConfig = new KubeConfig();
 *   kubeConfig.loadFromDefault();
 *   return new SharedIndexInformer(clusterOfKubeConfig(kubeConfig).resource("v1/pods"));
 * }
 * ```
 */
export function clusterOfKubeConfig(
  kubeConfig: KubeConfigLike,
  options: KubeConfigClusterOptions = {},
): Cluster {
  const cluster = kubeConfig.getCurrentCluster();
  if (!cluster) throw new KubeconfigError("Cannot use the KubeConfig: it has no current cluster");
  const context = kubeConfig.getContextObject?.(kubeConfig.getCurrentContext?.() ?? "");
  const credentials = new KubeConfigCredentials(kubeConfig, cluster.server, options.fetch);
  return newCluster({
    ...options,
    server: cluster.server,
    ...(context?.namespace && { namespace: context.namespace }),
    token: () => credentials.token(),
    fetch: (url, init) => credentials.fetch(url, init),
  });
}

/** Settings that {@linkcode createTlsFetch} knows, and those that are no settings of a connection. */
const KNOWN = new Set(["headers", "auth", "agent", "ca", "cert", "key", "servername", "rejectUnauthorized"]);

/**
 * A `KubeConfig`'s credentials. Each request asks for the token first, and so finds what was applied for it.
 */
class KubeConfigCredentials {
  readonly #kubeConfig: KubeConfigLike;
  readonly #server: string;
  readonly #fetch: FetchFunction | undefined;
  #applied: AppliedOptions | undefined;
  #connection: { readonly settings: string; readonly fetch: FetchFunction } | undefined;

  constructor(kubeConfig: KubeConfigLike, server: string, fetch: FetchFunction | undefined) {
    this.#kubeConfig = kubeConfig;
    this.#server = server;
    this.#fetch = fetch;
  }

  /**
   * The bearer token of the next request; `""` if its user has
   * none. Sent as such, it is kept out of error texts.
   */
  async token(): Promise<string> {
    const applied: AppliedOptions = {};
    try {
      await this.#kubeConfig.applyToHTTPSOptions(applied);
    } catch (error) {
      const text = `Cannot apply the credentials of the KubeConfig: ${errorMessage(error)}`;
      throw new KubeconfigError(text, { cause: error });
    }
    // A program that goes through its contexts leaves the credentials of the last one in the config.
    if (this.#kubeConfig.getCurrentCluster()?.server !== this.#server) {
      const why = "it was switched to another cluster; make one for each";
      throw new KubeconfigError(`Cannot use the KubeConfig for ${JSON.stringify(this.#server)}: ${why}`);
    }
    this.#applied = applied;
    return /^Bearer (.+)$/is.exec(authorizationOf(applied) ?? "")?.[1].trim() ?? "";
  }

  async fetch(url: string, init: RequestInit = {}): Promise<Response> {
    if (this.#applied === undefined) await this.token();
    const applied = this.#applied!;
    const present = pairsOf(init.headers);
    const names = new Set(present.map(([name]) => name.toLowerCase()));
    const added = headersOf(applied).filter(([name]) => !names.has(name.toLowerCase()));
    const fault = added.map(headerFault).find((fault) => fault !== undefined);
    if (fault !== undefined) throw new CredentialsError(`Cannot use the headers of the KubeConfig: ${fault}`);
    return await (this.#fetch ?? this.#connectionOf(applied))(url, {
      ...init,
      headers: [...present, ...added],
    });
  }

  /**
   * The `fetch` for these TLS settings: the same as before, with its open connections, unless they have
   * changed.
   */
  #connectionOf(applied: AppliedOptions): FetchFunction {
    const { agent, servername, rejectUnauthorized } = applied;
    const proxyUrl = this.#kubeConfig.getCurrentCluster()?.proxyUrl;
    const [ca, cert, key] = [applied.ca, applied.cert, applied.key].map(pemText);
    const others = Object.entries(applied).filter(([name, value]) => !KNOWN.has(name) && value !== undefined);
    const settings = JSON.stringify([proxyUrl, ca, cert, key, servername, rejectUnauthorized, others]);
    if (this.#connection?.settings === settings) return this.#connection.fetch;
    const insecureSkipVerify = rejectUnauthorized === false;
    // The agent knows proxies, and settings that only Node has.
    const fetch = agent !== undefined && (proxyUrl || others.length > 0)
      ? createAgentFetch(agent)
      : createTlsFetch({
        ...(ca !== undefined && !insecureSkipVerify && { ca }),
        ...(cert !== undefined && key !== undefined && { cert, key }),
        ...(servername !== undefined && { serverName: servername }),
        insecureSkipVerify,
      });
    this.#connection = { settings, fetch };
    return fetch;
  }
}

function authorizationOf({ headers = {} }: AppliedOptions): string | undefined {
  return Object.entries(headers).find(([name]) => name.toLowerCase() === "authorization")?.[1];
}

/** The headers that are to be sent, `auth` among them. */
function headersOf(applied: AppliedOptions): [string, string][] {
  const { headers = {}, auth } = applied;
  const given = Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== undefined);
  if (auth === undefined || authorizationOf(applied) !== undefined) return given;
  return [...given, ["Authorization", `Basic ${toBase64(auth)}`]];
}

function pairsOf(headers: RequestInit["headers"]): [string, string][] {
  return Array.isArray(headers) ? headers as [string, string][] : [...new Headers(headers)];
}

function pemText(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value)) return value.map(pemText).join("\n");
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value);
}
