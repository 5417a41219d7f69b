/**
 * A list that comes as a watch: every present object as ADDED, then a bookmark.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import type { GroupVersionKind } from "../meta/resource.ts";
import { StatusError } from "../meta/status.ts";
import { isInitialEventsEnd } from "../meta/watch_event.ts";
import type { Quarantined, WatchItem } from "../meta/list_watch.ts";
import { linkedAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { brokenFrame, eventProblem } from "./events.ts";
import type { OpenWatch } from "./open_watch.ts";
import { Watchdog } from "./watchdog.ts";

/** The stream is open, but its end bookmark does not come. */
export class StalledStreamError extends Error {}

/** What {@linkcode readInitialEvents} needs. */
export interface InitialEventsOptions<T> {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly keyFunc: KeyFunc;
  readonly expectedKind: GroupVersionKind | undefined;
  /** So long without an event, or a part of one, and the stream counts as stalled. */
  readonly silenceMs: number;
  /** So long with nothing but bookmarks, and the stream counts as stalled. */
  readonly endMs: number;
  /** What takes an object's place from now on. */
  readonly intake?: ((object: unknown) => unknown) | undefined;
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
 * @throws {StalledStreamError} The stream is open, but made no progress towards the end bookmark.
 */
export async function readInitialEvents<T>(
  options: InitialEventsOptions<T>,
): Promise<InitialEvents<T> | undefined> {
  const { watch, clock, silenceMs, endMs, signal } = options;
  const link = linkedAbort(signal);
  const stalled = (text: string) => () => link.abort(new StalledStreamError(text));
  const silence = new Watchdog(
    clock,
    silenceMs,
    stalled(`no event for ${silenceMs} ms, and no end bookmark`),
    () => watch.received.lastMs, // a large object on a slow line is on its way
  );
  const end = new Watchdog(clock, endMs, stalled(`no end bookmark ${endMs} ms after the last initial event`));
  const objects = new Map<string, T>();
  try {
    for (;;) {
      const batch = await watch.next(link.signal);
      if (batch === undefined) return undefined;
      silence.feed();
      for (let i = 0; i < batch.length; i++) {
        const resourceVersion = take(batch[i], objects, options);
        if (resourceVersion === undefined) continue;
        watch.unread(batch.slice(i + 1));
        return { items: [...objects.values()], resourceVersion };
      }
      if (batch.some((item) => item.type !== "BOOKMARK")) end.feed();
      options.onProgress(objects.size);
    }
  } finally {
    silence.stop();
    end.stop();
    link.unlink();
  }
}

/** Takes one item in; the resourceVersion if it was the end bookmark. */
function take<T>(
  item: WatchItem<T>,
  objects: Map<string, T>,
  options: InitialEventsOptions<T>,
): string | undefined {
  const { onQuarantined, keyFunc } = options;
  if (item.type === "ERROR") {
    const error = new StatusError(item.object);
    const broken = brokenFrame(error, options.watch.received);
    if (broken !== undefined) onQuarantined(broken);
    throw error;
  }
  if (item.type === "INVALID") {
    onQuarantined(item.quarantined);
    return undefined;
  }
  const problem = eventProblem(item, options.expectedKind);
  if (problem !== undefined) {
    onQuarantined({ reason: problem, path: "", eventType: item.type });
    return undefined;
  }
  if (item.type === "BOOKMARK") {
    return isInitialEventsEnd(item.object) ? item.object.metadata.resourceVersion ?? "" : undefined;
  }
  try {
    const key = keyOf(keyFunc, item.object, "stream");
    if (item.type === "DELETED") objects.delete(key);
    else objects.set(key, (options.intake === undefined ? item.object : options.intake(item.object)) as T);
  } catch (error) {
    onQuarantined({ reason: errorMessage(error), path: "", eventType: item.type });
  }
  return undefined;
}
