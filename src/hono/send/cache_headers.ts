/**
 * Headers that show how fresh an answer is.
 * @module
 */

import type { ApiResource } from "../../protocol/api_resource.ts";
import type { EventLog } from "../content/event_log.ts";
import { type KubernetesObject, layoutOf } from "../../meta/object.ts";
import { type ServedInformer, sourcesOf } from "../content/served_informer.ts";

// Refused by the permission check, or before it: says nothing about the cache.
const REFUSED = new Set([401, 403, 429]);

const RESTORED = "this is a saved state, which the API server has not confirmed yet";

/**
 * Adds to an answer: `Cache-Synced` (whether the first list is there, or the API server has confirmed a
 * snapshot), `Age` (seconds since the last contact with the API server) and `Resource-Version` (what the
 * cache has reached), and the `Warning`s of a snapshot that is not confirmed and of a deprecated resource.
 * Not to an answer that refuses the reader.
 */
export function withCacheHeaders(
  response: Response,
  { resource, informer, log }: {
    readonly resource: ApiResource;
    readonly informer: ServedInformer;
    readonly log: EventLog<KubernetesObject>;
  },
): Response {
  if (REFUSED.has(response.status)) return response;
  const { headers } = response;
  const isReady = log.isReady();
  const isSynced = informer.hasSynced();
  const { lagMs } = informer.status();
  headers.set("Cache-Synced", String(isSynced));
  if (isReady && lagMs !== undefined && Number.isFinite(lagMs)) {
    headers.set("Age", String(Math.floor(lagMs / 1_000)));
  }
  if (isReady && log.resourceVersion !== "") headers.set("Resource-Version", log.resourceVersion);
  if (layoutOf(log.resourceVersion) !== "") headers.set("Snapshot", "per-shard");
  if (isReady && !isSynced) {
    const restored = sourcesOf(informer).filter(({ informer }) =>
      !informer.hasSynced() && informer.isRestored?.()
    );
    if (restored.length > 0) headers.append("Warning", warningHeader(RESTORED + namesIn(restored)));
  }
  const { deprecationWarning } = resource;
  if (deprecationWarning !== undefined) headers.append("Warning", warningHeader(deprecationWarning));
  return response;
}

/** Of which sources something is said; empty if there is only one. */
function namesIn(sources: readonly { readonly name: string }[]): string {
  return sources.length === 1 && sources[0].name === ""
    ? ""
    : `: ${sources.map(({ name }) => name).join(", ")}`;
}

/**
 * A text as the value of a `Warning` header, in UTF-8 as by an API server:
 * https://github.com/kubernetes/apimachinery/blob/master/pkg/util/net/http.go (NewWarningHeader)
 */
export function warningHeader(text: string): string {
  // deno-lint-ignore no-control-regex
  const printable = text.replace(/[\x00-\x1f\x7f]+/g, " ").replace(/["\\]/g, "\\$&");
  return `299 - "${Array.from(encoder.encode(printable), (byte) => String.fromCharCode(byte)).join("")}"`;
}

const encoder = new TextEncoder();
