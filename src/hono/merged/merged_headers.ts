/**
 * Headers of merged answers: what those of the shards say together.
 * @module
 */

import { type AwayShard, partialWarning } from "./shards.ts";

/**
 * `Cache-Synced` if all are, the greatest `Age`, the merged `Resource-Version`, all `Warning`s, and what the whole is:
 * `Snapshot: per-shard`, as no state of one shard has anything to do with that of another.
 */
export function mergedHeaders(
  responses: readonly Response[],
  { resourceVersion, away, isSnapshot }: {
    readonly resourceVersion?: string;
    readonly away: readonly AwayShard[];
    /** Whether it is one state of one server. */
    readonly isSnapshot: boolean;
  },
): Headers {
  const headers = new Headers();
  const values = (name: string) => responses.flatMap((response) => response.headers.get(name) ?? []);
  const synced = values("Cache-Synced");
  if (synced.length > 0) headers.set("Cache-Synced", String(synced.every((value) => value === "true")));
  const ages = values("Age").map(Number).filter(Number.isFinite);
  if (ages.length > 0) headers.set("Age", String(Math.max(...ages)));
  if (resourceVersion !== undefined) headers.set("Resource-Version", resourceVersion);
  headers.set("Snapshot", isSnapshot ? "whole" : "per-shard");
  for (const warning of new Set(values("Warning"))) headers.append("Warning", warning);
  if (away.length > 0) headers.append("Warning", partialWarning(away));
  return headers;
}
