/** Dividing objects among shards by a hash. */

import { finishLane } from "../util/hash.ts";
import { metaOf } from "./object.ts";

/**
 * The shard of a key (`namespace/name`, or the name of an object without a namespace) among `count` shards,
 * from 0.
 *
 * The hash is the 32-bit FNV-1a of the key's UTF-8, finished as by MurmurHash3 (`fmix32`); the shard is its
 * place among `count` equal ranges: `floor(hash * count / 2^32)`. It stays so: objects that were stored by it
 * are found by it.
 */
export function shardIndexOf(key: string, count: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) {
    const unit = key.charCodeAt(i);
    if (unit > 0x7f) return ranged(finishLane(ofBytes(encoder.encode(key))), count);
    hash = Math.imul(hash ^ unit, 0x01000193);
  }
  return ranged(finishLane(hash), count);
}

/**
 * The 64-bit FNV-1a hash of a text's UTF-8, as 16 hexadecimal digits: the hash of Kubernetes' `shardRange`,
 * https://kubernetes.io/blog/2026/05/06/kubernetes-v1-36-server-side-sharded-list-and-watch/
 */
export function fnv64(text: string): string {
  // Four limbs of 16 bits, the lowest first. The prime is 2^40 + 0x1b3.
  let [a, b, c, d] = [0x2325, 0x8422, 0x9ce4, 0xcbf2];
  for (const byte of encoder.encode(text)) {
    a ^= byte;
    const a1 = a * 0x1b3;
    const b1 = b * 0x1b3 + (a1 >>> 16);
    const c1 = c * 0x1b3 + (a << 8) + (b1 >>> 16);
    const d1 = d * 0x1b3 + (b << 8) + (c1 >>> 16);
    a = a1 & 0xffff;
    b = b1 & 0xffff;
    c = c1 & 0xffff;
    d = d1 & 0xffff;
  }
  return [d, c, b, a].map((limb) => limb.toString(16).padStart(4, "0")).join("");
}

/** What decides on an object's shard in Kubernetes. */
export type ShardField = "uid" | "namespace";

/**
 * Ranges of hashes of a field, in which an object's own must be (KEP-5866). Mirrors apimachinery's
 * `sharding.Selector`.
 */
export class ShardSelector {
  readonly field: ShardField;
  /** Beginnings and ends, of which the ends are beyond: 16 hexadecimal digits each, or 2^64 as an end. */
  readonly ranges: readonly (readonly [string, string])[];

  constructor(field: ShardField, ranges: ShardSelector["ranges"]) {
    this.field = field;
    this.ranges = ranges;
  }

  /** One of `of` equal ranges of all hashes. Mirrors apimachinery's `NewShardRangeSelector`. */
  static range(field: ShardField, index: number, of: number): ShardSelector {
    const bound = (i: number) => ((BigInt(i) << 64n) / BigInt(of)).toString(16).padStart(16, "0");
    return new ShardSelector(field, [[bound(index), bound(index + 1)]]);
  }

  /** Whether an object, of which the metadata is enough, belongs to it. */
  matches(object: unknown): boolean {
    const hash = fnv64(metaOf(object)?.[this.field] ?? "");
    return this.ranges.some(([start, end]) => start <= hash && (hash < end || end.length > hash.length));
  }

  /** The text that `shardInfo` of a list has, which parses to an equal selector. */
  toString(): string {
    return this.ranges.map(([start, end]) =>
      `shardRange(object.metadata.${this.field}, '0x${start}', '0x${end}')`
    ).join(" || ");
  }
}

const encoder = new TextEncoder();

function ofBytes(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash;
}

function ranged(hash: number, count: number): number {
  return Math.floor(hash * count / 0x1_0000_0000);
}
