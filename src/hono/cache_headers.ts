/**
 * Headers that show how fresh an answer is.
 * @module
 */

import type { EventLog } from "./event_log.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { ServedInformer } from "./served_informer.ts";

// Refused by the permission check, or before it: says nothing about the cache.
const REFUSED = new Set([401, 403, 429]);

/**
 * Adds to an answer: `Cache-Synced` (whether the first list is there), `Age` (seconds since the last contact with the API
 * server) and `Resource-Version` (what the cache has reached). Not to an answer that refuses the reader.
 */
export function withCacheHeaders(
  response: Response,
  { informer, log }: { readonly informer: ServedInformer; readonly log: EventLog<KubernetesObject> },
): Response {
  if (REFUSED.has(response.status)) return response;
  const { headers } = response;
  const isSynced = log.isReady();
  const { lagMs } = informer.status();
  headers.set("Cache-Synced", String(isSynced));
  if (isSynced && lagMs !== undefined && Number.isFinite(lagMs)) {
    headers.set("Age", String(Math.floor(lagMs / 1_000)));
  }
  if (isSynced && log.resourceVersion !== "") headers.set("Resource-Version", log.resourceVersion);
  return response;
}
