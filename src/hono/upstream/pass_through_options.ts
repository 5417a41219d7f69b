/**
 * The options of requests that are sent on to the API server.
 * @module
 */

/**
 * Which API server requests are sent on to, and how.
 *
 * @category HTTP adapter
 */
export interface PassThroughOptions {
  /** The API server's URL; https, as tokens are sent to it. */
  readonly server: string;
  /**
   * Sends the requests; the runtime's own by default. It must add no credentials, such as a client
   * certificate.
   */
  readonly fetch?: (url: string, init: RequestInit) => Response | Promise<Response>;
  /**
   * How long the API server may take to begin an answer, in milliseconds; a minute by default, as it limits
   * itself. A watch and a log that is followed may take as long as a watch may last.
   */
  readonly timeoutMs?: number;
  /**
   * Whether writes and `proxy` subresources are sent on; `false` by default: reads and access reviews only.
   */
  readonly writes?: boolean;
  /**
   * Whether the bearer tokens that readers present are the cluster's, as with `tokenReview`. Needed with an
   * `authenticate` hook: a token of the cache's own is not sent to anyone. `false` by default.
   */
  readonly clusterTokens?: boolean;
}
