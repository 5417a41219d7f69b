/**
 * Pages of a merged list.
 * @module
 */

import type { ListMeta } from "../../meta/object.ts";
import { limitOf, type ListPart } from "./list_parts.ts";
import { type MergedItems, versionOf } from "./merged_items.ts";
import type { MergedRequest } from "./merged_request.ts";
import { encodeMergedToken, ENDED, type ShardPlace } from "./merged_token.ts";

/** A page of a list. */
export interface MergedPage {
  readonly items: readonly string[];
  readonly metadata: ListMeta;
}

// What a page may take in memory: it ends early.
const PAGE_LENGTH = 16 * 1024 * 1024;

/** Up to `limit` items, and the metadata of the page. */
export async function readPage(items: MergedItems, request: MergedRequest): Promise<MergedPage> {
  const limit = limitOf(request);
  const taken: string[] = [];
  let length = 0;
  while (taken.length < limit && length < PAGE_LENGTH) {
    const item = await items.take();
    if (item === undefined) break;
    taken.push(item);
    length += item.length;
  }
  return { items: taken, metadata: await pageMetadata(items, request) };
}

/** Where the next page begins, and what is left. */
async function pageMetadata(
  items: MergedItems,
  request: MergedRequest,
): Promise<ListMeta> {
  const isAnyLeft = items.parts.some(isLeft);
  if (!isAnyLeft) return {};
  const places: ShardPlace[] = [];
  let remaining: number | undefined = 0;
  const { labelSelector, fieldSelector } = request.query;
  const hasSelector = labelSelector !== undefined || fieldSelector !== undefined ||
    request.params.has("fieldSelector");
  for (const part of items.parts) {
    const version = versionOf(part);
    if (!isLeft(part)) {
      places.push({ version, skip: ENDED });
      continue;
    }
    const token = part.head?.metadata.continue;
    const isConsumed = part.list?.item === undefined;
    places.push(
      isConsumed ? { version, skip: 0, token } : { version, skip: part.taken, token: part.from?.token },
    );
    remaining = remaining === undefined || hasSelector ? undefined : add(remaining, await restOf(part));
  }
  const next = encodeMergedToken({
    list: `${request.identity}.${request.layout}`,
    seen: items.seen,
    places,
  });
  return {
    continue: next,
    ...(remaining !== undefined && { remainingItemCount: remaining }),
  };
}

function isLeft({ list, head }: ListPart): boolean {
  return list?.item !== undefined || Boolean(head?.metadata.continue);
}

/** How many items of a shard are left; `undefined` if it does not say. */
async function restOf(part: ListPart): Promise<number | undefined> {
  const { continue: token, remainingItemCount } = part.head!.metadata;
  if (token) {
    return remainingItemCount === undefined ? undefined : part.limit - part.taken + remainingItemCount;
  }
  let count = 0;
  while (await part.list!.hasItem()) {
    part.list!.take();
    count++;
  }
  return count;
}

function add(a: number, b: number | undefined): number | undefined {
  return b === undefined ? undefined : a + b;
}
