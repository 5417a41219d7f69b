/**
 * Lists of a merged resource.
 * @module
 */

import { encodeMergedVersion } from "../../meta/merged_version.ts";
import type { ListMeta } from "../../meta/object.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import { indentedText } from "../../protocol/responses.ts";
import { continueTooOld, isStatus } from "../../protocol/statuses.ts";
import { KeyedHeap } from "../../util/heap.ts";
import { GZIP_LEAST_BYTES, gzipChunks, gzipResponse, prefersGzip } from "../answers/gzip.ts";
import { notModified, objectHeaders, VARY } from "../answers/responses.ts";
import { loadYaml, type YamlWriter } from "../answers/yaml.ts";
import { encode } from "../watches/encoding.ts";
import { mergedColumns } from "./merged_columns.ts";
import { mergedHeaders } from "./merged_headers.ts";
import { acceptOf, type MergedRequest, paramsFor, versionsOf } from "./merged_request.ts";
import { mergedTag, tagsOf } from "./merged_tags.ts";
import { decodeMergedToken, encodeMergedToken, ENDED, type ShardPlace, SKIP_SEEN } from "./merged_token.ts";
import { type ListHead, ShardList } from "./shard_list.ts";
import {
  anotherLayout,
  askShard,
  type AwayShard,
  incomplete,
  type Merged,
  ofCollection,
  type Shard,
} from "./shards.ts";
import { type ShownForm, shownItem } from "./shown_objects.ts";

/** One shard's part of a list. */
interface Part {
  readonly index: number;
  readonly shard: Shard;
  readonly form: ShownForm;
  /** Where its list began; `undefined` if it is not read: it has ended, or the shard is left out. */
  readonly from: ShardPlace | undefined;
  /** Of a list that is not read: what is known of it. */
  readonly version: string;
  /** Absent in a part that is not read. */
  list: ShardList | undefined;
  head: ListHead | undefined;
  /** How many items were requested; `Infinity` for all. */
  readonly limit: number;
  /** How many items of the shard's page were taken. */
  taken: number;
}

// The pieces of a streamed list.
const PIECE_LENGTH = 64 * 1024;
// What a page may take in memory: it ends early.
const PAGE_LENGTH = 16 * 1024 * 1024;

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
  const body = new MergedList(merged, request, { parts, isWhole, seen, abort });
  try {
    await body.start();
    const page = isWhole ? undefined : await body.page();
    const head = body.head(page?.metadata ?? {});
    const headers = mergedHeaders(responses.filter((response) => response !== undefined), {
      resourceVersion: body.resourceVersion,
      away,
      isSnapshot: places.length === 1,
    });
    const { agreed: { mediaType } } = request;
    for (const [name, value] of Object.entries({ ...objectHeaders(mediaType), ...VARY })) {
      headers.set(name, value);
    }
    if (tag !== undefined) headers.set("ETag", tag);
    const yaml = mediaType === "application/yaml" ? await loadYaml() : undefined;
    const writer = new ListWriter(head, { itemsField: body.itemsField, pretty: request.pretty, yaml });
    const pieces = body.pieces(writer, page?.items);
    return await respond(pieces, {
      headers,
      gzip: prefersGzip(request.headers.get("Accept-Encoding") ?? undefined),
      cancel: () => {
        body.cancel();
        abort.abort();
      },
    });
  } catch (error) {
    body.cancel();
    if (abort.signal.aborted) throw error;
    const lost = body.reading;
    return incomplete(merged, [{ shard: lost ?? merged.shards[0], why: String(error) }]);
  }
}

// The tokens of more would not fit into a URL.
const MOST_PAGED_SHARDS = 32;

/** A list at resourceVersion 0 comes whole, as from an API server's cache; so does one of many shards. */
function limitOf({ query, resourceVersion, shards }: MergedRequest): number {
  const isWhole = query.limit === undefined || resourceVersion === "0" || shards.length > MOST_PAGED_SHARDS;
  return isWhole ? Infinity : query.limit!;
}

/** Where the lists of the shards begin, and the last key that the pages before had. */
function placesOf(
  merged: Merged,
  request: MergedRequest,
): { readonly places: readonly ShardPlace[]; readonly seen: string } | Status {
  const { query, shards, identity } = request;
  if (query.continue === undefined) {
    const versions = versionsOf(merged, request);
    return isStatus(versions)
      ? versions
      : { places: versions.map((version) => ({ version, skip: 0 })), seen: "" };
  }
  const token = decodeMergedToken(query.continue);
  if (isStatus(token)) return token;
  const [list, layout] = token.list.split(".");
  if (list !== identity) {
    return newStatus(
      400,
      "BadRequest",
      "invalid continue token: it is of another list; continue with the same path and selectors",
    );
  }
  return layout === request.layout && token.places.length === shards.length
    ? token
    : anotherLayout("continue token");
}

