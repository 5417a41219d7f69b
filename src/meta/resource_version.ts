/**
 * Comparing resourceVersions.
 * @module
 */

/**
 * Compares two resourceVersions: -1 when `a` is older, 0 when they are the same, 1 when `a` is newer.
 *
 * They are decimal numbers of any length, kept as text: compared by length and then by digits, never parsed
 * to a number. The empty version is older than every other. Leading zeros do not occur and are not handled.
 *
 * Mirrors Kubernetes' `CompareResourceVersion` (KEP-5504).
 *
 * @example
 * ```ts
 * import { compareResourceVersions } from "@listwatch/cache";
 * console.log(compareResourceVersions("9", "10")); // -1
 * console.log(compareResourceVersions("18446744073709551616", "18446744073709551615")); // 1
 * ```
 *
 * @category Objects and errors
 */
export function compareResourceVersions(a: string, b: string): -1 | 0 | 1 {
  if (a === b) return 0;
  if (a.length !== b.length) return a.length < b.length ? -1 : 1;
  return a < b ? -1 : 1;
}

/**
 * Whether a text is a resourceVersion that can be compared: decimal digits without a leading zero.
 *
 * @example
 * ```ts
 * import { isComparableResourceVersion } from "@listwatch/cache/store";
 * console.log(isComparableResourceVersion("42"), isComparableResourceVersion("abc")); // true false
 * ```
 *
 * @category Objects and errors
 */
export function isComparableResourceVersion(text: string): boolean {
  return /^[1-9][0-9]*$/.test(text);
}

/**
 * The layout of a merged resourceVersion (merged_version.ts), as the text that two of one layout have in
 * common; `""` for the version of one server, which has 20 digits at most. Versions of different layouts say
 * nothing about each other.
 */
export function layoutOf(version: string): string {
  return version.length > SERVER_DIGITS ? version.slice(-LAYOUT_DIGITS) : "";
}

// Of the greatest version that an API server has, 2^64 - 1.
const SERVER_DIGITS = 20;
// The layout itself, and the number of its sources.
const LAYOUT_DIGITS = 13;

/**
 * Whether a resourceVersion is known to be older than another: both are numbers, of one layout, and it is the
 * lesser one.
 */
export function isOlder(version: string, than: string): boolean {
  return compareResourceVersions(version, than) < 0 && isComparableResourceVersion(version) &&
    isComparableResourceVersion(than) && layoutOf(version) === layoutOf(than);
}
