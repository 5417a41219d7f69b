/**
 * Parts of every REST config of this room: TLS settings, credentials that logs do not show, tokens in files.
 */

import { readFile } from "node:fs/promises";
import { type FetchFunction, type RestConfig, tokenFault } from "../../client/rest_config.ts";
import type { Clock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { defined, INSPECT } from "../../util/json.ts";
import type { Logger } from "../../util/logger.ts";
import { Reread } from "../reread.ts";
import { type KubeconfigCluster, KubeconfigError, type KubeconfigUser } from "./kubeconfig.ts";

/** The certificates to trust, and the one to present. */
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
  const shown = { token: token && REDACTED, headers: headers && redactedHeaders(headers) };
  return defined({ server, ...shown, impersonate, namespace });
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

export const REDACTED: string = "[redacted]";

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

export function redactedUser(user: KubeconfigUser): object {
  const shown: Record<string, unknown> = { ...user };
  for (const field of SECRET_FIELDS) if (shown[field]) shown[field] = REDACTED;
  if (user["auth-provider"]) shown["auth-provider"] = { name: user["auth-provider"].name, config: REDACTED };
  if (user.exec) {
    const { args, env } = user.exec;
    shown.exec = {
      ...user.exec,
      // These values were not checked yet, and may be no list.
      ...(args && { args: Array.isArray(args) ? args.map(() => REDACTED) : REDACTED }),
      ...(env && {
        env: Array.isArray(env) ? env.map((one) => ({ name: one?.name, value: REDACTED })) : REDACTED,
      }),
    };
  }
  return shown;
}

export function redactedCluster(cluster: KubeconfigCluster): object {
  const shown: Record<string, unknown> = { ...cluster };
  for (const field of ["server", "proxy-url"] as const) {
    if (cluster[field]?.includes?.("@")) shown[field] = REDACTED;
  }
  return shown;
}

export function redactedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map((
      [name, value],
    ) => [name, /authorization|cookie|token|key/i.test(name) ? REDACTED : value]),
  );
}

/** The token of a file. Rejects with a {@linkcode KubeconfigError} while there is none. */
export class FileToken extends Reread<string> {
  constructor(
    path: string,
    { token, ...options }: { readonly clock: Clock; readonly logger: Logger; readonly token?: string },
  ) {
    super(() => readToken(path), { what: "token", value: token, ...options });
  }
}

async function readToken(path: string): Promise<string> {
  try {
    const token = (await readFile(path, "utf8")).trim();
    if (token === "") throw new Error("the file is empty");
    const fault = tokenFault(token);
    if (fault !== undefined) throw new Error(`it holds no valid token: ${fault}`);
    return token;
  } catch (error) {
    throw new KubeconfigError(`Cannot read the token file ${path}: ${errorMessage(error)}`, { cause: error });
  }
}
