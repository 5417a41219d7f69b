/**
 * What `serve` can be told.
 * @module
 */

import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import type { AccessLogEntry } from "./access_log.ts";

/**
 * Which cluster to reflect: the small living one that this program brings along, or the one that a kubeconfig names.
 *
 * @example
 * ```ts
 * import type { ClusterSource } from "@listwatch/cache/cli";
 * const embedded: ClusterSource = { kind: "embedded", seed: 42 };
 * const production: ClusterSource = { kind: "kubeconfig", context: "prod" };
 * ```
 */
export type ClusterSource =
  | {
    readonly kind: "embedded";
    /** The seed of everything random in it; 1 by default, so that every start looks alike. */
    readonly seed?: number;
  }
  | {
    readonly kind: "kubeconfig";
    /** The file; by default those of the `KUBECONFIG` variable, else `~/.kube/config`. */
    readonly path?: string;
    /** The context; the file's current one by default. */
    readonly context?: string;
  };

/**
 * Options of {@linkcode serve}. Every one may be left out: the embedded cluster, at `http://127.0.0.1:8787`.
 *
 * @example
 * ```ts
 * import type { ServeOptions } from "@listwatch/cache/cli";
 * const options: ServeOptions = {
 *   source: { kind: "kubeconfig", context: "prod" },
 *   resources: ["pods", "nodes", "deployments.apps"],
 *   port: 9000,
 *   onStep: (step) => console.log(step.type),
 * };
 * ```
 */
export interface ServeOptions {
  /** The cluster; the embedded one by default. */
  readonly source?: ClusterSource;
  /**
   * The resources to reflect, by the names that kubectl knows: plural, singular, short name or kind, with a version
   * and group if need be (`deploy`, `deployments.apps`, `deployments.v1.apps`). By default the usual ones.
   */
  readonly resources?: readonly string[];
  /** Only this namespace's objects (and those of resources that have no namespace); all of them by default. */
  readonly namespace?: string;
  /** The address to listen on; `127.0.0.1` by default. */
  readonly host?: string;
  /** The port to listen on; 8787 by default, 0 for any free one. */
  readonly port?: number;
  /** What readers must present as a bearer token (a browser asks for it as a password); none by default. */
  readonly token?: string;
  /** A file that holds the token instead; it is read again about every minute. */
  readonly tokenFile?: string;
  /**
   * Asks readers for tokens of the reflected cluster (`TokenReview`), and lets each read what the cluster's own RBAC lets
   * them read (`SubjectAccessReview`); `false` by default. The page is for whoever may list all that is reflected.
   */
  readonly clusterRbac?: boolean;
  /** The only namespaces that may be read; all by default. The page, which shows all, is then for nobody. */
  readonly readerNamespaces?: readonly string[];
  /** With `readerNamespaces`: the only resources that may be read, by the names that {@linkcode Served.resources} has. */
  readonly readerResources?: readonly string[];
  /** The names by which readers may call this server where no token is asked for, besides addresses and `host`. */
  readonly allowedHosts?: readonly string[];
  /** Serves over TLS with this certificate, a PEM file that is read again when it changes; plain HTTP by default. */
  readonly tlsCert?: string;
  /** The file of the certificate's key. */
  readonly tlsKey?: string;
  /** Is told every request when its answer has ended; nobody by default. */
  readonly accessLog?: (entry: AccessLogEntry) => void;
  /** Fields that are not held, and so not served, such as `spec.containers[].env`; none by default. */
  readonly drop?: readonly string[];
  /** Lets anyone who reaches a `host` beyond this machine read without a token; `false` by default. */
  readonly allowAnonymous?: boolean;
  /** Lets Secrets be among `resources`; `false` by default. */
  readonly allowSecrets?: boolean;
  /** Ends everything; the promise of {@linkcode Served.finished} then resolves. */
  readonly signal?: AbortSignal;
  /** Is told what happens, step by step; nobody by default. */
  readonly onStep?: (step: ServeStep) => void;
  /** Where the parts below report; nowhere by default. */
  readonly logger?: Logger;
  /** Where time comes from; the system's clock by default. */
  readonly clock?: Clock;
}

/**
 * What {@linkcode serve} tells while it starts and runs, in this order.
 *
 * @example
 * ```ts
 * import type { ServeStep } from "@listwatch/cache/cli";
 * function onStep(step: ServeStep): void {
 *   if (step.type === "listening") console.log(`at ${step.url}`);
 *   if (step.type === "synced") console.log(`${step.objects} objects`);
 * }
 * ```
 */
export type ServeStep =
  /** The cluster answered. */
  | { readonly type: "connected"; readonly cluster: string; readonly server: string }
  /** Default resources are left out, as the server refuses to list them. */
  | { readonly type: "skipped"; readonly resources: readonly string[] }
  /** Readers are answered from now on; nothing may have synced yet. */
  | {
    readonly type: "listening";
    readonly url: string;
    readonly resources: readonly string[];
    /** Who may read, in words. */
    readonly access: string;
  }
  /** The first lists go on. Told often; `remaining` where the server says so. */
  | { readonly type: "syncing"; readonly progress: readonly SyncProgress[] }
  /** Every resource holds its whole first list. */
  | { readonly type: "synced"; readonly objects: number; readonly durationMs: number }
  /** A resource (and maybe others) cannot be read at present, and why; it is tried again until it can. */
  | { readonly type: "trouble"; readonly resource: string; readonly message: string }
  /** Every resource is read again; `resource` is the last that was not. */
  | { readonly type: "recovered"; readonly resource: string };

/**
 * How far one resource's first list has come.
 *
 * @example
 * ```ts
 * import type { SyncProgress } from "@listwatch/cache/cli";
 * const progress: SyncProgress = { resource: "pods", synced: false, items: 4_500, remaining: 7_500 };
 * ```
 */
export interface SyncProgress {
  readonly resource: string;
  readonly synced: boolean;
  readonly items: number;
  readonly remaining?: number;
}
