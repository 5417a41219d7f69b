/**
 * What a cache requires of a cache between it and the API server, in standard headers. API servers ignore
 * them.
 * @module
 */

/** Nothing stale, also while the server is away: https://www.rfc-editor.org/rfc/rfc5861#section-4 */
export const NOTHING_STALE: Readonly<Record<string, string>> = { "Cache-Control": "stale-if-error=0" };

/**
 * A watch with each event of the server. Where some are missing, as after a list, it ends with 410 in place of the
 * difference: https://www.rfc-editor.org/rfc/rfc7240#section-4.4
 */
export const EACH_EVENT: Readonly<Record<string, string>> = { Prefer: "handling=strict" };

/** Whether a `Cache-Control` has what {@linkcode NOTHING_STALE} says. */
export function refusesStale(cacheControl = ""): boolean {
  return hasPart(cacheControl, "stale-if-error=0");
}

/** Whether a `Prefer` has what {@linkcode EACH_EVENT} says. */
export function requiresEachEvent(prefer = ""): boolean {
  return hasPart(prefer, "handling=strict");
}

function hasPart(header: string, wanted: string): boolean {
  return header.split(/[,;]/).some((part) => part.replace(/[\s"]/g, "").toLowerCase() === wanted);
}
