/**
 * Requests that upgrade their connection, over TLS.
 * @module
 */

import type { OpenUpgrade } from "../util/upgrade.ts";
import type { TlsOptions } from "./tls_options.ts";

/**
 * Makes the function that opens upgraded connections with these TLS settings, on Node, Deno and Bun: `exec`, `attach` and
 * `port-forward` of the `passThrough` option of `readApi` need it. Each connection is its own, and has no client
 * certificate.
 *
 * @throws {TypeError} On Deno, which always verifies servers, with `insecureSkipVerify`.
 *
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { createTlsFetch, createTlsUpgrade } from "@listwatch/cache/node";
 * function passThrough(caFile: string) {
 *   const tls = { ca: readFileSync(caFile, "utf8") };
 *   const server = "https://10.0.0.1:6443";
 *   return { server, fetch: createTlsFetch(tls), upgrade: createTlsUpgrade(tls), writes: true };
 * }
 * ```
 *
 * @category Node
 */
export function createTlsUpgrade(
  tls: Pick<TlsOptions, "ca" | "serverName" | "insecureSkipVerify"> = {},
): OpenUpgrade {
  if (!canUpgrade(tls)) {
    throw new TypeError("Cannot open upgraded connections on Deno with insecureSkipVerify; use ca");
  }
  // Loaded with the first request, as by `createTlsFetch`.
  let open: Promise<OpenUpgrade> | undefined;
  return async (url, init) => {
    open ??= import("./node_upgrade.ts").then(({ newNodeUpgrade }) => newNodeUpgrade(tls));
    return await (await open)(url, init);
  };
}

/** Whether {@linkcode createTlsUpgrade} can be called with these settings. */
export function canUpgrade({ insecureSkipVerify = false }: TlsOptions): boolean {
  return !("Deno" in globalThis && insecureSkipVerify);
}
