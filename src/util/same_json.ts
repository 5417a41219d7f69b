/**
 * Whether two JSON values are the same.
 * @module
 */

const MAX_DEPTH = 500;

/**
 * Whether two JSON values have the same content, in whatever order their properties are. A property that is `undefined`
 * is as good as absent. What is no JSON (a `Date`, a `Map`), or nested deeper than 500 levels, is the same as itself only.
 *
 * Allocates nothing: for comparing many objects that are mostly the same.
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
