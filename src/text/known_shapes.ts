/** Walking JSON values that are written as others before them. */

import { afterString, afterValue, BACKSLASH, QUOTE, wordsOf } from "./json_walk.ts";

/**
 * Walks values that mostly differ from one another in their strings only, as the managedFields of objects
 * that were made alike do: three times as fast as a walk over each byte.
 *
 * How it works. A value is compared with some that were walked before, eight bytes at a time, as a number.
 * Where they differ inside a string, the string is walked, and the comparison continues behind it. So what is
 * between the strings is the same, and the value is as valid as the one before. One that differs elsewhere is
 * walked as any other, and remembered.
 */
export class KnownShapes {
  readonly #shapes: Shape[] = [];
  /** The place of the shape that was found last, and of the one that is replaced next. */
  #last = 0;
  #next = 0;
  /** Rises with each value that is like one before it, and falls with each that is not. */
  #luck = 0;
  #unlucky = 0;

  /** As `afterValue`. */
  afterValue(bytes: Uint8Array, start: number, maxDepth: number): number {
    // Where many values are new, few are compared: several in a row, as those that were made alike may be.
    if (this.#luck < 0 && this.#unlucky++ % 32 >= 4) return afterValue(bytes, start, maxDepth);
    const shapes = this.#shapes;
    for (let i = 0; i < shapes.length; i++) {
      const place = (this.#last + i) % shapes.length;
      const end = afterLike(shapes[place], bytes, wordsOf(bytes), start);
      if (end < 0) continue;
      this.#luck = Math.min(this.#luck + 1, MOST_LUCK);
      this.#last = place;
      return end;
    }
    const end = afterValue(bytes, start, maxDepth);
    const length = end - start;
    if (length >= MIN_LENGTH && length <= MAX_LENGTH) {
      this.#luck = Math.max(this.#luck - NEW_COST, -MOST_LUCK);
      this.#last = this.#next;
      shapes[this.#next] = newShape(bytes.slice(start, end));
      this.#next = (this.#next + 1) % SHAPES;
    }
    return end;
  }
}

/** A value that is valid JSON. */
interface Shape {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /**
   * For each byte in a string, or of its closing quote, where the string begins behind its quote; otherwise
   * 0.
   */
  readonly begins: Uint16Array;
  /** For the same, where the string ends behind its quote. */
  readonly ends: Uint16Array;
}

function newShape(bytes: Uint8Array): Shape {
  const begins = new Uint16Array(bytes.length);
  const ends = new Uint16Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i] !== QUOTE) continue;
    const begin = i + 1;
    for (i = begin; bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    begins.fill(begin, begin, i + 1);
    ends.fill(i + 1, begin, i + 1);
  }
  return { bytes, view: viewOf(bytes), begins, ends };
}

/**
 * Behind the value that begins here, if it differs from that of the shape in its strings only; otherwise -1.
 */
function afterLike(shape: Shape, bytes: Uint8Array, view: DataView, start: number): number {
  const { bytes: known, view: knownView } = shape;
  const { length } = known;
  // So far eight bytes can be compared in both. Those of a JSON text are no number that equals another, such
  // as 0 and -0.
  const wordsEnd = length - 7;
  let i = start;
  let k = 0;
  for (;;) {
    const end = Math.min(wordsEnd, bytes.length - 7 - i + k);
    while (k < end && view.getFloat64(i, true) === knownView.getFloat64(k, true)) {
      i += 8;
      k += 8;
    }
    while (k < length && bytes[i] === known[k]) {
      i++;
      k++;
    }
    if (k === length) return i;
    const begin = shape.begins[k];
    if (begin === 0) return -1;
    i = afterString(bytes, i - (k - begin));
    if (i < 0) return -1;
    k = shape.ends[k];
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** How many shapes are remembered, and of which length. */
const SHAPES = 4;
const MIN_LENGTH = 128;
const MAX_LENGTH = 0xffff;
/** How far luck goes, and of how many values that are like others one that is new takes what they save. */
const MOST_LUCK = 32;
const NEW_COST = 8;
