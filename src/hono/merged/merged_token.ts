/**
 * Continue tokens of merged lists.
 * @module
 */

import { newStatus, type Status } from "../../meta/status.ts";

/** Where the next page begins in the list of one shard. */
export interface ShardPlace {
  /**
   * The resourceVersion of the shard's list; `"0"`: the shard was away when the list began, and is left out; `""`: its
   * present state.
   */
  readonly version: string;
  /**
   * How many items to skip from where the token leads; {@linkcode ENDED}: the shard's list has ended; {@linkcode SKIP_SEEN}:
   * those that come before what the pages so far had.
   */
  readonly skip: number;
  /** The shard's own token; absent at the beginning of its list. */
  readonly token?: string | undefined;
}

export const ENDED = -1;
export const SKIP_SEEN = -2;

/** The content of a token. */
export interface MergedToken {
  /** Identifies the list. */
  readonly list: string;
  /** The last key of the pages so far. */
  readonly seen: string;
  /** One for each shard. */
  readonly places: readonly ShardPlace[];
}

const FORMAT = "merged.listwatch/v1";
const MAX_TOKEN_LENGTH = 64 * 1024;

/** Writes a token. It says of itself that each shard's part is consistent, and not the whole. */
export function encodeMergedToken({ list, seen, places }: MergedToken): string {
  const shards = places.map(({ version, skip, token }) =>
    token === undefined ? [version, skip] : [version, skip, token]
  );
  const json = JSON.stringify({ v: FORMAT, consistency: "per-shard", list, seen, shards });
  const ascii = json.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return btoa(ascii).replaceAll("+", "-").replaceAll("/", "_").replace(/={1,2}$/, "");
}

/** Reads a token, or returns the Status that refuses it. */
export function decodeMergedToken(text: string): MergedToken | Status {
  if (text.length > MAX_TOKEN_LENGTH) return refusal(`it is longer than ${MAX_TOKEN_LENGTH} characters`);
  let value: {
    readonly v?: unknown;
    readonly list?: unknown;
    readonly seen?: unknown;
    readonly shards?: unknown;
  } | null;
  try {
    value = JSON.parse(atob(text.replaceAll("-", "+").replaceAll("_", "/")));
  } catch {
    return refusal("it cannot be decoded");
  }
  const { v, list, seen, shards } = value ?? {};
  if (v !== FORMAT || typeof list !== "string" || typeof seen !== "string" || !Array.isArray(shards)) {
    return refusal("it is no token of a merged list");
  }
  const places: ShardPlace[] = [];
  for (const shard of shards) {
    const [version, skip, token] = Array.isArray(shard) ? shard : [];
    const isPlace = typeof version === "string" && /^(0|[1-9][0-9]{0,99})?$/.test(version) &&
      Number.isSafeInteger(skip) && skip >= SKIP_SEEN && skip <= MAX_SKIP &&
      (token === undefined || typeof token === "string");
    if (!isPlace) return refusal("a place in it is none");
    places.push({ version, skip, ...(token !== undefined && { token }) });
  }
  return { list, seen, places };
}

const MAX_SKIP = 1_000_000;

function refusal(reason: string): Status {
  return newStatus(400, "BadRequest", `invalid continue token: ${reason}`);
}
