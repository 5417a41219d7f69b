/**
 * One watch event into a store.
 * @module
 */

import type { ListPage } from "../meta/list_watch.ts";
import { type KubernetesObject, metaOf } from "../meta/object.ts";
import { groupVersion, type GroupVersionKind } from "../meta/resource.ts";
import { compareResourceVersions, isComparableResourceVersion } from "../meta/resource_version.ts";
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

/**
 * What was wrong with a frame of a watch, in words, where that ended it: it was no JSON, or over the size limit;
 * `undefined` for any other error.
 */
export function frameProblem(error: unknown): string | undefined {
  const causes = statusErrorOf(error)?.status.details?.causes ?? [];
  for (const { reason, message } of causes) if (reason === "ClientWatchDecoding") return message ?? reason;
  return undefined;
}

/** Whether a resourceVersion is known to be older than another: both are numbers, and it is the lesser one. */
export function isOlder(version: string, than: string): boolean {
  return compareResourceVersions(version, than) < 0 && isComparableResourceVersion(version) &&
    isComparableResourceVersion(than);
}

/**
 * Follows the resourceVersion of a stream. Where the stream began at no particular version, the first ADDED events
 * are the present objects in any order: their versions say nothing about how far the stream has come.
 */
export class StreamPosition {
  #propagates: boolean;

  constructor(startsAtVersion: boolean) {
    this.#propagates = startsAtVersion;
  }

  /** The resourceVersion that the stream has reached with this event, or `undefined` if that is not known yet. */
  reached(event: DataEvent<unknown>): string | undefined {
    if (event.type !== "ADDED") this.#propagates = true;
    return this.#propagates ? metaOf(event.object)?.resourceVersion ?? "" : undefined;
  }
}
