/**
 * Connections that an HTTP upgrade turned into something else: bytes both ways.
 * @module
 */

/**
 * A connection after the 101 response that upgraded it.
 *
 * @category HTTP adapter
 */
export interface UpgradedConnection {
  /** The header fields of the 101 response. */
  readonly headers: Headers;
  /** What the other side sends; its cancel closes the connection. */
  readonly readable: ReadableStream<Uint8Array>;
  /** What the other side receives. Its close ends the connection after what was written; its abort, at once. */
  readonly writable: WritableStream<Uint8Array>;
}

/**
 * Sends a request that wants to upgrade its connection. Resolves with the connection, or with the response of a server that
 * does not upgrade it.
 *
 * @category HTTP adapter
 */
export type OpenUpgrade = (
  url: string,
  init: {
    readonly method: string;
    /** A name may be there twice. */
    readonly headers: readonly (readonly [name: string, value: string])[];
    readonly signal: AbortSignal;
  },
) => Promise<UpgradedConnection | Response>;

/** The server's side of a connection that it has upgraded. */
export interface ServedUpgrade {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
  /** How many bytes the client was sent. */
  readonly sentBytes: number;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
}

/** What a server that can upgrade connections hands to its `fetch` function, as its second argument. */
export interface UpgradeEnv {
  /**
   * Sends a 101 response with these header fields, and hands over the connection; what the `fetch` function returns is
   * ignored then. Only for requests that want to upgrade.
   */
  upgrade?(headers: readonly (readonly [name: string, value: string])[]): ServedUpgrade;
  /** What {@linkcode UpgradeEnv.upgrade} returned. */
  readonly upgraded?: ServedUpgrade;
}

/** Whether a request wants to upgrade its connection to a protocol of `kubectl exec` and its like. */
export function isTunnelProtocol(upgrade: string | undefined): upgrade is string {
  return upgrade !== undefined && /^(websocket|spdy\/3\.1)$/i.test(upgrade);
}