interface OpenedParts {
  readonly parts: readonly Part[];
  readonly responses: readonly (Response | undefined)[];
  readonly away: readonly AwayShard[];
  /** Whether no shard has anything that the reader has not. */
  readonly isUnchanged: boolean;
}

/** Asks all shards for their lists, or for what comes next of them. */
async function openParts(
  merged: Merged,
  request: MergedRequest,
  { places, known, abort }: {
    readonly places: readonly ShardPlace[];
    readonly known: readonly string[] | undefined;
    readonly abort: AbortController;
  },
): Promise<OpenedParts | Status> {
  const { shards } = request;
  const isContinued = request.query.continue !== undefined;
  const limit = limitOf(request);
  // Of a list without a shard, the later pages lack it, too.
  const isLeftOut = ({ version, skip }: ShardPlace) =>
    skip === ENDED || (version === "0" && (isContinued || isExact(request)));
  const ask = async (i: number, ifNoneMatch?: string) => {
    const params = listParams(paramsFor(merged, shards[i], request.params), request, places[i]);
    const { skip } = places[i];
    if (limit < Infinity && skip !== SKIP_SEEN) params.set("limit", String(limit + skip));
    const { pathname } = request;
    return ofCollection(
      await askShard(merged, shards[i], {
        pathname,
        params,
        accept: acceptOf(request),
        preferences: request.preferences,
        ifNoneMatch,
        signal: abort.signal,
      }),
    );
  };
  const isRead = places.map((place) => !isLeftOut(place));
  let outcomes = await Promise.all(places.map((_, i) => isRead[i] ? ask(i, known?.[i]) : undefined));
  const isUnchanged = outcomes.every((outcome) =>
    outcome === undefined || outcome.kind === "answer" && outcome.response.status === 304
  );
  if (!isUnchanged && known !== undefined) {
    outcomes = await Promise.all(
      outcomes.map((outcome, i) =>
        outcome?.kind === "answer" && outcome.response.status === 304 ? ask(i) : outcome
      ),
    );
  }
  const away: AwayShard[] = [];
  const responses = outcomes.map((outcome, i) => {
    if (outcome?.kind === "away") away.push({ shard: shards[i], why: outcome.why });
    return outcome?.kind === "answer" ? outcome.response : undefined;
  });
  const drop = () => {
    for (const response of responses) response?.body?.cancel().catch(() => {});
  };
  const refused = outcomes.findIndex((outcome) => outcome?.kind === "refused");
  const { [refused]: refusal } = outcomes;
  if (refusal?.kind === "refused") {
    drop();
    return refusalOf(request, refusal.status, { places, index: refused });
  }
  const leftOut = places.flatMap((place, i) => place.version === "0" && !isRead[i] ? [shards[i]] : []);
  const missing = [...away, ...leftOut.map((shard) => ({ shard, why: "it was away when the list began" }))];
  if ((missing.length > 0 && !request.isPartial) || missing.length === shards.length) {
    drop();
    return incomplete(merged, missing);
  }
  if (isUnchanged && known !== undefined) return { parts: [], responses, away: missing, isUnchanged };
  const parts = places.map((place, index): Part => {
    const response = responses[index];
    const { body } = response ?? {};
    return {
      index,
      shard: shards[index],
      form: formOf(merged, request, shards[index]),
      version: isContinued ? place.version || "0" : "0",
      from: isRead[index] && response !== undefined ? place : undefined,
      list: body ? newShardList(merged, request, body) : undefined,
      head: undefined,
      limit: place.skip === SKIP_SEEN ? Infinity : limit + place.skip,
      taken: 0,
    };
  });
  return { parts, responses, away: missing, isUnchanged: false };
}

function isExact({ query, resourceVersion }: MergedRequest): boolean {
  if (resourceVersion === "" || resourceVersion === "0") return false;
  return query.resourceVersionMatch === "Exact" ||
    (query.resourceVersionMatch === undefined && query.limit !== undefined);
}

