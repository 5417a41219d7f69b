/**
 * Gets of a merged resource.
 * @module
 */

import type { Status } from "../../meta/status.ts";
import { indentedText } from "../../protocol/responses.ts";
import { isStatus, objectNotFound } from "../../protocol/statuses.ts";
import { formatObjectName } from "../../meta/keys.ts";
import { shardIndexOf } from "../../meta/shard_hash.ts";
import { linkedAbort } from "../../util/abort.ts";
import { copyHeaders } from "../../util/copy_headers.ts";
import { errorMessage } from "../../util/errors.ts";
import { deferred } from "../../util/deferred.ts";
import { objectHeaders, VARY } from "../send/responses.ts";
import { loadYaml } from "../send/yaml.ts";
import { acceptOf, formOf, type MergedRequest, pathOf, versionsOf } from "./merged_request.ts";
import { askShard, incomplete, type Merged, type Shard, type ShardOutcome, shardText } from "./shards.ts";
import { shownObject } from "./shown_objects.ts";

// What a shard says of its answer.
const PASSED = ["ETag", "Cache-Synced", "Age", "Resource-Version", "Warning"] as const;

/** The answer to a get: of the shard that has the object. */
export async function answerMergedObject(
  merged: Merged,
  request: MergedRequest,
  abort: AbortController,
): Promise<Response | Status> {
  const { resource } = merged;
  const { path } = request;
  const target = targetOf(merged, request);
  if (target === undefined) return objectNotFound(resource, path.name);
  const versions = versionsOf(merged, { ...request, verb: "get" });
  if (isStatus(versions)) return versions;
  const { shards, name } = target;
  const links = shards.map(() => linkedAbort(abort.signal));
  const asked = shards.map((shard, i) => {
    const version = versions[request.shards.indexOf(shard)] ?? "";
    const params = new URLSearchParams(request.params);
    if (version !== "") params.set("resourceVersion", version);
    return askShard(merged, shard, {
      pathname: pathOf({ ...path, name }),
      params,
      accept: acceptOf(request),
      preferences: request.preferences,
      ifNoneMatch: request.headers.get("If-None-Match") ?? undefined,
      signal: links[i].signal,
    });
  });
  const found = await firstAnswer(asked);
  if (found !== undefined) {
    // The others need not be waited for.
    for (const [i, link] of links.entries()) if (i !== found.index) link.abort();
    const shard = shards[found.index];
    try {
      return await objectResponse(merged, request, { response: found.response, shard, signal: abort.signal });
    } catch (error) {
      abort.signal.throwIfAborted();
      return incomplete(merged, [{ shard, why: errorMessage(error) }]);
    }
  }
  const outcomes = await Promise.all(asked);
  return missing(merged, request, { shards, outcomes });
}

/** The answer that comes first; `undefined` if there is none. */
async function firstAnswer(
  asked: readonly Promise<ShardOutcome>[],
): Promise<{ readonly index: number; readonly response: Response } | undefined> {
  const first = deferred<{ readonly index: number; readonly response: Response } | undefined>();
  const all = asked.map((pending, index) =>
    pending.then((outcome) => {
      if (outcome.kind === "answer") first.resolve({ index, response: outcome.response });
    })
  );
  Promise.allSettled(all).then(() => first.resolve(undefined));
  return await first.promise;
}

/** It is nowhere, or a shard that may have it is away. */
function missing(
  merged: Merged,
  { path }: MergedRequest,
  { shards, outcomes }: { readonly shards: readonly Shard[]; readonly outcomes: readonly ShardOutcome[] },
): Status {
  const away = outcomes.flatMap((outcome, i) =>
    outcome.kind === "away" ? [{ shard: shards[i], why: outcome.why }] : []
  );
  if (away.length > 0) return incomplete(merged, away);
  const refused = outcomes.flatMap((outcome) => outcome.kind === "refused" ? [outcome.status] : []);
  const status = refused.find(({ code }) => code !== 404) ?? refused[0];
  // The name as it was requested.
  return status?.code === 404 && path.subresource === ""
    ? objectNotFound(merged.resource, path.name)
    : status;
}

/** The shards that may have the object, and its name there; `undefined` if none can. */
function targetOf(
  { by, shards: all }: Merged,
  { path, shards }: MergedRequest,
): { readonly shards: readonly Shard[]; readonly name: string } | undefined {
  if (by === "cluster") {
    const dot = path.name.indexOf(".");
    const shard = shards.find(({ name }) => name === path.name.slice(0, dot));
    return shard && dot > 0 ? { shards: [shard], name: path.name.slice(dot + 1) } : undefined;
  }
  if (by === "hash") {
    return { shards: [all[shardIndexOf(formatObjectName(path), all.length)]], name: path.name };
  }
  return { shards, name: path.name };
}

async function objectResponse(
  merged: Merged,
  request: MergedRequest,
  { response, shard, signal }: {
    readonly response: Response;
    readonly shard: Shard;
    readonly signal: AbortSignal;
  },
): Promise<Response> {
  const { agreed: { mediaType }, pretty } = request;
  const headers = new Headers({ ...objectHeaders(mediaType), ...VARY });
  copyHeaders(response.headers, headers, PASSED);
  if (response.status === 304) {
    headers.delete("Content-Type");
    return new Response(null, { status: 304, headers });
  }
  const text = (await shardText(merged, response, signal)).trimEnd();
  checkKind(text, merged, request);
  const json = shownObject(text, formOf(merged, request, shard));
  if (mediaType === "application/yaml") return new Response((await loadYaml()).document(json), { headers });
  return new Response(pretty ? indentedText(JSON.parse(json)) : `${json}\n`, { headers });
}

/** @throws {SyntaxError | TypeError} It is no JSON, or not what was requested. */
function checkKind(
  text: string,
  { resource }: Merged,
  { shape, path: { subresource } }: MergedRequest,
): void {
  const { kind } = (JSON.parse(text) ?? {}) as { readonly kind?: unknown };
  const wanted = shape.kind === "object" ? resource.kind : shape.kind;
  // A subresource may be of a kind of its own, as `scale` is.
  const isGood = shape.kind === "object" && subresource !== ""
    ? typeof kind === "string" && kind !== "Status"
    : kind === wanted;
  if (!isGood) throw new TypeError(`it answered with the kind ${JSON.stringify(kind)}, and not ${wanted}`);
}
