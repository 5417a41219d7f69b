/**
 * The socket of `serve`, with its certificate.
 * @module
 */

import { type ServedFetch, serveFetch } from "../node/serve_fetch.ts";
import { followServerTls, readServerTls, type ServerTls, type ServerTlsFiles } from "../node/server_tls.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { explainListenError } from "./errors.ts";

/** A certificate, and the files it was read from. */
export interface Certificate {
  readonly files: ServerTlsFiles;
  readonly tls: ServerTls;
}

/**
 * Reads the certificate of the options, `undefined` if they have none.
 *
 * @throws {TlsError} A file cannot be read or is not PEM, or they do not match.
 */
export async function readCertificate(
  { tlsCert, tlsKey }: { readonly tlsCert?: string; readonly tlsKey?: string },
): Promise<Certificate | undefined> {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  const files = { certFile: tlsCert, keyFile: tlsKey };
  return { files, tls: await readServerTls(files) };
}

/** Options of {@linkcode listen}. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Serves over TLS with this certificate; it is read again when its files change. */
  readonly certificate: Certificate | undefined;
  /** Whether WebSockets may be accepted. */
  readonly webSockets: boolean;
  /** How long a connection stays open for the next request. */
  readonly keepAliveMs?: number | undefined;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Serves a `fetch` function until the signal is aborted.
 *
 * @throws {CommandError} It cannot listen.
 * @throws The signal's reason, if it is aborted first.
 */
export async function listen(
  fetch: Parameters<typeof serveFetch>[0],
  options: ListenOptions,
): Promise<ServedFetch> {
  const { host, port, certificate, webSockets, keepAliveMs, signal, clock, logger } = options;
  let server: ServedFetch;
  try {
    server = await serveFetch(fetch, {
      host,
      port,
      signal,
      logger,
      webSockets,
      ...(keepAliveMs !== undefined && { keepAliveTimeoutMs: keepAliveMs }),
      ...(certificate && { tls: certificate.tls }),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw explainListenError(error, host, port);
  }
  if (certificate !== undefined) {
    const onChange = (tls: ServerTls) => server.setTls(tls);
    followServerTls(certificate.files, { current: certificate.tls, onChange, signal, clock, logger });
  }
  return server;
}
