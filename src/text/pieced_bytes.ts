/**
 * Bytes that come in pieces.
 * @module
 */

/** Puts pieces together, in time in proportion to their length however small they are. */
export class PiecedBytes {
  #bytes: Uint8Array = NOTHING;
  #length = 0;

  /** How many bytes there are. */
  get length(): number {
    return this.#length;
  }

  /** The bytes so far, valid until the next call. */
  get all(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Adds a piece. */
  add(piece: Uint8Array): void {
    const before = this.#length;
    this.#length += piece.length;
    if (this.#length > this.#bytes.length) {
      const longer = new Uint8Array(before === 0 ? piece.length : this.#length * 2);
      longer.set(this.all.subarray(0, before));
      this.#bytes = longer;
    }
    this.#bytes.set(piece, before);
  }

  /** Takes all bytes out; the memory is the caller's then. */
  take(): Uint8Array {
    const { all } = this;
    this.#bytes = NOTHING;
    this.#length = 0;
    return all;
  }
}

const NOTHING: Uint8Array = new Uint8Array(0);
