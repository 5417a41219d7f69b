/** Requests to an API server: their options and their sender. */

/**
 * The parameters of a query. Those that are `undefined`, `""` or `false` are not sent; `true` is sent as
 * `true`.
 *
 * @category Cluster
 */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Options of {@linkcode Cluster.request} and {@linkcode Cluster.open}.
 *
 * @category Cluster
 */
export interface RequestOptions {
  /** `GET` by default. */
  readonly method?: string;
  /** What goes behind the question mark. */
  readonly query?: Query;
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  /** Sent beside the headers of the cluster; they win over those. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the request, and the reading of its answer. */
  readonly signal?: AbortSignal;
  /**
   * How long {@linkcode Cluster.request} may take, answer included, in milliseconds; `requestTimeoutMs` of
   * the cluster, or 30 s, by default. `Infinity` for no limit.
   */
  readonly timeoutMs?: number;
  /** The action, for error texts, as it follows "Cannot": `list "pods"`. Method and path by default. */
  readonly action?: string;
}

/** The part of a `Cluster` that its resource clients use. */
export interface Requests {
  readonly server: string;
  request(path: string, options?: RequestOptions): Promise<unknown>;
  open(path: string, options?: RequestOptions): Promise<Response>;
}
