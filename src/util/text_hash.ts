/**
 * A short hash of a text.
 * @module
 */

/**
 * The hash of a text, as 16 lower-case hexadecimal digits: FNV-1a in two lanes of 32 bits. It distinguishes texts
 * and does not protect against deliberate collisions.
 */
export function textHash(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b) ^ (b >>> 13);
  }
  return hex(a) + hex(b);
}

function hex(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, "0");
}
