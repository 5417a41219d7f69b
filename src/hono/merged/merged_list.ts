/**
 * Lists of a merged resource.
 * @module
 */

import type { ListMeta } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import { isStatus } from "../../protocol/statuses.ts";
import { prefersGzip } from "../send/gzip.ts";
import { notModified, objectHeaders, VARY } from "../send/responses.ts";
import { loadYaml } from "../send/yaml.ts";
import { itemsFieldOf, limitOf, openParts, placesOf } from "./list_parts.ts";
import { listResponse, ListWriter } from "./list_writer.ts";
import { mergedColumns } from "./merged_columns.ts";
import { mergedHeaders } from "./merged_headers.ts";
import { MergedItems } from "./merged_items.ts";
import { type MergedPage, readPage } from "./merged_page.ts";
import type { MergedRequest } from "./merged_request.ts";
import { mergedTag, tagsOf } from "./merged_tags.ts";
import { incomplete, type Merged } from "./shards.ts";

// The pieces of a streamed list.
const PIECE_LENGTH = 64 * 1024;

/** The answer to a list. */
export async function answerMergedList(
  merged: Merged,
  request: MergedRequest,
  abort: AbortController,
): Promise<Response | Status> {
  const begin = placesOf(merged, request);
  if (isStatus(begin)) return begin;
  const { places, seen } = begin;
  const tagForm = `${request.agreed.mediaType} ${request.pretty}`;
  const known = tagsOf(request.headers.get("If-None-Match"), { form: tagForm, count: places.length });
  const opened = await openParts(merged, request, { places, known, abort });
  if (isStatus(opened)) return opened;
  const { parts, responses, away } = opened;
  const tag = away.length > 0
    ? undefined
    : mergedTag(responses.map((response) => response?.headers.get("ETag") ?? null), tagForm);
  if (opened.isUnchanged && tag !== undefined) return notModified(tag);
  const isWhole = limitOf(request) === Infinity;
  const items = new MergedItems(merged, request, { parts, isWhole, seen, abort });
  try {
    await items.start();
    const page = isWhole ? undefined : await readPage(items, request);
    const head = listHead(merged, items, page?.metadata ?? {});
    const headers = mergedHeaders(responses.filter((response) => response !== undefined), {
      resourceVersion: items.resourceVersion,
      away,
      isSnapshot: places.length === 1,
    });
    const { agreed: { mediaType } } = request;
    for (const [name, value] of Object.entries({ ...objectHeaders(mediaType), ...VARY })) {
      headers.set(name, value);
    }
    if (tag !== undefined) headers.set("ETag", tag);
    const yaml = mediaType === "application/yaml" ? await loadYaml() : undefined;
    const writer = new ListWriter(head, { itemsField: itemsFieldOf(request), pretty: request.pretty, yaml });
    const pieces = listText(items, writer, page);
    return await listResponse(pieces, {
      headers,
      gzip: prefersGzip(request.headers.get("Accept-Encoding") ?? undefined),
      cancel: () => {
        items.cancel();
        abort.abort();
      },
    });
  } catch (error) {
    items.cancel();
    if (abort.signal.aborted) throw error;
    return incomplete(merged, [{ shard: items.failed ?? merged.shards[0], why: String(error) }]);
  }
}

/** The list without its items. */
function listHead(
  { resource }: Merged,
  { parts, resourceVersion }: MergedItems,
  metadata: ListMeta,
): Record<string, unknown> {
  const first = parts.find(({ head }) => head !== undefined)?.head;
  const { items: _, rows: _1, ...head } = (first ?? {}) as Record<string, unknown>;
  const isAlways = first?.metadata.continue !== undefined;
  const { columnDefinitions: columns } = head;
  return {
    ...head,
    ...(columns !== undefined && { columnDefinitions: mergedColumns(resource, columns) }),
    metadata: { resourceVersion, ...(isAlways && { continue: "" }), ...metadata },
  };
}

/** The text of the list, piece by piece: of a page, or of everything. */
async function* listText(
  items: MergedItems,
  writer: ListWriter,
  page: MergedPage | undefined,
): AsyncGenerator<string> {
  if (page !== undefined) items.cancel();
  let text = "";
  for (let i = 0;; i++) {
    const item = page === undefined ? await items.take() : page.items[i];
    if (item === undefined) break;
    text += writer.item(item);
    if (text.length < PIECE_LENGTH) continue;
    yield text;
    text = "";
  }
  yield text + writer.end();
}
