/**
 * Random choices.
 * @module
 */

const HEX = "0123456789abcdef";
// No vowels and no digits that look like letters: https://github.com/kubernetes/apimachinery/blob/master/pkg/util/rand/rand.go
const NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Makes the random choices of the living cluster. */
export class Dice {
  readonly #random: () => number;

  /** @param random Numbers in [0, 1). */
  constructor(random: () => number) {
    this.#random = random;
  }

  /** True with this probability. */
  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A number from 0 (included) to `max` (excluded). */
  upTo(max: number): number {
    return this.#random() * max;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }

  /** One of several, `undefined` if there are none. */
  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** Letters and digits as Kubernetes appends them to generated names. */
  letters(length: number): string {
    return this.#text(NAME_LETTERS, length);
  }

  /** Hexadecimal digits. */
  hex(length: number): string {
    return this.#text(HEX, length);
  }

  /** A version 4 UUID. */
  uid(): string {
    const [a, b, c, d, e] = [8, 4, 3, 3, 12].map((length) => this.hex(length));
    return `${a}-${b}-4${c}-a${d}-${e}`;
  }

  #text(alphabet: string, length: number): string {
    let text = "";
    for (let i = 0; i < length; i++) text += alphabet[Math.floor(this.#random() * alphabet.length)];
    return text;
  }
}
