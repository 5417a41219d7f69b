/** The options and steps of `serve`. */

import { type Freshness, FRESHNESSES, type ReadApiOptions } from "../../hono/read_api_options.ts";
import { allowNamespaces } from "../../hono/request/allow_namespaces.ts";
import { NamespaceSet } from "../../informer/namespaces/namespace_set.ts";
import { checkCors } from "../../hono/request/cors.ts";
import { Projection } from "../../text/field_tree.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import { requireNumbers } from "../../util/require_number.ts";
import { quote, UsageError } from "../errors.ts";
import type { AccessLogEntry } from "../readers/access_log.ts";
import { MIN_TOKEN_LENGTH } from "../../hono/request/bearer_tokens.ts";

/** The cluster to reflect: the small simulated one in this process, or the one of a kubeconfig. */
export type ClusterSource =
  | {
    readonly kind: "embedded";
    /** The seed of its random choices; 1 by default, so that every start is alike. */
    readonly seed?: number;
  }
  | {
    readonly kind: "kubeconfig";
    /** The file; by default the files in the `KUBECONFIG` variable, else `~/.kube/config`. */
    readonly path?: string;
    /** The context; the current one by default. */
    readonly context?: string;
  };

/** The form in which `serve` holds objects. */
export type StorageName = "texts" | "short-texts";

/** The values of {@linkcode StorageName}. */
export const STORAGE_NAMES: readonly StorageName[] = ["texts", "short-texts"];

/**
 * Options of {@linkcode serve}. All are optional; the default is the embedded cluster at
 * `http://127.0.0.1:8787`.
 */
export interface ServeOptions
  extends Pick<ReadApiOptions, "allowSecrets" | "clock" | "maxLagMs" | "maxWatches" | "maxWatchesPerClient"> {
  /** The cluster; the embedded one by default. */
  readonly source?: ClusterSource;
  /**
   * The resources to reflect, by the names that kubectl accepts: plural, singular, short name or kind,
   * optionally with version and group (`deploy`, `deployments.apps`, `deployments.v1.apps`). By default the
   * most common ones.
   */
  readonly resources?: readonly string[];
  /**
   * The only namespace to reflect, or several, without `snapshot`; all by default. Cluster-scoped resources
   * are not affected.
   */
  readonly namespace?: string | readonly string[];
  /** The address to listen on; `127.0.0.1` by default. */
  readonly host?: string;
  /** The port to listen on; 8787 by default, 0 for any free port. */
  readonly port?: number;
  /**
   * The bearer token of readers, 16 characters or more; none by default. A browser asks for it as a password.
   */
  readonly token?: string;
  /** A file with the token instead; it is read again about every minute. */
  readonly tokenFile?: string;
  /**
   * Authenticates readers by tokens of the reflected cluster (`TokenReview`), and authorizes them by its RBAC
   * (`SubjectAccessReview`); `false` by default. The page then needs the right to list everything that is
   * reflected.
   */
  readonly clusterRbac?: boolean;
  /**
   * The only namespaces that may be read; all by default. The page, which shows all of them, is refused then.
   */
  readonly readerNamespaces?: readonly string[];
  /**
   * The only resources that may be read with `readerNamespaces`, by the names in {@linkcode
   * Served.resources}.
   */
  readonly readerResources?: readonly string[];
  /** Host names of requests that need no token, besides loopback, addresses and `host`; none by default. */
  readonly allowedHosts?: readonly string[];
  /**
   * Origins whose pages may read, such as `https://dashboard.example`; none by default. `*`: the pages of
   * every origin, which needs a token.
   */
  readonly corsOrigins?: readonly string[];
  /**
   * Serves over TLS with this certificate, a PEM file that is reloaded when it changes; plain HTTP by
   * default.
   */
  readonly tlsCert?: string;
  /** The file of the certificate's private key. */
  readonly tlsKey?: string;
  /** Receives every request when its response has ended. */
  readonly accessLog?: (entry: AccessLogEntry) => void;
  /**
   * Fields that are neither stored nor served, such as `spec.containers[].env`. With any of them, kubectl's
   * annotation of the last applied configuration is left out, too, as it has the whole object in it. By
   * default everything is kept, `managedFields` too: readers receive what the API server has, and may write
   * it back. (A client of your own leaves out both, unless it has `keep: "everything"`.)
   */
  readonly drop?: readonly string[];
  /**
   * How objects are held; `"texts"` by default. `"short-texts"` takes a third of the memory, and more time
   * per request. Readers receive what the API server sent, byte for byte, with both.
   */
  readonly storage?: StorageName;
  /**
   * A folder in which the content is kept, one file per resource: with it, `serve` starts while the API
   * server does not respond, and serves what it had, marked as stale; when the server is back, watches
   * continue. Nothing is kept by default. Not with the embedded cluster. Only the owner may open a folder
   * that is made.
   */
  readonly snapshot?: string;
  /**
   * Sends what is not cached to the API server, with the reader's own bearer token: logs, events, other
   * resources, discovery, access reviews; `false` by default. Needs a cluster over https. Readers must
   * present tokens of the cluster, so it does not go with `token` and `tokenFile`.
   */
  readonly passThrough?: boolean;
  /** Whether `passThrough` includes writes; `false` by default. */
  readonly passThroughWrites?: boolean;
  /**
   * How fresh reads without a resourceVersion are; `"stale-if-error"` by default: as fresh as the API
   * server's own, and the last known state with a `Warning` header while it does not answer.
   */
  readonly freshness?: Freshness;
  /** Serves metrics of the cache at `/metrics`, in the text format of Prometheus; `false` by default. */
  readonly metrics?: boolean;
  /**
   * How long a connection of a reader stays open for the next request; 75 s by default. Longer than a load
   * balancer keeps its own, which would send a request into a connection that is being closed.
   */
  readonly keepAliveMs?: number;
  /** How long answers that are under way may take when {@linkcode Served.stop} is called; 10 s by default. */
  readonly shutdownGraceMs?: number;
  /**
   * Allows a `host` other than loopback without a token: everyone who can reach it may read; `false` by
   * default.
   */
  readonly allowAnonymous?: boolean;
  /** Stops everything at once; {@linkcode Served.finished} then resolves. */
  readonly signal?: AbortSignal;
  /** Receives each step. */
  readonly onStep?: (step: ServeStep) => void;
  /** Receives warnings and errors of the parts; none by default. */
  readonly logger?: Logger;
}

