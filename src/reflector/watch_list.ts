/**
 * A list that comes as a watch: every present object as ADDED, then a bookmark.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import type { GroupVersionKind } from "../meta/resource.ts";
import { StatusError } from "../meta/status.ts";
import { isInitialEventsEnd } from "../meta/watch_event.ts";
import type { Quarantined } from "../meta/list_watch.ts";
import { linkedAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { eventProblem } from "./events.ts";
import type { OpenWatch } from "./open_watch.ts";

/** The stream is open, but its end bookmark does not come. */
export class StalledStreamError extends Error {}

/** What {@linkcode readInitialEvents} needs. */
export interface InitialEventsOptions<T> {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly keyFunc: KeyFunc;
  readonly expectedKind: GroupVersionKind | undefined;
  /** So long without a single event, and the stream counts as stalled. */
  readonly silenceMs: number;
  /** Called after each batch with the number of objects so far. */
  readonly onProgress: (items: number) => void;
  /** Called for what was set aside. */
  readonly onQuarantined: (quarantined: Quarantined) => void;
  readonly watch: OpenWatch<T>;
}

/** What a streamed list held. */
export interface InitialEvents<T> {
  readonly items: T[];
  /** The resourceVersion of the end bookmark. */
  readonly resourceVersion: string;
}

/**
 * Reads a watch up to the end bookmark, leaving what comes after it unread. Nothing of it reaches the store before:
 * a reader never sees half a list.
 *
 * @returns `undefined` if the stream was closed before the end bookmark.
 * @throws {StatusError} The stream carried an ERROR event.
 * @throws {StalledStreamError} No event came for `silenceMs`.
 */
export async function readInitialEvents<T>(
  options: InitialEventsOptions<T>,
): Promise<InitialEvents<T> | undefined> {
  const { watch, keyFunc, onQuarantined } = options;
  const objects = new Map<string, T>();
  for (;;) {
    const batch = await nextWithin(options);
    if (batch === undefined) return undefined;
    for (let i = 0; i < batch.length; i++) {
      const item = batch[i];
      if (item.type === "ERROR") throw new StatusError(item.object);
      if (item.type === "INVALID") {
        onQuarantined(item.quarantined);
        continue;
      }
      const problem = eventProblem(item, options.expectedKind);
      if (problem !== undefined) {
        onQuarantined({ reason: problem, path: "", eventType: item.type });
        continue;
      }
      if (item.type === "BOOKMARK") {
        if (!isInitialEventsEnd(item.object)) continue;
        watch.unread(batch.slice(i + 1));
        return { items: [...objects.values()], resourceVersion: item.object.metadata.resourceVersion ?? "" };
      }
      try {
        const key = keyOf(keyFunc, item.object, "stream");
        if (item.type === "DELETED") objects.delete(key);
        else objects.set(key, item.object);
      } catch (error) {
        onQuarantined({ reason: (error as Error).message, path: "", eventType: item.type });
      }
    }
    options.onProgress(objects.size);
  }
}

async function nextWithin<T>(options: InitialEventsOptions<T>) {
  const { watch, clock, signal, silenceMs } = options;
  const link = linkedAbort(signal);
  const stalled = new StalledStreamError(`no event for ${silenceMs} ms, and no end bookmark`);
  const timer = clock.setTimeout(() => link.abort(stalled), silenceMs);
  try {
    return await watch.next(link.signal);
  } finally {
    clock.clearTimeout(timer);
    link.unlink();
  }
}
