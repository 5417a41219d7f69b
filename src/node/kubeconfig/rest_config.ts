/**
 * What every REST config of this room has in common: TLS settings, credentials that logs do not show, tokens
 * in files.
 * @module
 */

import { readFile } from "node:fs/promises";
import { tokenFault } from "../../client/credentials.ts";
import type { FetchFunction, RestConfig } from "../../client/rest_config.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";
import { type KubeconfigCluster, KubeconfigError, type KubeconfigUser } from "./kubeconfig.ts";

/** Which certificates to trust, and which one to present. */
export interface TlsOptions {
  /** The trusted certificate authorities, PEM; the runtime's own roots by default. */
  readonly ca?: string;
  /** A client certificate, PEM. */
  readonly cert?: string;
  /** The private key of the client certificate, PEM. */
  readonly key?: string;
  /** The name that the server's certificate must have; the host of the URL by default. */
  readonly serverName?: string;
  /** Accepts any server certificate; `false` by default. For experiments only. */
  readonly insecureSkipVerify?: boolean;
}

/** Makes `console.log` and `JSON.stringify` show a config without its credentials. */
export function hideCredentials(config: RestConfig): RestConfig {
  return hideSecrets(config, redactedConfig, { isCopied: true });
}

function redactedConfig(config: RestConfig): object {
  const { server, token, headers, impersonate, namespace } = config;
  return {
    server,
    ...(token !== undefined && { token: REDACTED }),
    ...(headers !== undefined && { headers: redactedHeaders(headers) }),
    ...(impersonate !== undefined && { impersonate }),
    ...(namespace !== undefined && { namespace }),
  };
}

/**
 * Wraps a fetch: a 401 response calls `forget` with the token that was refused,
 * so that the next request gets new credentials.
 */
export function forgettingOn401(fetch: FetchFunction, forget: (refused: string) => void): FetchFunction {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (response.status === 401) {
      forget((new Headers(init?.headers).get("Authorization") ?? "").replace(/^Bearer /, ""));
    }
    return response;
  };
}

/** The text shown instead of a credential. */
export const REDACTED: string = "[redacted]";

// `console.log` calls this method on Node, Deno and Bun: https://nodejs.org/api/util.html#utilinspectcustom
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/**
 * Makes `console.log`, `util.inspect` and `JSON.stringify` show a redacted copy of an object. Its fields do
 * not change. Mirrors the `String` and `GoString` methods of client-go's `rest.Config`.
 *
 * @param options.isCopied Whether `{ ...object }` hides them too; the object then has two more enumerable
 * fields.
 */
export function hideSecrets<T extends object>(
  object: T,
  redact: (object: T) => object,
  options: { readonly isCopied?: boolean } = {},
): T {
  const { isCopied = false } = options;
  const show = function (this: T): object {
    return redact(this);
  };
  for (const name of [INSPECT, "toJSON"]) {
    Object.defineProperty(object, name, {
      value: show,
      enumerable: isCopied,
      configurable: true,
      writable: true,
    });
  }
  return object;
}

const SECRET_FIELDS = ["token", "password", "client-key-data"] as const;

/** A user of a kubeconfig with its credentials redacted. */
export function redactedUser(user: KubeconfigUser): object {
  const shown: Record<string, unknown> = { ...user };
  for (const field of SECRET_FIELDS) if (shown[field]) shown[field] = REDACTED;
  if (user["auth-provider"]) shown["auth-provider"] = { name: user["auth-provider"].name, config: REDACTED };
  if (user.exec) {
    const { args, env } = user.exec;
    shown.exec = {
      ...user.exec,
      ...(args && { args: args.map(() => REDACTED) }),
      ...(env && { env: env.map(({ name }) => ({ name, value: REDACTED })) }),
    };
  }
  return shown;
}

/** A cluster of a kubeconfig with URLs redacted that contain a user or password. */
export function redactedCluster(cluster: KubeconfigCluster): object {
  const shown: Record<string, unknown> = { ...cluster };
  for (const field of ["server", "proxy-url"] as const) {
    if (cluster[field]?.includes?.("@")) shown[field] = REDACTED;
  }
  return shown;
}

/** Headers with the values redacted that may be credentials. */
export function redactedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map((
      [name, value],
    ) => [name, /authorization|cookie|token|key/i.test(name) ? REDACTED : value]),
  );
}

const FRESH_MS = 60_000;

/**
 * Reads a token file, at most about once a minute. When a read fails, the last token stays in use.
 *
 * Mirrors client-go's cached file token source:
 * https://github.com/kubernetes/client-go/blob/master/transport/token_source.go
 */
export class FileToken {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #token: string | undefined;
  #readMs = -Infinity;

  /** @param options.token The token until the file can be read. */
  constructor(
    path: string,
    options: { readonly clock: Clock; readonly logger: Logger; readonly token?: string },
  ) {
    this.#path = path;
    this.#token = options.token;
    this.#clock = options.clock;
    this.#logger = guardedLogger(options.logger);
  }

  /**
   * Returns the token.
   *
   * @throws {KubeconfigError} The file cannot be read or holds no valid token, and no token was read before.
   */
  async read(): Promise<string> {
    if (this.#token !== undefined && monotonicNow(this.#clock) - this.#readMs < FRESH_MS) return this.#token;
    try {
      const token = (await readFile(this.#path, "utf8")).trim();
      if (token === "") throw new Error("the file is empty");
      const fault = tokenFault(token);
      if (fault !== undefined) throw new Error(`it holds no valid token: ${fault}`);
      this.#token = token;
      this.#readMs = monotonicNow(this.#clock);
    } catch (error) {
      const text = `Cannot read the token file ${this.#path}: ${errorMessage(error)}`;
      if (this.#token === undefined) throw new KubeconfigError(text, { cause: error });
      this.#logger.warn(`${text}; the last token stays in use`);
    }
    return this.#token;
  }

  /** Makes the next call read the file if this token is in use; for a server that refused it. */
  forget(refused: string): void {
    if (refused === this.#token) this.#readMs = -Infinity;
  }
}
