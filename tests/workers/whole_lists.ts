/**
 * The requests of a cache that cost a list.
 * @module
 */

import type { RecordedRequest } from "@listwatch/cache/testing";

/** The most objects of a list that proves that a read is fresh. */
const MOST_OF_A_PROOF = 100;

/** Whether a request has the limit of a list that is a proof only. */
export function isProof(limit: string | null | undefined): boolean {
  return Number(limit ?? NaN) <= MOST_OF_A_PROOF;
}

/** Whether a request is for all pods, as a list or as a stream. What says which cluster it is, is none. */
export function isWholeList({ path, isWatch, query }: RecordedRequest): boolean {
  return path.endsWith("/pods") && (isWatch ? query.sendInitialEvents === "true" : !isProof(query.limit));
}
