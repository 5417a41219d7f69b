/**
 * TLS settings of a client.
 * @module
 */

/**
 * Which certificates to trust, and which one to present.
 *
 * @category Node
 */
export interface TlsOptions {
  /** The trusted certificate authorities, PEM; the runtime's own roots by default. */
  readonly ca?: string;
  /** A client certificate, PEM. */
  readonly cert?: string;
  /** The private key of the client certificate, PEM. */
  readonly key?: string;
  /** The name that the server's certificate must have; the host of the URL by default. */
  readonly serverName?: string;
  /** Accepts any server certificate; `false` by default. For experiments only. */
  readonly insecureSkipVerify?: boolean;
}
