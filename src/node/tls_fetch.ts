/**
 * A `fetch` with TLS settings of its own.
 * @module
 */

import type { FetchFunction } from "../client/rest_config.ts";
import { newNodeFetch } from "./node_fetch.ts";

/**
 * Whom to trust, and what to show.
 *
 * @example
 * ```ts
 * import type { TlsOptions } from "@listwatch/cache/node";
 * const tls: TlsOptions = { ca: "-----BEGIN CERTIFICATE-----\n...", serverName: "kubernetes.default.svc" };
 * ```
 */
export interface TlsOptions {
  /** Certificates of authorities to trust, PEM; the runtime's own roots if absent. */
  readonly ca?: string;
  /** A client certificate, PEM. */
  readonly cert?: string;
  /** The key of the client certificate, PEM. */
  readonly key?: string;
  /** The name the server's certificate must have, if it is not the host of the URL. */
  readonly serverName?: string;
  /** Accepts any certificate. For trying things out only. */
  readonly insecureSkipVerify?: boolean;
}

interface DenoLike {
  createHttpClient(options: Record<string, unknown>): { close(): void };
}

/**
 * Makes a `fetch` that uses these TLS settings, on Node, Deno and Bun. It has no time limit of its own, so that quiet
 * watches live, and keeps connections open between requests.
 *
 * Deno's and Bun's own `fetch` is used where it knows the settings, and Node's `https` otherwise.
 *
 * @throws {TypeError} A certificate is given without its key, or a key without its certificate, or
 * `insecureSkipVerify` together with `ca`.
 *
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { newCluster } from "@listwatch/cache";
 * import { createTlsFetch } from "@listwatch/cache/node";
 * function connect(caFile: string) {
 *   const fetch = createTlsFetch({ ca: readFileSync(caFile, "utf8") });
 *   return newCluster({ server: "https://10.0.0.1:6443", fetch });
 * }
 * ```
 */
export function createTlsFetch(options: TlsOptions = {}): FetchFunction {
  const { ca, cert, key, serverName, insecureSkipVerify = false } = options;
  if ((cert === undefined) !== (key === undefined)) {
    throw new TypeError("Cannot make a fetch: a client certificate and its key (cert and key) go together");
  }
  if (typeof insecureSkipVerify !== "boolean") {
    throw new TypeError("Cannot make a fetch: insecureSkipVerify must be true or false");
  }
  if (ca !== undefined && insecureSkipVerify) {
    throw new TypeError(
      "Cannot make a fetch: with insecureSkipVerify the authorities to trust (ca) are not looked at; leave one out",
    );
  }
  const { Deno: deno, Bun: bun } = globalThis as { Deno?: DenoLike; Bun?: unknown };
  if (deno !== undefined && serverName === undefined && !insecureSkipVerify) {
    // HTTP/2 puts all watches on one connection, whose end would be the end of all of them.
    const client = deno.createHttpClient({
      http2: false,
      ...(ca !== undefined && { caCerts: [ca] }),
      ...(cert !== undefined && key !== undefined && { cert, key }),
    });
    return (url, init) => fetch(url, { ...init, client } as RequestInit);
  }
  if (bun !== undefined) {
    const tls = {
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      ...(serverName !== undefined && { serverName }),
      ...(insecureSkipVerify && { rejectUnauthorized: false }),
    };
    return (url, init) => fetch(url, { ...init, tls, timeout: false } as RequestInit);
  }
  return newNodeFetch(options);
}
