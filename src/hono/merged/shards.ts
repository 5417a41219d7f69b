/**
 * The shards of a merged resource, and requests to them.
 * @module
 */

import { newStatus, type Status } from "../../meta/status.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { resourceDetails } from "../../protocol/statuses.ts";
import { abortable, withTimeLimit } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import type { RemoteFetch } from "../read_api_options.ts";
import { textHash } from "../../util/text_hash.ts";
import { wholeBody } from "../../util/whole_body.ts";
import { answerInTime } from "../upstream/answer_in_time.ts";

/** A shard: a server that holds some of the objects. */
export interface Shard {
  readonly name: string;
  readonly fetch: RemoteFetch;
  readonly namespaces?: readonly string[] | undefined;
}

/** What all requests of a merged resource share. */
export interface Merged {
  readonly resource: ApiResource;
  readonly shards: readonly Shard[];
  /** How to find the shard of an object. */
  readonly by: "any" | "hash" | "cluster";
  /** How long a shard may take to begin its answer. */
  readonly timeoutMs: number;
  /** How long a watch waits for a shard that is away. */
  readonly awayMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A request to a shard. */
export interface ShardRequest {
  /** The path, encoded. */
  readonly pathname: string;
  readonly params: URLSearchParams;
  readonly accept: string;
  readonly ifNoneMatch?: string | undefined;
  /** What the reader does not accept, as headers. */
  readonly preferences?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** What came of a request to a shard. */
export type ShardOutcome =
  | { readonly kind: "answer"; readonly response: Response }
  /** The request is one that no shard answers: the Status is the answer of the whole. */
  | { readonly kind: "refused"; readonly status: Status }
  | { readonly kind: "away"; readonly why: string };

// Only the path and the query count: a shard is reached by its `fetch`.
const ORIGIN = "http://shard.invalid";
const USER_AGENT = "listwatch-merged";

/** A layout as 10 digits: other shards, or others in their places, have another one. */
export function layoutOf({ by }: Merged, shards: readonly Shard[]): string {
  const hash = textHash(JSON.stringify([by, ...shards.map(({ name }) => name)]));
  return String(BigInt(`0x${hash}`) % 10_000_000_000n).padStart(10, "0");
}

/** Sends a request to a shard. Rejects only with the reason of the signal. */
export async function askShard(merged: Merged, shard: Shard, request: ShardRequest): Promise<ShardOutcome> {
  const { timeoutMs, clock } = merged;
  const { pathname, params, accept, ifNoneMatch, preferences, signal } = request;
  const search = params.size === 0 ? "" : `?${params}`;
  const headers = {
    Accept: accept,
    "Accept-Encoding": "identity",
    "User-Agent": USER_AGENT,
    ...preferences,
    ...(ifNoneMatch !== undefined && { "If-None-Match": ifNoneMatch }),
  };
  const late = new Error(`no answer within ${timeoutMs} ms`);
  try {
    // Its own signal, and not that of the limit: the answer may be a watch, which outlives the limit.
    const sent = new Request(ORIGIN + pathname + search, { headers, redirect: "manual", signal });
    const response = await answerInTime(() => shard.fetch(sent), { timeoutMs, late, clock, signal });
    if (response.status === 304 && ifNoneMatch === undefined) {
      throw new Error("304 to a request without If-None-Match");
    }
    return await outcomeOf(merged, response, signal);
  } catch (error) {
    signal.throwIfAborted();
    return { kind: "away", why: errorMessage(error) };
  }
}

// What a shard answers to a request that is wrong, or too early or too late, and not because of the shard.
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 406, 410, 422, 429, 504]);

async function outcomeOf(merged: Merged, response: Response, signal: AbortSignal): Promise<ShardOutcome> {
  const { status } = response;
  if (status === 304) return { kind: "answer", response };
  if (status === 200) {
    const type = response.headers.get("content-type") ?? "";
    if (/^application\/json\s*(;|$)/i.test(type)) return { kind: "answer", response };
    response.body?.cancel().catch(() => {});
    return { kind: "away", why: `it answered with the content type ${JSON.stringify(type)}` };
  }
  const text = await shardText(merged, response, signal);
  let answered: Partial<Status> = {};
  try {
    answered = JSON.parse(text);
  } catch {
    // Not from an API server.
  }
  if (answered?.kind !== "Status") return { kind: "away", why: `it answered ${status}` };
  if (REFUSALS.has(status)) return { kind: "refused", status: { ...answered, code: status } };
  return {
    kind: "away",
    why: `it answered ${status}: ${answered.message ?? answered.reason ?? "no reason"}`,
  };
}

// An object has at most some MiB: https://etcd.io/docs/v3.5/dev-guide/limit/
const MAX_TEXT_BYTES = 16 * 1024 * 1024;

/**
 * The whole text of an answer that is no list and no watch.
 *
 * @throws It does not come in time, or is too long.
 */
export async function shardText(
  { clock, timeoutMs }: Merged,
  { body }: Response,
  signal: AbortSignal,
): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const newError = () => new Error(`no whole answer within ${timeoutMs} ms`);
  try {
    return await withTimeLimit((limit) => abortable(textOf(reader), limit), {
      ms: timeoutMs,
      newError,
      clock,
      signal,
    });
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function textOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const bytes = await wholeBody(reader, MAX_TEXT_BYTES);
  if (bytes === undefined) throw new Error(`its answer is longer than ${MAX_TEXT_BYTES} bytes`);
  // To a JSON parser a BOM is no white space.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** The outcome of a request for a collection: a shard that does not serve the resource cannot say what it holds. */
export function ofCollection(outcome: ShardOutcome): ShardOutcome {
  return outcome.kind === "refused" && outcome.status.code === 404
    ? { kind: "away", why: `it does not serve the resource: ${outcome.status.message ?? "404"}` }
    : outcome;
}

/** A shard that does not answer, and why. */
export interface AwayShard {
  readonly shard: Shard;
  readonly why: string;
}

/** 503: shards are away, and the answer would be incomplete without them. */
export function incomplete({ resource, logger }: Merged, away: readonly AwayShard[]): Status {
  const what = formatGroupResource(resource);
  for (const { shard, why } of away) logger.warn(`cannot read ${what} of the shard ${shard.name}: ${why}`);
  const names = away.map(({ shard }) => JSON.stringify(shard.name)).join(", ");
  return newStatus(
    503,
    "ServiceUnavailable",
    `${what} cannot be read completely: no answer of the shard${away.length === 1 ? "" : "s"} ${names}; ` +
      "partial=true reads the others",
    {
      ...resourceDetails(resource),
      causes: away.map(({ shard, why }) => ({
        reason: "ShardUnavailable",
        message: why,
        field: shard.name,
      })),
      retryAfterSeconds: 1,
    },
  );
}

/** The `Warning` of an answer that lacks shards: https://kubernetes.io/blog/2020/09/03/warnings/ */
export function partialWarning(away: readonly AwayShard[]): string {
  const names = away.map(({ shard }) => shard.name).join(", ");
  return `299 - "incomplete: no answer of the shard${away.length === 1 ? "" : "s"} ${names}"`;
}

/** 410: a resourceVersion or a token from before the shards were divided in another way, or of another resource. */
export function anotherLayout(what: string): Status {
  return newStatus(
    410,
    "Expired",
    `The ${what} is none of these shards: they were divided in another way, or it is that of a single object; list again`,
  );
}
