/**
 * Random JSON.
 * @module
 */

import { seededRandom } from "@listwatch/cache/testing";

const KEYS = [
  "kind",
  "apiVersion",
  "metadata",
  "managedFields",
  "name",
  "namespace",
  "labels",
  "uid",
  "resourceVersion",
  "annotations",
  "creationTimestamp",
  "deletionTimestamp",
  "spec",
  "__proto__",
  "constructor",
  "",
  "métadata",
  "items",
  "metadat",
  "metadatA",
  "𝒳",
];
const STRINGS = [
  "",
  "web-1",
  "Pod",
  "v1",
  '"',
  "\\",
  "}",
  "]",
  "{[",
  'a"b\\"c',
  "ü",
  "\u2028",
  "\ud800",
  "𝒳",
  "\0\n",
  "/",
];
const NUMBERS = [
  "0",
  "-0",
  "1",
  "-1.5",
  "1e9",
  "1E+400",
  "0.1e-7",
  "9007199254740993",
  "123456789012345678901234567890",
];

/** Writes random JSON in the ways in which it may be written; a seed repeats it. */
export class JsonWriter {
  readonly #random: () => number;
  readonly #isPlain: boolean;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.#isPlain = this.#random() < 0.5; // as servers write
  }

  object(depth: number): string {
    const members: string[] = [];
    for (let i = this.below(depth === 0 ? 7 : 4); i > 0; i--) {
      const key = this.of(KEYS);
      const isNested = this.below(8) > 0 &&
        (depth === 0 && key === "metadata" || depth === 1 && (key === "labels" || key === "annotations"));
      const value = isNested ? this.object(1) : this.value(depth + 1);
      members.push(this.space() + this.key(key) + this.space() + ":" + this.space() + value + this.space());
    }
    return `{${members.length === 0 ? this.space() : members.join(",")}}`;
  }

  value(depth: number): string {
    switch (this.below(depth > 4 ? 5 : 8)) {
      case 0:
        return this.of(["true", "false", "null"]);
      case 1:
        return this.of(NUMBERS);
      case 2:
      case 3:
      case 4:
        return this.string(this.of(STRINGS));
      case 5:
        return `[${
          Array.from({ length: this.below(4) }, () => this.space() + this.value(depth + 1) + this.space())
        }]`;
      default:
        return this.object(depth);
    }
  }

  key(text: string): string {
    return this.#isPlain || this.below(8) > 0 ? JSON.stringify(text) : this.string(text);
  }

  string(text: string): string {
    const plain = JSON.stringify(text);
    if (this.#isPlain || this.below(2) === 0) return plain;
    let written = "";
    for (let i = 0; i < text.length; i++) {
      const hex = text.charCodeAt(i).toString(16).padStart(4, "0");
      written += this.below(3) === 0
        ? "\\u" + (this.below(2) === 0 ? hex : hex.toUpperCase())
        : text[i] === "/"
        ? "\\/"
        : JSON.stringify(text[i]).slice(1, -1);
    }
    // Half of a pair that is written as it is, and the other as an escape, is no text that UTF-8 can carry.
    return `"${written}"`.isWellFormed() ? `"${written}"` : plain;
  }

  space(): string {
    return this.#isPlain || this.below(4) > 0 ? "" : this.of([" ", "\n", "\t ", "\r\n", "  "]);
  }

  /** The name of a member. */
  name(): string {
    return this.of(KEYS);
  }

  of<V>(values: readonly V[]): V {
    return values[this.below(values.length)];
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}
