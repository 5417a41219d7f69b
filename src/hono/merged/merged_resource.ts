/**
 * One resource that several servers hold together.
 * @module
 */

import { MOST_SHARDS } from "../../meta/merged_version.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { describedResource } from "../../protocol/builtin_resources.ts";
import { parseResourcePath, pathSegments, type ResourcePath } from "../../protocol/resource_path.ts";
import { statusResponse } from "../../protocol/responses.ts";
import { isStatus, methodNotAllowed, unknownPath } from "../../protocol/statuses.ts";
import { onAbort } from "../../util/abort.ts";
import { type Clock, realClock } from "../../util/clock.ts";
import { consoleLogger, type Logger } from "../../util/logger.ts";
import { requireNumbers } from "../../util/require_number.ts";
import { answerMergedIndex } from "./merged_index.ts";
import { answerMergedList } from "./merged_list.ts";
import { answerMergedObject } from "./merged_object.ts";
import { readMergedRequest } from "./merged_request.ts";
import { answerMergedWatch } from "./merged_watch.ts";
import type { RemoteFetch } from "../read_api_options.ts";
import type { Merged } from "./shards.ts";

/**
 * One of the servers that hold a resource together.
 *
 * @category HTTP adapter
 */
export interface MergedShard {
  /** Identifies the shard. The names of all shards, in their order, are the layout: another layout has other versions. */
  readonly name: string;
  /** Answers requests for its objects, in Kubernetes' own protocol. */
  readonly fetch: RemoteFetch;
  /** The only namespaces whose objects it holds; all by default. A request for one of them goes to no other shard. */
  readonly namespaces?: readonly string[];
}

/**
 * Options of {@linkcode mergedResource}.
 *
 * @category HTTP adapter
 */
export interface MergedResourceOptions {
  /** What it is: `v1/pods` for what Kubernetes brings, a description for custom resources. */
  readonly resource: string | ApiResource;
  /** Who holds it: each object is in exactly one of them. At most 999. */
  readonly shards: readonly MergedShard[];
  /**
   * How the objects are divided. `"hash"`: the shards hold what `shardOf(source, { index, of })` gives them, in this order, so
   * that a get goes to one of them. `"cluster"`: each is a cluster of its own, and its name (a label, without dots) comes before the
   * names of its objects: `eu-1.web-1`. By default a get goes to all shards.
   */
  readonly by?: "hash" | "cluster";
  /** How long a shard may take to begin an answer, or to continue a list; 5 s by default. */
  readonly timeoutMs?: number;
  /** How long a watch continues while a shard is away; 5 s by default. */
  readonly awayMs?: number;
  /** Where time comes from; the system's clock by default. */
  readonly clock?: Clock;
  /** Where the failures of shards are logged; the console by default. */
  readonly logger?: Logger;
}

/**
 * A resource for `readApi` that several servers answer for.
 *
 * @category HTTP adapter
 */
export interface MergedResource {
  readonly resource: ApiResource;
  readonly fetch: (request: Request) => Promise<Response>;
}

/**
 * Makes one resource of several shards: each is a server of Kubernetes' protocol that holds some of its objects (a `readApi`,
 * a `ReflectorObject`, a kube-apiserver). Give it to `readApi`, which checks who may read.
 *
 * - **Versions.** A merged resourceVersion holds the version of each shard. For clients it is one decimal number, which is
 *   greater when no part is less and one is greater. Lists, bookmarks and the objects of watch events have it; the objects
 *   of lists, gets and initial events keep their own. The state behind it is a state of each shard, but not one moment of
 *   all of them: answers say so by `Snapshot: per-shard`.
 * - **Lists** are merged in the order of their keys while they are read; they take the memory of a chunk of each shard. A
 *   continue token has one of each shard (of more than 32 shards a list comes whole). `ETag`s are made of those of the shards.
 * - **Watches** bring the events of all shards as they come, in order for each object. The watch of a shard that ends is opened again
 *   where it was. 410 of a shard is 410 of the whole.
 * - **A shard that is away**: reads are refused with 503, which names it; open watches end after `awayMs`. With the parameter
 *   `partial=true` a request gets what the others have, and a `Warning`; a watch brings its objects when it is back.
 * - **Other shards**: a version or a token of another layout is answered with 410 Expired: clients list again.
 *
 * @throws {TypeError} The resource is not known by its name; there are no shards, two of one name, or more than 999; a
 * cluster's name is no label.
 * @throws {RangeError} A number of milliseconds is none.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { mergedResource, readApi } from "@listwatch/cache/hono";
 * import { shardOf } from "@listwatch/cache/reflector";
 * import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
 *
 * const server = new InMemoryApiServer();
 * for (const name of ["a", "b", "c"]) server.create("v1/pods", pod(name, { namespace: "shop" }));
 * const pods = newCluster({ server: "http://in-memory", fetch: server.fetch }).resource("v1/pods");
 * const shards = [0, 1].map((index) => {
 *   const informer = new SharedIndexInformer(shardOf(pods, { index, of: 2 }));
 *   return { informer, running: informer.start(), name: `pods-${index}` };
 * });
 * for (const { informer } of shards) await informer.synced();
 * const merged = mergedResource({
 *   resource: "v1/pods",
 *   by: "hash",
 *   shards: shards.map(({ informer, name }) => {
 *     const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
 *     return { name, fetch: (request) => api.fetch(request) };
 *   }),
 * });
 * const response = await merged.fetch(new Request("http://cache/api/v1/pods"));
 * const { items } = await response.json();
 * console.log(items.length, response.headers.get("Snapshot")); // 3 per-shard
 * for (const { running } of shards) await running.stop();
 * server.close();
 * ```
 *
 * @category HTTP adapter
 */
