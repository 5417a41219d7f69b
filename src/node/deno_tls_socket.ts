/**
 * TLS connections of Deno as sockets of Node. Those that `node:tls` makes on Deno 2.9 read on while they are paused, and
 * never emit `end`.
 * @module
 */

import { Duplex } from "node:stream";
import type { TlsOptions } from "./tls_options.ts";

interface DenoConn {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  closeWrite(): Promise<void>;
  close(): void;
}

/** The part of Deno that makes such connections. */
export interface DenoTls {
  connect(options: { readonly hostname: string; readonly port: number }): Promise<
    DenoConn & {
      setKeepAlive(on: boolean): void;
      setNoDelay(on: boolean): void;
    }
  >;
  startTls(conn: DenoConn, options: {
    readonly hostname: string;
    readonly caCerts?: string[];
    readonly alpnProtocols: string[];
  }): Promise<DenoConn & { handshake(): Promise<unknown> }>;
}

const READ_BYTES = 64 * 1024;

/** Connects, and verifies the server. */
export async function connectDenoTls(
  deno: DenoTls,
  url: URL,
  { ca, serverName }: Pick<TlsOptions, "ca" | "serverName">,
): Promise<Duplex> {
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const tcp = await deno.connect({ hostname, port: Number(url.port || 443) });
  try {
    tcp.setKeepAlive(true);
    tcp.setNoDelay(true);
    const tls = await deno.startTls(tcp, {
      hostname: serverName ?? hostname,
      ...(ca !== undefined && { caCerts: [ca] }),
      alpnProtocols: ["http/1.1"],
    });
    await tls.handshake();
    return new DenoTlsSocket(tls);
  } catch (error) {
    closeQuietly(tcp);
    throw error;
  }
}

class DenoTlsSocket extends Duplex {
  readonly #conn: DenoConn;

  constructor(conn: DenoConn) {
    super({ allowHalfOpen: true });
    this.#conn = conn;
  }

  override _read(): void {
    const into = new Uint8Array(READ_BYTES);
    this.#conn.read(into).then(
      (length) => void this.push(length === null ? null : into.subarray(0, length)),
      (error) => void this.destroy(error),
    );
  }

  override _write(bytes: Uint8Array, _encoding: string, done: (error?: Error | null) => void): void {
    this.#writeAll(bytes).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#conn.closeWrite().then(() => done(), done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    closeQuietly(this.#conn);
    done(error);
  }

  async #writeAll(bytes: Uint8Array): Promise<void> {
    for (let start = 0; start < bytes.length;) start += await this.#conn.write(bytes.subarray(start));
  }
}

function closeQuietly(conn: DenoConn): void {
  try {
    conn.close();
  } catch {
    // It is closed already, perhaps as a part of the TLS connection.
  }
}
