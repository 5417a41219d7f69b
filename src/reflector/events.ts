/**
 * What a watch sends, and what may be wrong with it.
 * @module
 */

import type { ListPage, Quarantined } from "../meta/list_watch.ts";
import { type KubernetesObject, metaOf } from "../meta/object.ts";
import { groupVersion, type GroupVersionKind } from "../meta/resource.ts";
import { statusErrorOf } from "../meta/status.ts";
import type { WatchEvent } from "../meta/watch_event.ts";

/** An event that carries an object or a bookmark. */
export type DataEvent<T> = Exclude<WatchEvent<T>, { type: "ERROR" }>;

/** What may be wrong with an event, in words; `undefined` if it can be applied. */
export function eventProblem(
  event: DataEvent<unknown>,
  expected: GroupVersionKind | undefined,
): string | undefined {
  const metadata = metaOf(event.object);
  if (metadata === undefined) return "it has no metadata";
  const { kind, apiVersion } = event.object as KubernetesObject;
  if (isTableKind(apiVersion, kind)) return "it is a Table: the server was asked for objects";
  if (expected !== undefined && (kind !== expected.kind || apiVersion !== groupVersion(expected))) {
    return `expected ${groupVersion(expected)} ${expected.kind}, got ${apiVersion || "no apiVersion"} ${
      kind || "and no kind"
    }`;
  }
  return undefined;
}

/** Whether a list or an object is a server-side Table rather than data. */
function isTableKind(apiVersion: string | undefined, kind: string | undefined): boolean {
  return kind === "Table" && (apiVersion === "meta.k8s.io/v1" || apiVersion === "meta.k8s.io/v1beta1");
}

/** Refuses a list that came as a Table. */
export function refuseTable(page: ListPage<unknown>): void {
  if (isTableKind(page.apiVersion, page.kind)) {
    throw new TypeError("Cannot take a Table for a list: ask the server for objects (unsupported list gvk)");
  }
}

/** Whether a watch ended because a frame of it could not be decoded: it was no JSON, or over the size limit. */
export function isBrokenFrame(error: unknown): boolean {
  return frameProblem(error) !== undefined;
}

/**
 * The report of a frame that could not be decoded, if that is what ended a watch. Nothing of it is known, not even
 * where the next one begins: the watch is over, and a list follows.
 */
export function brokenFrame(error: unknown, received: { readonly bytes: number }): Quarantined | undefined {
  const problem = frameProblem(error);
  if (problem === undefined) return undefined;
  const where = received.bytes > 0 ? ` (within the first ${received.bytes} bytes of the watch)` : "";
  return { reason: `${problem}${where}`, path: "frame" };
}

function frameProblem(error: unknown): string | undefined {
  const causes = statusErrorOf(error)?.status.details?.causes ?? [];
  for (const { reason, message } of causes) if (reason === "ClientWatchDecoding") return message ?? reason;
  return undefined;
}