export type ServeSettings =
  & ServeOptions
  & Required<Pick<ServeOptions, "clock" | "logger" | "signal" | "onStep">>;

/** A step of {@linkcode serve} while it starts and runs, in this order. */
export type ServeStep =
  /** The cluster responded. */
  | { readonly type: "connected"; readonly cluster: string; readonly server: string }
  /** The cluster does not respond: what the snapshots have is served until it does. */
  | { readonly type: "away"; readonly cluster: string; readonly server: string; readonly message: string }
  /** Default resources were skipped, as the server refuses to list them. */
  | { readonly type: "skipped"; readonly resources: readonly string[] }
  /** The server listens; the first lists may be incomplete. */
  | {
    readonly type: "listening";
    readonly url: string;
    readonly resources: readonly string[];
    /** The readers that are permitted, as text for people. */
    readonly access: string;
  }
  /** Progress of the first lists; reported often. */
  | { readonly type: "syncing"; readonly progress: readonly SyncProgress[] }
  /** Every resource has its first list. */
  | { readonly type: "synced"; readonly objects: number; readonly durationMs: number }
  /** A resource, and perhaps others, cannot be read at present; it is retried until it can. */
  | { readonly type: "trouble"; readonly resource: string; readonly message: string }
  /** No resource fails any more; `resource` is the last one that did. */
  | { readonly type: "recovered"; readonly resource: string };

/** The progress of one resource's first list. */
export interface SyncProgress {
  readonly resource: string;
  readonly synced: boolean;
  readonly items: number;
  /** The number of items to come, if the server reports it. */
  readonly remaining?: number;
}

