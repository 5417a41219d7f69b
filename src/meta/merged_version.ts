/** The resourceVersion of a resource that several servers hold together. */

import { textHash } from "../util/hash.ts";
import { compareResourceVersions } from "./object.ts";

export interface MergedVersion {
  /** The layout of the shards, as 10 digits: versions of different layouts say nothing about each other. */
  readonly layout: string;
  /** The version of each shard, in the order of the layout; `"0"` for a shard that was not read. */
  readonly parts: readonly string[];
}

export const MOST_SHARDS = 999;

const LAYOUT_DIGITS = 10;
const COUNT_DIGITS = 3;
const TAIL_DIGITS = LAYOUT_DIGITS + COUNT_DIGITS;
// The base makes sums of at least 8 digits, and the whole longer than 20 digits, an API server's longest.
const BASE = 10_000_000n;

/** The ten digits that say in which way something is divided, and into which parts. */
export function newLayout(names: readonly string[]): string {
  return String(BigInt(`0x${textHash(JSON.stringify(names))}`) % 10_000_000_000n).padStart(10, "0");
}

/**
 * Writes the versions of all shards as one decimal number:
 *
 *     sum | part 1 | ... | part n-1 | layout (10 digits) | n (3 digits)
 *
 * The sum is that of all parts and 10,000,000; each part has as many digits as the sum, and the last one is
 * what the others leave of it. So if no part goes back and one advances, the number is a greater one, as
 * clients compare resourceVersions. It has more than 20 digits, which no API server's version has.
 * @throws {RangeError} There are no parts, or too many, or one is no decimal number.
 */
export function encodeMergedVersion({ layout, parts }: MergedVersion): string {
  if (parts.length === 0 || parts.length > MOST_SHARDS) {
    throw new RangeError(`Cannot merge ${parts.length} resourceVersions: 1 to ${MOST_SHARDS} are possible`);
  }
  let sum = BASE;
  for (const part of parts) {
    if (!/^(0|[1-9][0-9]*)$/.test(part)) {
      throw new RangeError(
        `Cannot merge the resourceVersion ${JSON.stringify(part)}: it is no decimal number`,
      );
    }
    sum += BigInt(part);
  }
  const head = String(sum);
  let text = head;
  for (let i = 0; i < parts.length - 1; i++) text += parts[i].padStart(head.length, "0");
  return text + layout + String(parts.length).padStart(COUNT_DIGITS, "0");
}

/** Reads what {@linkcode encodeMergedVersion} has written; `undefined` for every other text. */
export function decodeMergedVersion(text: string): MergedVersion | undefined {
  if (!/^[1-9][0-9]{20,}$/.test(text)) return undefined;
  const count = Number(text.slice(-COUNT_DIGITS));
  const digits = (text.length - TAIL_DIGITS) / count;
  if (!Number.isInteger(digits)) return undefined; // nor if there are none
  const parts: string[] = [];
  let last = BigInt(text.slice(0, digits)) - BASE;
  for (let i = 1; i < count; i++) {
    const part = BigInt(text.slice(i * digits, (i + 1) * digits));
    last -= part;
    parts.push(String(part));
  }
  if (last < 0n) return undefined;
  parts.push(String(last));
  return { layout: text.slice(-TAIL_DIGITS, -COUNT_DIGITS), parts };
}

/**
 * Whether a server that has reached a version has everything up to another one. Every part of a merged
 * version must be reached: the greater number alone says nothing.
 */
export function hasReached(version: string, wanted: string): boolean {
  const [whole, other] = [decodeMergedVersion(version), decodeMergedVersion(wanted)];
  if (whole === undefined || other === undefined) {
    return whole === other && compareResourceVersions(version, wanted) >= 0;
  }
  return whole.layout === other.layout && whole.parts.length === other.parts.length &&
    whole.parts.every((part, i) => compareResourceVersions(part, other.parts[i]) >= 0);
}

export function isMergedVersion(text: string): boolean {
  return decodeMergedVersion(text) !== undefined;
}