function listParams(
  params: URLSearchParams,
  request: MergedRequest,
  { version, token }: ShardPlace,
): URLSearchParams {
  if (request.query.continue === undefined) {
    if (version !== "") params.set("resourceVersion", version);
    if (version !== "" && isExact(request)) params.set("resourceVersionMatch", "Exact");
    // Nothing was read of the shard when this version was given out: any state will do.
    if (version === "0") params.delete("resourceVersionMatch");
    return params;
  }
  if (token !== undefined) {
    params.set("continue", token);
  } else if (version !== "") {
    params.set("resourceVersion", version);
    params.set("resourceVersionMatch", "Exact");
  }
  return params;
}

/** What a shard refuses. If its state has been forgotten, a token comes with it that continues with the present one. */
function refusalOf(
  { query, identity, layout }: MergedRequest,
  status: Status,
  { places, index }: { readonly places: readonly ShardPlace[]; readonly index: number },
): Status {
  const token = query.continue === undefined ? undefined : decodeMergedToken(query.continue);
  if (status.code !== 410 || token === undefined || isStatus(token)) return status;
  const present = { version: "", skip: SKIP_SEEN };
  const next = places.map((place, i) => i === index ? present : place);
  return continueTooOld(encodeMergedToken({ list: `${identity}.${layout}`, seen: token.seen, places: next }));
}

/** How objects of a shard are shown. */
export function formOf(merged: Merged, { shape, hidesObject }: MergedRequest, shard: Shard): ShownForm {
  return {
    isTable: shape.kind === "Table",
    hidesObject,
    cluster: merged.by === "cluster" ? shard.name : undefined,
  };
}

function itemsFieldOf({ shape }: MergedRequest): "items" | "rows" {
  return shape.kind === "Table" ? "rows" : "items";
}

function newShardList(
  { clock, timeoutMs, resource }: Merged,
  request: MergedRequest,
  body: ReadableStream<Uint8Array>,
): ShardList {
  const { kind } = request.shape;
  return new ShardList(body, {
    itemsField: itemsFieldOf(request),
    kind: kind === "Table" ? kind : `${kind === "object" ? resource.kind : kind}List`,
    clock,
    silenceMs: timeoutMs,
  });
}

/** Merges the lists of the shards in the order of their keys. */
class MergedList {
  readonly itemsField: "items" | "rows";
  resourceVersion = "";
  /** The shard that is being read. */
  reading: Shard | undefined;
  readonly #merged: Merged;
  readonly #request: MergedRequest;
  readonly #parts: readonly Part[];
  readonly #isWhole: boolean;
  readonly #abort: AbortController;
  readonly #heads = new KeyedHeap<
    Part,
    { readonly key: string; readonly index: number; readonly json: string }
  >(
    (a, b) => a.key < b.key || (a.key === b.key && a.index < b.index),
  );
  #isStarted = false;
  /** The last key that was taken. */
  #seen: string;

  constructor(
    merged: Merged,
    request: MergedRequest,
    { parts, isWhole, seen, abort }: {
      readonly seen: string;
      readonly parts: readonly Part[];
      readonly isWhole: boolean;
      readonly abort: AbortController;
    },
  ) {
    this.#abort = abort;
    this.#seen = seen;
    this.#merged = merged;
    this.#request = request;
    this.#parts = parts;
    this.#isWhole = isWhole;
    this.itemsField = itemsFieldOf(request);
  }

