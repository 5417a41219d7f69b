/**
 * Names and uids from a source of random numbers.
 * @module
 */

// No vowels, so that no words arise, and no digits that look like letters.
const LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Five characters, as an API server appends them to `generateName`. */
export function randomSuffix(random: () => number): string {
  let suffix = "";
  for (let i = 0; i < 5; i++) suffix += LETTERS[Math.floor(random() * LETTERS.length)];
  return suffix;
}

/** A version 4 UUID. */
export function randomUid(random: () => number): string {
  let hex = "";
  for (let i = 0; i < 32; i++) {
    const digit = i === 12 ? 4 : i === 16 ? 8 + Math.floor(random() * 4) : Math.floor(random() * 16);
    hex += digit.toString(16);
    if (i === 7 || i === 11 || i === 15 || i === 19) hex += "-";
  }
  return hex;
}
