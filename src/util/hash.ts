/** Hashes of texts and of sets of texts. None protects against deliberate collisions. */

/** The hash of a text, as 16 lower-case hexadecimal digits: FNV-1a in two lanes of 32 bits. */
export function textHash(text: string): string {
  const [a, b] = hashLanes(text);
  return hexLane(a) + hexLane(b);
}

/** The two lanes of {@linkcode textHash}. */
export function hashLanes(text: string): readonly [number, number] {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b) ^ (b >>> 13);
  }
  return [a, b];
}

/** A lane, as 8 hexadecimal digits. */
export function hexLane(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, "0");
}

/** Finishes a lane: all of its bits depend on all. https://github.com/aappleby/smhasher/wiki/MurmurHash3 */
export function finishLane(lane: number): number {
  let mixed = lane;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** The hash of a set of texts in whatever order they were added: the sums of two hashes of 32 bits each. */
export class TextSetHash {
  #a = 0;
  #b = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The hash, as 16 lower-case hexadecimal digits. */
  get text(): string {
    return hexLane(this.#a) + hexLane(this.#b);
  }

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
