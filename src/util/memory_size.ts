/**
 * How much memory a value takes.
 * @module
 */

// A property's share of its object, or an element's of its array.
const SLOT_BYTES = 16;
// No object that a server sends comes near.
const MOST_VALUES = 1_000_000;

/**
 * About how many bytes a value takes, with what it refers to: its strings and buffers, and a fixed share for
 * every other value. Costs a walk over it. The names of properties are not counted: engines share them
 * between objects.
 */
export function memorySize(value: unknown): number {
  let bytes = 0;
  const rest: unknown[] = [value];
  for (let i = 0; i < MOST_VALUES && rest.length > 0; i++) {
    const next = rest.pop();
    bytes += SLOT_BYTES;
    if (typeof next === "string") bytes += next.length;
    else if (typeof next !== "object" || next === null) continue;
    else if (ArrayBuffer.isView(next)) bytes += next.byteLength;
    else if (Array.isArray(next)) { for (const element of next) rest.push(element); }
    else for (const name of Object.keys(next)) rest.push((next as Record<string, unknown>)[name]);
  }
  return bytes;
}
