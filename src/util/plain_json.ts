/**
 * What can be written as JSON and read again.
 * @module
 */

/**
 * Whether a value is the same after it was written as JSON and read, but for properties that are `undefined`.
 */
export function isPlainJson(value: unknown, depth: number = 0): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > MAX_DEPTH) return false; // or it holds itself
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (!isPlainJson(value[i], depth + 1)) return false;
    return true;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return false;
  const fields = value as Record<string, unknown>;
  for (const name in fields) {
    if (fields[name] !== undefined && !isPlainJson(fields[name], depth + 1)) return false;
  }
  return true;
}

const MAX_DEPTH = 500;
