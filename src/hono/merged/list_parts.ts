/**
 * The parts of a merged list: asking each shard for its list.
 * @module
 */

import { newStatus, type Status } from "../../meta/status.ts";
import { continueTooOld, isStatus } from "../../protocol/statuses.ts";
import { acceptOf, formOf, type MergedRequest, paramsFor, versionsOf } from "./merged_request.ts";
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
import type { ShownForm } from "./shown_objects.ts";

/** One shard's part of a list. */
export interface ListPart {
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

/** Where the lists of the shards begin, and the last key that the pages before had. */
export function placesOf(
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

/** The parts, with the responses that they are read from. */
export interface OpenedParts {
  readonly parts: readonly ListPart[];
  readonly responses: readonly (Response | undefined)[];
  readonly away: readonly AwayShard[];
  /** Whether no shard has anything that the reader has not. */
  readonly isUnchanged: boolean;
}

/** Asks all shards for their lists, or for what comes next of them. */
export async function openParts(
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
  const parts = places.map((place, index): ListPart => {
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

// The tokens of more would not fit into a URL.
const MOST_PAGED_SHARDS = 32;

/** A list at resourceVersion 0 comes whole, as from an API server's cache; so does one of many shards. */
export function limitOf({ query, resourceVersion, shards }: MergedRequest): number {
  const isWhole = query.limit === undefined || resourceVersion === "0" || shards.length > MOST_PAGED_SHARDS;
  return isWhole ? Infinity : query.limit!;
}

/** The field of the list that has its items. */
export function itemsFieldOf({ shape }: MergedRequest): "items" | "rows" {
  return shape.kind === "Table" ? "rows" : "items";
}

/** The list in the answer of a shard. */
export function newShardList(
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
