/**
 * The certificate that a server shows.
 * @module
 */

import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { onAbort } from "../util/abort.ts";
import { type Clock, realClock, type TimerHandle } from "../util/clock.ts";
import { CacheError, errorMessage } from "../util/errors.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";

/**
 * The certificate that a server shows, and its key.
 *
 * @example
 * ```ts
 * import type { ServerTls } from "@listwatch/cache/node";
 * const tls: ServerTls = { cert: "-----BEGIN CERTIFICATE-----\n...", key: "-----BEGIN PRIVATE KEY-----\n..." };
 * ```
 */
export interface ServerTls {
  /** The certificate, and those that lead to its authority, PEM. */
  readonly cert: string;
  /** Its key, PEM. */
  readonly key: string;
}

/**
 * A certificate or key cannot be read, or they do not belong together. The text holds neither.
 *
 * @example
 * ```ts
 * import { checkServerTls, TlsError } from "@listwatch/cache/node";
 * try {
 *   checkServerTls({ cert: "no certificate", key: "no key" });
 * } catch (error) {
 *   if (error instanceof TlsError) console.log(error.code); // Tls
 * }
 * ```
 */
export class TlsError extends CacheError {
  /** Makes the error. */
  constructor(message: string) {
    super("Tls", message);
  }
}

/**
 * Checks that a certificate and a key can be read, and belong together.
 *
 * @throws {TlsError} They cannot, or do not.
 *
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { checkServerTls } from "@listwatch/cache/node";
 * function check(certFile: string, keyFile: string): void {
 *   checkServerTls({ cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") });
 * }
 * ```
 */
export function checkServerTls({ cert, key }: ServerTls): void {
  let certificate: X509Certificate;
  let privateKey: KeyObject;
  // Without the causes: what a runtime says of a key may hold a part of it.
  try {
    certificate = new X509Certificate(cert);
  } catch {
    throw new TlsError("Cannot use the certificate: it is no certificate in PEM");
  }
  try {
    privateKey = createPrivateKey(key);
  } catch {
    throw new TlsError(
      "Cannot use the key of the certificate: it is no private key in PEM, or has a passphrase",
    );
  }
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsError("Cannot use the certificate: the key is not its own");
  }
}

/**
 * Options of {@linkcode readServerTls}.
 *
 * @example
 * ```ts
 * import type { ServerTlsFiles } from "@listwatch/cache/node";
 * const files: ServerTlsFiles = { certFile: "/etc/tls/tls.crt", keyFile: "/etc/tls/tls.key" };
 * ```
 */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/**
 * Reads a certificate and its key from files.
 *
 * @throws {TlsError} A file cannot be read, holds something else, or they do not belong together.
 *
 * @example
 * ```ts
 * import { readServerTls, serveFetch } from "@listwatch/cache/node";
 * async function serve(certFile: string, keyFile: string) {
 *   const tls = await readServerTls({ certFile, keyFile });
 *   return await serveFetch(() => new Response("hello"), { tls });
 * }
 * ```
 */
export async function readServerTls({ certFile, keyFile }: ServerTlsFiles): Promise<ServerTls> {
  const read = async (file: string, what: string): Promise<string> => {
    try {
      return await readFile(file, "utf8");
    } catch (error) {
      throw new TlsError(`Cannot read the ${what} ${file}: ${errorMessage(error)}`);
    }
  };
  const tls = {
    cert: await read(certFile, "certificate"),
    key: await read(keyFile, "key of the certificate"),
  };
  try {
    checkServerTls(tls);
  } catch (error) {
    throw new TlsError(`${errorMessage(error)} (${certFile}, ${keyFile})`);
  }
  return tls;
}

/**
 * Options of {@linkcode followServerTls}.
 *
 * @example
 * ```ts
 * import type { FollowServerTlsOptions } from "@listwatch/cache/node";
 * const options: FollowServerTlsOptions = {
 *   current: { cert: "...", key: "..." },
 *   onChange: () => {},
 *   signal: AbortSignal.timeout(60_000),
 * };
 * ```
 */
export interface FollowServerTlsOptions {
  /** What is in use. */
  readonly current: ServerTls;
  /** Is given what is in the files after they changed. */
  readonly onChange: (tls: ServerTls) => void | Promise<void>;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** The time between two looks at the files; 10 s by default. */
  readonly intervalMs?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * Looks at the files of a certificate again and again, and tells when there is another one in them. Files that do not
 * belong together, as in the middle of a rotation, change nothing: the log has one warning, and the next look may be
 * better. Looking is what works on every file system, also where a mounted Secret is a symbolic link that is replaced.
 *
 * @example
 * ```ts
 * import { followServerTls, readServerTls, serveFetch } from "@listwatch/cache/node";
 * async function serve(certFile: string, keyFile: string, signal: AbortSignal) {
 *   const files = { certFile, keyFile };
 *   const tls = await readServerTls(files);
 *   const served = await serveFetch(() => new Response("hello"), { tls, signal });
 *   followServerTls(files, { current: tls, signal, onChange: (next) => served.setTls(next) });
 *   return served;
 * }
 * ```
 */
export function followServerTls(files: ServerTlsFiles, options: FollowServerTlsOptions): void {
  const { onChange, signal, intervalMs = 10_000, clock = realClock, logger = consoleLogger } = options;
  if (signal.aborted) return;
  let { current } = options;
  let timer: TimerHandle;
  let warned = "";
  const look = async (): Promise<void> => {
    try {
      const tls = await readServerTls(files);
      if (signal.aborted) return;
      if (tls.cert !== current.cert || tls.key !== current.key) {
        await onChange(tls);
        current = tls;
        logger.info("the certificate was replaced by the one that is in its files now");
      }
      warned = "";
    } catch (error) {
      const text = `${errorMessage(error)}; the certificate read before is used`;
      if (text !== warned) logger.warn(text);
      warned = text;
    }
    if (!signal.aborted) timer = clock.setTimeout(look, intervalMs);
  };
  timer = clock.setTimeout(look, intervalMs);
  onAbort(signal, () => clock.clearTimeout(timer));
}
