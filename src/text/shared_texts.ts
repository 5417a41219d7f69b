/**
 * Texts that many objects have.
 * @module
 */

/** What was read lately, by its bytes: a table in which one takes the place of another. */
export class SharedTexts<V> {
  #texts: (string | undefined)[] = [];
  #values: (V | undefined)[] = [];
  #slot = 0;

  /** What was set for these bytes; `undefined` if nothing was, or it is there no more. */
  get(bytes: Uint8Array, start: number, end: number): V | undefined {
    const slot = this.#slot = hashOf(bytes, start, end) % SLOTS;
    const text = this.#texts[slot];
    return text !== undefined && isTextAt(bytes, start, end, text) ? this.#values[slot] : undefined;
  }

  /**
   * Sets it for the bytes that were looked up last, of which this is the text; only if each is a character,
   * and few.
   */
  set(text: string, length: number, value: V): void {
    if (text.length !== length || length > MAX_LENGTH) return;
    if (this.#texts.length === 0) {
      this.#texts = new Array(SLOTS);
      this.#values = new Array(SLOTS);
    }
    this.#texts[this.#slot] = text;
    this.#values[this.#slot] = value;
  }
}

/** Whether the bytes are those of this text; not if it has other characters than ASCII's. */
export function isTextAt(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (text.length !== end - start) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}

/** A hash of bytes, of a long part not of all: what follows compares them. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  let i = start;
  for (; i < end - 24; i += 8) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  for (i = Math.max(start, end - 24); i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return (hash ^ hash >>> 15) >>> 0;
}

const SLOTS = 8192;
const MAX_LENGTH = 512;