  cancel(): void {
    for (const { list } of this.#parts) list?.cancel();
  }

  /** Up to `limit` items, and the metadata of the page. */
  async page(): Promise<{ readonly items: readonly string[]; readonly metadata: ListMeta }> {
    const limit = limitOf(this.#request);
    const items: string[] = [];
    let length = 0;
    await this.#start();
    while (items.length < limit && length < PAGE_LENGTH) {
      const item = await this.#take();
      if (item === undefined) break;
      items.push(item);
      length += item.length;
    }
    const metadata = await this.#pageMetadata();
    return { items, metadata };
  }

  /** The list without its items. */
  head(metadata: ListMeta): Record<string, unknown> {
    const first = this.#parts.find(({ head }) => head !== undefined)?.head;
    const { items: _, rows: _1, ...head } = (first ?? {}) as Record<string, unknown>;
    const isAlways = first?.metadata.continue !== undefined;
    const { columnDefinitions: columns } = head;
    return {
      ...head,
      ...(columns !== undefined && { columnDefinitions: mergedColumns(this.#merged.resource, columns) }),
      metadata: { resourceVersion: this.resourceVersion, ...(isAlways && { continue: "" }), ...metadata },
    };
  }

  /** The text of the list, piece by piece; `items`: those of a page. */
  async *pieces(writer: ListWriter, items: readonly string[] | undefined): AsyncGenerator<string> {
    if (items !== undefined) {
      this.cancel();
      let text = "";
      for (const item of items) {
        text += writer.item(item);
        if (text.length < PIECE_LENGTH) continue;
        yield text;
        text = "";
      }
      yield text + writer.end();
      return;
    }
    let text = "";
    for (;;) {
      const item = await this.#take();
      if (item === undefined) break;
      text += writer.item(item);
      if (text.length < PIECE_LENGTH) continue;
      yield text;
      text = "";
    }
    yield text + writer.end();
  }

  /** Reads the heads: the versions of all shards are known. */
  async start(): Promise<void> {
    await this.#start();
  }

  async #start(): Promise<void> {
    if (this.#isStarted) return;
    this.#isStarted = true;
    await Promise.all(this.#parts.map(async (part) => {
      if (part.list === undefined || part.from === undefined) return;
      part.head = await this.#reads(part, () => part.list!.head());
      for (let skip = part.from.skip; skip > 0 && await part.list.hasItem(); skip--) this.#drop(part);
      while (
        await this.#push(part) && part.from.skip === SKIP_SEEN && this.#heads.get(part)!.key <= this.#seen
      ) {
        this.#heads.delete(part);
        this.#drop(part);
      }
    }));
    this.resourceVersion = encodeMergedVersion({
      layout: this.#request.layout,
      parts: this.#parts.map((part) => this.#versionOf(part)),
    });
  }

  #versionOf({ head, version }: Part): string {
    return head?.metadata.resourceVersion ?? version;
  }

  /** The next item of all; `undefined` at the end, also of a shard's page that is not its last. */
  async #take(): Promise<string | undefined> {
    await this.#start();
    const next = this.#heads.pop();
    if (next === undefined) return undefined;
    const part = this.#parts[next.index];
    this.#seen = next.key;
    this.#drop(part);
    if (await this.#push(part)) return next.json;
    // What comes next in this shard is not known: nothing may come before it.
    if (!this.#isWhole && part.head?.metadata.continue) { while (this.#heads.pop() !== undefined); }
    return next.json;
  }

  #drop(part: Part): void {
    part.list!.take();
    part.taken++;
  }

  /** Reads the next item of a shard; `false` if there is none. */
  async #push(part: Part): Promise<boolean> {
    while (!await this.#reads(part, () => part.list!.hasItem())) {
      if (!this.#isWhole || !part.head?.metadata.continue) return false;
      await this.#reads(part, () => this.#nextPage(part, part.head!.metadata.continue!));
    }
    const { key, json } = shownItem(part.list!.item!, part.form);
    this.#heads.set(part, { key, json, index: part.index });
    return true;
  }

  /** A shard has given a page although none was requested. */
  async #nextPage(part: Part, token: string): Promise<void> {
    const { params, pathname } = this.#request;
    const own = paramsFor(this.#merged, part.shard, params);
    own.set("continue", token);
    own.delete("resourceVersionMatch");
    const outcome = await askShard(this.#merged, part.shard, {
      pathname,
      params: own,
      accept: acceptOf(this.#request),
      preferences: this.#request.preferences,
      signal: this.#abort.signal,
    });
    if (outcome.kind === "away") throw new Error(outcome.why);
    if (outcome.kind === "refused") throw new Error(outcome.status.message ?? "refused");
    const list = newShardList(this.#merged, this.#request, outcome.response.body!);
    const { resourceVersion } = part.head!.metadata;
    part.list = list;
    part.head = await list.head();
    if (part.head.metadata.resourceVersion !== resourceVersion) {
      throw new Error("the pages of its list are of different states");
    }
  }

  async #reads<T>({ shard }: Part, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      this.reading ??= shard;
      throw error;
    }
  }

  /** Where the next page begins, and what is left. */
  async #pageMetadata(): Promise<ListMeta> {
    const isLeft = this.#parts.some((part) => this.#isLeft(part));
    if (!isLeft) return {};
    const places: ShardPlace[] = [];
    let remaining: number | undefined = 0;
    const { labelSelector, fieldSelector } = this.#request.query;
    const hasSelector = labelSelector !== undefined || fieldSelector !== undefined ||
      this.#request.params.has("fieldSelector");
    for (const part of this.#parts) {
      const version = this.#versionOf(part);
      if (!this.#isLeft(part)) {
        places.push({ version, skip: ENDED });
        continue;
      }
      const token = part.head?.metadata.continue;
      const isConsumed = part.list?.item === undefined;
      places.push(
        isConsumed ? { version, skip: 0, token } : { version, skip: part.taken, token: part.from?.token },
      );
      remaining = remaining === undefined || hasSelector ? undefined : add(remaining, await this.#rest(part));
    }
    const next = encodeMergedToken({
      list: `${this.#request.identity}.${this.#request.layout}`,
      seen: this.#seen,
      places,
    });
    return {
      continue: next,
      ...(remaining !== undefined && { remainingItemCount: remaining }),
    };
  }

  #isLeft({ list, head }: Part): boolean {
    return list?.item !== undefined || Boolean(head?.metadata.continue);
  }

