/**
 * Objects that hide their credentials when they are logged.
 * @module
 */

import type { KubeconfigCluster, KubeconfigUser } from "./kubeconfig.ts";

/** The text shown instead of a credential. */
export const REDACTED: string = "[redacted]";

// `console.log` calls this method on Node, Deno and Bun: https://nodejs.org/api/util.html#utilinspectcustom
const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/**
 * Makes `console.log`, `util.inspect` and `JSON.stringify` show a redacted copy of an object. Its fields do not change.
 * Mirrors the `String` and `GoString` methods of client-go's `rest.Config`.
 *
 * @param options.isCopied Whether `{ ...object }` hides them too; the object then has two more enumerable fields.
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
