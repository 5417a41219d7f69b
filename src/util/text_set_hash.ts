/**
 * A hash of a set of texts, kept while the set changes.
 * @module
 */

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
    return hex(this.#a) + hex(this.#b);
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
    let a = 0x811c9dc5;
    let b = 0x01000193;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      a = Math.imul(a ^ unit, 0x01000193);
      b = Math.imul(b ^ unit, 0x85ebca6b) ^ (b >>> 13);
    }
    this.#a = (this.#a + sign * mixed(a)) | 0;
    this.#b = (this.#b + sign * mixed(b ^ text.length)) | 0;
    this.#size += sign;
  }
}

/** All bits depend on all: otherwise sums of similar texts would be equal. https://github.com/aappleby/smhasher/wiki/MurmurHash3 */
function mixed(hash: number): number {
  let h = hash ^ (hash >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) | 0;
}

function hex(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, "0");
}