  /** How many items of a shard are left; `undefined` if it does not say. */
  async #rest(part: Part): Promise<number | undefined> {
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
}

function add(a: number, b: number | undefined): number | undefined {
  return b === undefined ? undefined : a + b;
}

/** Writes a list around its items. */
class ListWriter {
  readonly #pretty: boolean;
  readonly #yaml: YamlWriter | undefined;
  readonly #itemsField: string;
  readonly #head: string;
  readonly #tail: string;
  #count = 0;

  constructor(
    head: Readonly<Record<string, unknown>>,
    { itemsField, pretty, yaml }: {
      readonly itemsField: string;
      readonly pretty: boolean;
      readonly yaml: YamlWriter | undefined;
    },
  ) {
    this.#pretty = pretty;
    this.#yaml = yaml;
    this.#itemsField = itemsField;
    if (yaml !== undefined) {
      const part = (isWithin: (field: string) => boolean) => {
        const fields = Object.entries(head).filter(([field]) => isWithin(field));
        return fields.length === 0 ? "" : yaml.document(JSON.stringify(Object.fromEntries(fields)));
      };
      this.#head = part((field) => field < itemsField);
      this.#tail = part((field) => field > itemsField);
      return;
    }
    const text = pretty
      ? indentedText({ ...head, [itemsField]: [] })
      : `${JSON.stringify({ ...head, [itemsField]: [] })}\n`;
    const end = text.lastIndexOf("]");
    this.#head = text.slice(0, end);
    this.#tail = text.slice(end);
  }

  item(json: string): string {
    const isFirst = this.#count++ === 0;
    if (this.#yaml !== undefined) {
      return (isFirst ? `${this.#head}${this.#itemsField}:\n` : "") + this.#yaml.item(json);
    }
    const before = isFirst ? this.#head : ",";
    if (!this.#pretty) return before + json;
    return `${before}\n    ${indentedText(JSON.parse(json)).replaceAll("\n", "\n    ")}`;
  }

  end(): string {
    if (this.#yaml !== undefined) {
      return (this.#count === 0 ? `${this.#head}${this.#itemsField}: []\n` : "") + this.#tail;
    }
    const lineBreak = this.#pretty && this.#count > 0 ? "\n  " : "";
    return (this.#count === 0 ? this.#head : "") + lineBreak + this.#tail;
  }
}

/** Sends pieces; what is small goes out at once. */
async function respond(
  pieces: AsyncGenerator<string>,
  { headers, gzip, cancel }: {
    readonly headers: Headers;
    readonly gzip: boolean;
    readonly cancel: () => void;
  },
): Promise<Response> {
  const first: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  let isDone = false;
  while (bytes < GZIP_LEAST_BYTES && !isDone) {
    const { done, value } = await pieces.next();
    if (value !== undefined) {
      first.push(encode(value));
      bytes += first.at(-1)!.byteLength;
    }
    isDone = done === true;
  }
  if (isDone) return new Response(new Blob(first), { headers });
  const next = async () => {
    if (first.length > 0) return first.shift();
    const { value } = await pieces.next();
    return value === undefined ? undefined : encode(value);
  };
  const chunks = gzip ? gzipChunks(next) : undefined;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      try {
        const chunk = chunks === undefined ? await next() : (await chunks.next()).value ?? undefined;
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk);
      } catch (error) {
        cancel();
        throw error;
      }
    },
    cancel() {
      chunks?.return(undefined).catch(() => {});
      cancel();
    },
  }, { highWaterMark: 0 });
  return gzip ? gzipResponse(body, Object.fromEntries(headers)) : new Response(body, { headers });
}
