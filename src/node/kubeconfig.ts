/**
 * The entries of kubeconfig files.
 * @module
 */

import { CacheError } from "../util/errors.ts";

/**
 * A cluster of a kubeconfig, with the field names of the file.
 *
 * @category Node
 */
export interface KubeconfigCluster {
  readonly server: string;
  readonly "tls-server-name"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  /** A file; an absolute path after loading. */
  readonly "certificate-authority"?: string;
  /** Base64; takes precedence over the file. */
  readonly "certificate-authority-data"?: string;
  readonly "proxy-url"?: string;
  /** Requests uncompressed responses. */
  readonly "disable-compression"?: boolean;
}

/**
 * A credential plugin: a program that prints credentials.
 *
 * @category Node
 */
export interface ExecConfig {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
  /** `Always` is refused: the plugin gets no terminal. */
  readonly interactiveMode?: "Never" | "IfAvailable" | "Always";
}

/**
 * A user of a kubeconfig. Inline data takes precedence over files, a token over a token file. The credentials of a
 * loaded user are redacted in logs and in JSON.
 *
 * @category Node
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
 * A context of a kubeconfig: the names of a cluster and a user.
 *
 * @category Node
 */
export interface KubeconfigContext {
  readonly cluster: string;
  readonly user?: string;
  readonly namespace?: string;
}

/**
 * A kubeconfig, merged from its files.
 *
 * @category Node
 */
export interface Kubeconfig {
  /** The files that were read. */
  readonly files: readonly string[];
  readonly "current-context"?: string;
  readonly clusters: ReadonlyMap<string, KubeconfigCluster>;
  readonly users: ReadonlyMap<string, KubeconfigUser>;
  readonly contexts: ReadonlyMap<string, KubeconfigContext>;
  /** The file of each entry, by `cluster NAME`, `user NAME` and `context NAME`; for error texts. */
  readonly origins?: ReadonlyMap<string, string>;
}

/**
 * A kubeconfig, token file or service account cannot be read or used.
 *
 * @example
 * ```ts
 * import { KubeconfigError, loadKubeconfig } from "@listwatch/cache/node";
 * await loadKubeconfig({ path: "/no/such/file" }).catch((error) => {
 *   console.log(error instanceof KubeconfigError, error.message);
 * });
 * ```
 *
 * @category Node
 */
export class KubeconfigError extends CacheError {
  /** Makes the error. */
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("Kubeconfig", message, options);
  }
}
