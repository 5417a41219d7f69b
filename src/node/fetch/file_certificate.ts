/** A client certificate in files. */

import type { FetchFunction } from "../../client/rest_config.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import { createTlsFetch, type TlsFetchOptions } from "./tls_fetch.ts";
import { readServerTls, type ServerTlsFiles } from "../serving/server_tls.ts";

const FRESH_MS = 60_000;

export interface FileCertificateOptions {
  /** With the certificate that was read first. */
  readonly tls: TlsFetchOptions;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Makes a `fetch` that presents the client certificate of two files. They are read again about once a minute,
 * and after a 401 response, upon which the request is sent once more if they hold another certificate. A new
 * certificate opens new connections; what is open stays. Files that do not match, as in the middle of a
 * rotation, change nothing.
 *
 * Mirrors client-go's rotation of certificates, which closes what is open:
 * https://github.com/kubernetes/client-go/blob/master/transport/cert_rotation.go
 */
export function createFileCertificateFetch(
  files: ServerTlsFiles,
  { tls, clock, logger }: FileCertificateOptions,
): FetchFunction {
  let { cert, key } = tls;
  let fetch = createTlsFetch(tls);
  let readMs = monotonicNow(clock);
  let reading: Promise<void> | undefined;
  const read = async () => {
    try {
      const next = await readServerTls(files);
      if (next.cert !== cert || next.key !== key) fetch = createTlsFetch({ ...tls, ...next });
      ({ cert, key } = next);
    } catch (error) {
      logger.warn(`${errorMessage(error)}; the last client certificate stays in use`);
    }
    readMs = monotonicNow(clock);
  };
  const latest = async () => {
    if (monotonicNow(clock) - readMs >= FRESH_MS) {
      await (reading ??= read().finally(() => (reading = undefined)));
    }
    return fetch;
  };
  return async (url, init) => {
    const used = await latest();
    const response = await used(url, init);
    // A token was refused rather than the certificate.
    if (response.status !== 401 || new Headers(init?.headers).has("Authorization")) return response;
    if (fetch === used) readMs = -Infinity;
    const renewed = await latest();
    if (renewed === used) return response;
    response.body?.cancel().catch(() => {});
    return await renewed(url, init);
  };
}
