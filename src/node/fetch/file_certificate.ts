/** A client certificate in files. */

import type { FetchFunction } from "../../client/rest_config.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import { Reread } from "../reread.ts";
import { createTlsFetch, type TlsFetchOptions } from "./tls_fetch.ts";
import { readServerTls, type ServerTlsFiles } from "../serving/server_tls.ts";

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
  const latest = new Reread(async () => {
    const next = await readServerTls(files);
    if (next.cert !== cert || next.key !== key) fetch = createTlsFetch({ ...tls, ...next });
    ({ cert, key } = next);
    return fetch;
  }, { what: "client certificate", value: fetch, isFresh: true, clock, logger });
  return async (url, init) => {
    const used = await latest.read();
    const response = await used(url, init);
    // A token was refused rather than the certificate.
    if (response.status !== 401 || new Headers(init?.headers).has("Authorization")) return response;
    latest.forget(used);
    const renewed = await latest.read();
    if (renewed === used) return response;
    response.body?.cancel().catch(() => {});
    return await renewed(url, init);
  };
}
