/**
 * Comparison of JSON values.
 * @module
 */

const MAX_DEPTH = 500;

/**
 * Whether two JSON values are equal; the order of properties does not count, and a property that is
 * `undefined` equals an absent one. Values that are not JSON (a `Date`, a `Map`) or nested deeper than 500
 * levels are equal to themselves only.
 *
 * Allocates nothing, so that many objects that are mostly equal can be compared.
 */
export function isSameJson(a: unknown, b: unknown): boolean {
  return isSame(a, b, 0);
}

function isSame(a: unknown, b: unknown, depth: number): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || depth > MAX_DEPTH) {
    return false;
  }
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!isSame(a[i], b[i], depth + 1)) return false;
    return true;
  }
  if (!isPlainObject(a) || !isPlainObject(b)) return false;
  let surplus = 0;
  for (const name in a) {
    if (a[name] === undefined) continue;
    if (!Object.hasOwn(b, name) || !isSame(a[name], b[name], depth + 1)) return false;
    surplus++;
  }
  for (const name in b) if (b[name] !== undefined) surplus--;
  return surplus === 0;
}

// `JSON.rawJSON` makes objects without a prototype.
function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
