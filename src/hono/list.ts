/**
 * Lists: pages of one snapshot.
 * @module
 */

import type { KubernetesObject, ListMeta } from "../meta/object.ts";
import type { ListOptions } from "../meta/list_watch.ts";
import type { LabelSelector } from "../meta/labels.ts";
import { newStatus, type Status } from "../meta/status.ts";
import type { VersionWaitOptions } from "../meta/version_waiters.ts";
import type { Held } from "../store/object_codec.ts";
import { nextTurn } from "../util/clock.ts";
import type { EventLog } from "./event_log.ts";
import { stateTooOld, tooLarge } from "./responses.ts";
import type { Selection } from "./selection.ts";
import { lowerBound, type Snapshot } from "./snapshot.ts";

/** What is listed. */
export interface ListRequest {
  readonly options: ListOptions;
  /** Only this namespace; all of them where empty. */
  readonly namespace: string;
  /** Which objects of the namespace; `undefined`: all of them. */
  readonly selection: Selection | undefined;
  /** The labels of the selection, for which there may be an index. */
  readonly labels: LabelSelector | undefined;
  /** What bounds the wait for a resourceVersion from the future. */
  readonly wait: VersionWaitOptions;
}

/** One page. */
export interface Page<T> {
  readonly metadata: ListMeta;
  /** As the store holds them. */
  readonly items: readonly Held<T>[];
}

/** The page that was asked for, or the Status that refuses it. */
export async function readPage<T extends KubernetesObject>(
  log: EventLog<T>,
  request: ListRequest,
): Promise<Page<T> | Status> {
  const { options, namespace, selection } = request;
  let start = namespace === "" ? "" : `${namespace}/`;
  let snapshot: Snapshot<T> | undefined;
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (token === undefined) {
      return newStatus(400, "BadRequest", "invalid continue token: continue key is not valid");
    }
    if (token.start > start) start = token.start;
    const isNow = token.resourceVersion === LATEST || token.resourceVersion === log.resourceVersion;
    snapshot = isNow ? log.candidates(request.labels) : log.stateAt(token.resourceVersion);
    if (snapshot === undefined) return continueTooOld(token.start);
  } else {
    const state = await stateFor(log, request);
    if ("status" in state) return state.status;
    snapshot = state.snapshot;
  }
  return await cut(log, snapshot, { start, namespace, selection, limit: limitOf(options) });
}

// A list at resourceVersion 0 comes whole, as from an API server's cache.
function limitOf(options: ListOptions): number {
  return options.limit === undefined || options.resourceVersion === "0" ? Infinity : options.limit;
}

/** Which state a list without a continue token is about. */
async function stateFor<T extends KubernetesObject>(
  log: EventLog<T>,
  request: ListRequest,
): Promise<{ readonly snapshot: Snapshot<T> } | { readonly status: Status }> {
  const { resourceVersion = "0", resourceVersionMatch, limit } = request.options;
  if (resourceVersion === "0") return { snapshot: log.candidates(request.labels) };
  if (!await log.reaches(resourceVersion, request.wait)) {
    return { status: tooLarge(resourceVersion, log.resourceVersion) };
  }
  // A page at a resourceVersion is one of exactly that state, as it was before resourceVersionMatch was invented.
  const isExact = resourceVersionMatch === "Exact" ||
    (resourceVersionMatch === undefined && limit !== undefined);
  if (!isExact) return { snapshot: log.candidates(request.labels) };
  const snapshot = log.stateAt(resourceVersion);
  return snapshot === undefined ? { status: stateTooOld(resourceVersion) } : { snapshot };
}

// Some milliseconds' worth.
const OPENED_PER_TURN = 128;

/** Takes a page out of a snapshot; costs only what it walks over. Gives others a turn where objects must be decoded. */
async function cut<T extends KubernetesObject>(
  { content }: EventLog<T>,
  snapshot: Snapshot<T>,
  at: {
    readonly start: string;
    readonly namespace: string;
    readonly selection: Selection | undefined;
    readonly limit: number;
  },
): Promise<Page<T>> {
  const { keys, objects, resourceVersion } = snapshot;
  const { selection, limit } = at;
  // "0" is the character after "/".
  const end = at.namespace === "" ? keys.length : lowerBound(keys, `${at.namespace}0`);
  const items: Held<T>[] = [];
  let opened = 0;
  let i = lowerBound(keys, at.start);
  for (; i < end && items.length < limit; i++) {
    if (selection !== undefined) {
      if (!selection.mayHave(keys[i]) || selection.hasLabels?.(objects[i]) === false) continue;
      if (selection.hasFields !== undefined) {
        if (content.isEncoded && ++opened % OPENED_PER_TURN === 0) await nextTurn();
        if (!selection.hasFields(content.open(objects[i]))) continue;
      }
    }
    items.push(objects[i]);
  }
  if (i >= end) return { metadata: { resourceVersion }, items };
  return {
    metadata: {
      resourceVersion,
      continue: encodeContinue(resourceVersion, keys[i - 1] + "\0"),
      // Told only where it is known without looking at every object.
      ...(selection === undefined && { remainingItemCount: end - i }),
    },
    items,
  };
}

/** Stands for the resourceVersion in a token that goes on with whatever is there. */
const LATEST = "-1";

function continueTooOld(start: string): Status {
  const status = newStatus(
    410,
    "Expired",
    "The provided continue parameter is too old to display a consistent list result. You can start a new list " +
      "without the continue parameter, or use the continue token in this response to retrieve the remainder of the " +
      "results. Continuing with the provided token results in an inconsistent list - objects that were created, " +
      "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
  );
  return { ...status, metadata: { continue: encodeContinue(LATEST, start) } };
}

function encodeContinue(resourceVersion: string, start: string): string {
  const bytes = new TextEncoder().encode(JSON.stringify({ v: "meta.k8s.io/v1", rv: resourceVersion, start }));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function decodeContinue(
  token: string,
): { readonly resourceVersion: string; readonly start: string } | undefined {
  try {
    const binary = atob(token.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof value !== "object" || value === null) return undefined;
    const { v, rv, start } = value as Record<string, unknown>;
    if (v !== "meta.k8s.io/v1" || typeof rv !== "string" || typeof start !== "string" || start === "") {
      return undefined;
    }
    return /^([1-9][0-9]*|-1)$/.test(rv) ? { resourceVersion: rv, start } : undefined;
  } catch {
    return undefined; // not base64, or not JSON
  }
}