export function mergedResource(options: MergedResourceOptions): MergedResource {
  const merged = checked(options);
  return { resource: merged.resource, fetch: (request) => answerMerged(merged, request) };
}

function checked(options: MergedResourceOptions): Merged {
  const { shards, by = "any", timeoutMs = 5_000, awayMs = 5_000, clock = realClock, logger = consoleLogger } =
    options;
  requireNumbers("merge", { timeoutMs }, { least: 1, mayBeInfinite: true });
  requireNumbers("merge", { awayMs }, { mayBeInfinite: true });
  const resource = describedResource(options.resource, "merge");
  const what = formatGroupResource(resource);
  if (shards.length === 0 || shards.length > MOST_SHARDS) {
    throw new TypeError(`Cannot merge ${what} of ${shards.length} shards: give 1 to ${MOST_SHARDS}`);
  }
  const names = new Set<string>();
  for (const { name } of shards) {
    if (names.has(name)) {
      throw new TypeError(`Cannot merge ${what}: two shards are named ${JSON.stringify(name)}`);
    }
    names.add(name);
    if (by === "cluster" && !/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
      throw new TypeError(
        `Cannot merge ${what}: the cluster's name ${
          JSON.stringify(name)
        } comes before the names of its objects: ` +
          "use lower-case letters, digits and hyphens",
      );
    }
  }
  return { resource, shards, by, timeoutMs, awayMs, clock, logger };
}

async function answerMerged(merged: Merged, request: Request): Promise<Response> {
  const abort = new AbortController();
  const unlink = onAbort(request.signal, () => abort.abort(request.signal.reason));
  try {
    const answer = await answerOf(merged, request, abort);
    return isStatus(answer) ? statusResponse(answer) : answer as Response;
  } finally {
    unlink();
  }
}

async function answerOf(
  merged: Merged,
  request: Request,
  abort: AbortController,
): Promise<Response | Status> {
  if (request.method !== "GET") return methodNotAllowed();
  const segments = pathSegments(new URL(request.url).pathname);
  if (segments === undefined) return newStatus(400, "BadRequest", "the path has a malformed percent sign");
  if (segments[0] === "indices") return await answerIndices(merged, request, { segments, abort });
  const path = parseResourcePath(segments);
  if (path === undefined || !isAt(merged.resource, path)) return unknownPath();
  const read = readMergedRequest(merged, request, { path, isIndexed: false });
  if (isStatus(read)) return read;
  if (read.verb === "get") return await answerMergedObject(merged, read, abort);
  return read.verb === "watch"
    ? await answerMergedWatch(merged, read, abort)
    : await answerMergedList(merged, read, abort);
}

/** The names of the indices, the values of one, or the objects under a value. */
async function answerIndices(
  merged: Merged,
  request: Request,
  { segments, abort }: { readonly segments: readonly string[]; readonly abort: AbortController },
): Promise<Response | Status> {
  const { group, version, resource } = merged.resource;
  const { pathname, searchParams } = new URL(request.url);
  // A slash at the end is followed by the empty value.
  const hasValue = segments.length > 3 || (segments.length === 3 && pathname.endsWith("/"));
  if (!hasValue) return await answerMergedIndex(merged, request, abort);
  const namespace = searchParams.get("namespace") ?? "";
  const path: ResourcePath = {
    ...{ group, version, resource, namespace },
    name: "",
    subresource: "",
    isWatch: false,
    path: pathname,
  };
  const read = readMergedRequest(merged, request, { path, isIndexed: true });
  return isStatus(read) ? read : await answerMergedList(merged, read, abort);
}

function isAt(resource: ApiResource, path: ResourcePath): boolean {
  return resource.resource === path.resource && resource.group === path.group &&
    resource.version === path.version &&
    (resource.namespaced ? path.namespace !== "" || path.name === "" || path.isWatch : path.namespace === "");
}
