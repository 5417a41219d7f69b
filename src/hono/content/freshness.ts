/**
 * How fresh reads are.
 * @module
 */

/**
 * How fresh a read without a resourceVersion is:
 *
 * - `"consistent"`: as fresh as the API server's own. One small question to it is shared by all reads that
 *   wait. A read that cannot be proven fresh within `freshnessTimeoutMs` is answered 504.
 * - `"stale-if-error"`: the same, but while the API server does not answer, or the cache is behind it, the
 *   read is answered with what the cache holds, and a `Warning` header, which kubectl prints; a reader that
 *   sends `Cache-Control: stale-if-error=0` gets 504 instead. Caches above this one send it.
 * - `"as-is"`: what the cache holds.
 *
 * @category HTTP adapter
 */
export type Freshness = "consistent" | "stale-if-error" | "as-is";

/** All of them. */
export const FRESHNESSES: readonly Freshness[] = ["consistent", "stale-if-error", "as-is"];

/** Whether it is one of them. */
export function isFreshness(value: unknown): value is Freshness {
  return (FRESHNESSES as readonly unknown[]).includes(value);
}
