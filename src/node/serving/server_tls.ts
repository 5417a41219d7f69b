import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { onAbort } from "../../util/abort.ts";
import { type Clock, realClock, type TimerHandle } from "../../util/clock.ts";
import { CacheError, errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";
import { Reread } from "../reread.ts";

/** The certificate of a server, with its key. */
export interface ServerTls {
  /** The certificate, followed by intermediate certificates, PEM. */
  readonly cert: string;
  /** The private key, PEM. */
  readonly key: string;
}

/** A certificate or key cannot be read, or they do not match. The message contains neither. */
export class TlsError extends CacheError {
  constructor(message: string) {
    super("Tls", message);
  }
}

/**
 * Checks that a certificate and a key are valid PEM and match.
 *
 * @throws {TlsError} The certificate or the key is no valid PEM, or they do not match.
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
  // The causes are left out: a runtime's message may contain a part of the key.
  try {
    certificate = new X509Certificate(cert);
  } catch {
    throw new TlsError("Cannot use the certificate: it is not a PEM certificate");
  }
  try {
    privateKey = createPrivateKey(key);
  } catch {
    throw new TlsError("Cannot use the certificate's key: it is not a PEM private key, or has a passphrase");
  }
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new TlsError("Cannot use the certificate: the key does not match it");
  }
}

/** Options of {@linkcode readServerTls}. */
export interface ServerTlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/**
 * Reads a certificate and its key from files.
 *
 * @throws {TlsError} A file cannot be read or is not PEM, or they do not match.
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
  const tls = { cert: await read(certFile, "certificate"), key: await read(keyFile, "certificate's key") };
  try {
    checkServerTls(tls);
  } catch (error) {
    throw new TlsError(`${errorMessage(error)} (${certFile}, ${keyFile})`);
  }
  return tls;
}

/** Options of {@linkcode followServerTls}. */
export interface FollowServerTlsOptions {
  /** The certificate in use. */
  readonly current: ServerTls;
  /** Receives the new certificate when the files have changed. */
  readonly onChange: (tls: ServerTls) => void | Promise<void>;
  /** Stops watching the files. */
  readonly signal: AbortSignal;
  /** The time between two reads of the files, in milliseconds; 10 s by default. */
  readonly intervalMs?: number;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * Reads the files of a certificate periodically, and calls `onChange` when they hold another certificate.
 * Files that do not match, as in the middle of a rotation, change nothing; they are logged once and read
 * again. Reading works on every file system, also for a mounted Secret, which is a replaced symbolic link.
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
  const { onChange, signal, intervalMs = 10_000, clock = realClock } = options;
  const logger = guardedLogger(options.logger);
  let { current } = options;
  const certificate = new Reread(async () => {
    const tls = await readServerTls(files);
    if (!signal.aborted && (tls.cert !== current.cert || tls.key !== current.key)) {
      await onChange(tls);
      current = tls;
      logger.info("reloaded the certificate from its files");
    }
    return tls;
  }, { what: "certificate", value: current, clock, logger });
  let timer: TimerHandle;
  const look = async (): Promise<void> => {
    certificate.forget();
    await certificate.read();
    if (!signal.aborted) timer = clock.setTimeout(look, intervalMs);
  };
  timer = clock.setTimeout(look, intervalMs);
  onAbort(signal, () => clock.clearTimeout(timer));
}
