/**
 * What every REST config of this room has in common.
 * @module
 */

import type { FetchFunction, RestConfig } from "../client/rest_config.ts";
import { hideSecrets, REDACTED, redactedHeaders } from "./hidden_secrets.ts";

/**
 * A {@linkcode RestConfig} with its default namespace.
 *
 * @category Node
 */
export interface NamespacedRestConfig extends RestConfig {
  /** The namespace of the context or the service account; absent if it has none. */
  readonly namespace?: string;
}

/** Makes `console.log` and `JSON.stringify` show a config without its credentials. */
export function hideCredentials(config: NamespacedRestConfig): NamespacedRestConfig {
  return hideSecrets(config, redactedConfig, { isCopied: true });
}

function redactedConfig(config: NamespacedRestConfig): object {
  const { server, token, headers, impersonate, namespace } = config;
  return {
    server,
    ...(token !== undefined && { token: REDACTED }),
    ...(headers !== undefined && { headers: redactedHeaders(headers) }),
    ...(impersonate !== undefined && { impersonate }),
    ...(namespace !== undefined && { namespace }),
  };
}

/** Wraps a fetch: a 401 response calls `forget`, so that the next request gets new credentials. */
export function forgettingOn401(fetch: FetchFunction, forget: () => void): FetchFunction {
  return async (url, init) => {
    const response = await fetch(url, init);
    if (response.status === 401) forget();
    return response;
  };
}