export function checkServeOptions(options: ServeOptions): void {
  const { allowAnonymous, allowSecrets, clusterRbac, metrics, passThrough, passThroughWrites } = options;
  const booleans = { allowAnonymous, allowSecrets, clusterRbac, metrics, passThrough, passThroughWrites };
  for (const [name, value] of Object.entries(booleans)) {
    if (value !== undefined && typeof value !== "boolean") {
      throw new UsageError(`${name} must be true or false`);
    }
  }
  if ((options.tlsCert === undefined) !== (options.tlsKey === undefined)) {
    throw new UsageError(
      "A certificate needs its key, and a key its certificate: --tls-cert FILE --tls-key FILE",
    );
  }
  const { snapshot } = options;
  if (snapshot !== undefined && (typeof snapshot !== "string" || snapshot === "")) {
    throw new UsageError("snapshot must be the path of a folder");
  }
  const { source = { kind: "embedded" } } = options;
  const ofRealOnes = { "cluster-rbac": clusterRbac, snapshot, "pass-through": passThrough };
  for (const [flag, value] of Object.entries(ofRealOnes)) {
    if (!value || source.kind !== "embedded") continue;
    throw new UsageError(`--${flag} needs a real cluster: add --kubeconfig or --context`);
  }
  const { namespace } = options;
  if (namespace !== undefined) orUsageError(() => new NamespaceSet([namespace].flat()));
  if (snapshot !== undefined && Array.isArray(namespace)) {
    throw new UsageError("--snapshot needs one namespace, or all: it saves no set of them");
  }
  const { keepAliveMs, shutdownGraceMs } = options;
  const { maxLagMs, maxWatches, maxWatchesPerClient } = options;
  orUsageError(() => {
    requireNumbers("serve", { keepAliveMs, shutdownGraceMs });
    requireNumbers("serve", { maxWatches, maxWatchesPerClient }, { least: 1, mayBeInfinite: true });
    requireNumbers("serve", { maxLagMs }, { mayBeInfinite: true });
  });
  checkCorsOrigins(options);
  for (const [name, known] of [["freshness", FRESHNESSES], ["storage", STORAGE_NAMES]] as const) {
    const value: unknown = options[name];
    if (value === undefined || known.some((one) => one === value)) continue;
    throw new UsageError(`${name} must be ${known.join(", ")}, not ${quote(String(value))}`);
  }
  checkPassThrough(options);
  checkReaders(options);
  orUsageError(() => new Projection({ drop: options.drop ?? [] }));
}

function checkCorsOrigins({ corsOrigins, token, tokenFile, clusterRbac }: ServeOptions): void {
  if (corsOrigins === undefined) return;
  if (!corsOrigins.includes("*")) return orUsageError(() => checkCors({ origins: corsOrigins }));
  if (corsOrigins.length > 1) {
    throw new UsageError("--cors-origin '*' allows every origin: remove the others");
  }
  if (token !== undefined || tokenFile !== undefined || clusterRbac) return;
  throw new UsageError(
    "--cors-origin '*' needs --token-file, --token or --cluster-rbac: " +
      "otherwise every page that a browser shows could read the whole cache",
  );
}

function checkPassThrough(options: ServeOptions): void {
  const { passThrough, passThroughWrites, token, tokenFile } = options;
  if (passThroughWrites && !passThrough) throw new UsageError("--pass-through-writes needs --pass-through");
  if (!passThrough) return;
  if (token !== undefined || tokenFile !== undefined) {
    throw new UsageError(
      "--pass-through needs readers that present tokens of the cluster: use --cluster-rbac instead of a token of the cache",
    );
  }
}

function checkReaders(options: ServeOptions): void {
  const { host = "127.0.0.1", token, tokenFile, allowAnonymous, clusterRbac } = options;
  const { readerNamespaces, readerResources } = options;
  const needsToken = token !== undefined || tokenFile !== undefined;
  if (token !== undefined && tokenFile !== undefined) {
    throw new UsageError("--token and --token-file contradict each other: remove one of them");
  }
  if (needsToken && allowAnonymous) {
    throw new UsageError("A token and --allow-anonymous contradict each other: remove one of them");
  }
  if (clusterRbac && (needsToken || allowAnonymous)) {
    throw new UsageError(
      "With --cluster-rbac, readers present tokens of the cluster: remove --token, --token-file and --allow-anonymous",
    );
  }
  if (token !== undefined) checkToken(token);
  if (!isLoopback(host) && !needsToken && !clusterRbac && !allowAnonymous) {
    throw new UsageError(
      `Cannot listen on ${host}: every client that reaches it could read the whole cache; ` +
        "set a token with --token-file, use --cluster-rbac, or pass --allow-anonymous",
    );
  }
  if (readerResources !== undefined && readerNamespaces === undefined) {
    throw new UsageError("--reader-resources needs --reader-namespaces");
  }
  if (readerNamespaces !== undefined) orUsageError(() => allowNamespaces(readerNamespaces));
}

function orUsageError(check: () => void): void {
  try {
    check();
  } catch (error) {
    throw new UsageError(errorMessage(error));
  }
}

export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return name === "localhost" || name === "::1" || /^127(\.[0-9]{1,3}){3}$/.test(name);
}

export function checkToken(token: string, name: string = "The token"): void {
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new UsageError(`${name} must consist of printable ASCII characters without spaces`);
  }
  if (token.length < MIN_TOKEN_LENGTH) {
    throw new UsageError(
      `${name} is shorter than ${MIN_TOKEN_LENGTH} characters and could be guessed: ` +
        "`openssl rand -hex 16` prints a good one",
    );
  }
}
