/**
 * A hash of a set of texts, kept while the set changes.
 * @module
 */

import { finishLane, hashLanes, hexLane } from "./text_hash.ts";

/**
 * The hash of a set of texts in whatever order they were added: the sums of two hashes of 32 bits each. It
 * distinguishes sets and does not protect against deliberate collisions.
 */
export class TextSetHash {
  #a = 0;
  #b = 0;
  #size = 0;

  /** How many texts there are. */
  get size(): number {
    return this.#size;
  }

  /** The hash, as 16 lower-case hexadecimal digits. */
  get text(): string {
    return hexLane(this.#a) + hexLane(this.#b);
  }

  /** Adds a text. */
  add(text: string): void {
    this.#change(text, 1);
  }

  /** Deletes a text, which must have been added. */
  delete(text: string): void {
    this.#change(text, -1);
  }

  #change(text: string, sign: 1 | -1): void {
    const [a, b] = hashLanes(text);
    // Without the finish, sums of similar texts would be equal.
    this.#a = (this.#a + sign * finishLane(a)) | 0;
    this.#b = (this.#b + sign * finishLane(b ^ text.length)) | 0;
    this.#size += sign;
  }
}
