/**
 * One open watch, from its first batch to its end.
 * @module
 */

import { StatusError } from "../meta/status.ts";
import { linkedAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { brokenFrame } from "./events.ts";
import type { OpenWatch } from "./open_watch.ts";
import type { ResyncTimer } from "./resync_timer.ts";
import type { Quarantine } from "./quarantine.ts";
import type { StoreWriter } from "./store_writer.ts";
import { WatchGuard } from "./watch_guard.ts";

/** What {@linkcode followWatch} needs. */
export interface FollowWatchOptions<T> {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly writer: StoreWriter<T>;
  /** When a change was lost, the watch ends in time for the list that makes up for it. */
  readonly quarantine: Quarantine;
  /** Receives the function that sets the time of that list; `undefined` when the watch has ended. */
  readonly onOpen: (relistAt: ((dueMs: number) => void) | undefined) => void;
  /** Its errors end the watch. */
  readonly resync: ResyncTimer;
  readonly bookmarkSilenceMs: number;
  /** Whether bookmarks are expected before the first one has come. */
  readonly expectsBookmarks: boolean;
  /** Called as each batch arrives, before it is applied. */
  readonly onBatch: () => void;
}

/** How a watch went. */
export interface Followed {
  /** How many events reached the store. */
  readonly eventCount: number;
  readonly bookmarks: number;
  /** What ended it; absent where the server did, in good order. */
  readonly error?: unknown;
}

/** Applies the events of a watch until it ends, each batch in one turn; then it is closed. Never rejects. */
export async function followWatch<T>(watch: OpenWatch<T>, options: FollowWatchOptions<T>): Promise<Followed> {
  const { signal, clock, writer, quarantine, resync, onOpen, onBatch } = options;
  const link = linkedAbort(signal);
  const guard = new WatchGuard(clock, link, { ...options, deadlineMs: watch.deadlineMs });
  guard.relistAt(quarantine.relistDueMs);
  onOpen((dueMs) => guard.relistAt(dueMs));
  resync.onError = (error) => link.abort(error);
  let eventCount = 0;
  let bookmarks = 0;
  try {
    for (
      let batch = await watch.next(link.signal);
      batch !== undefined;
      batch = await watch.next(link.signal)
    ) {
      if (!guard.feed()) throw link.signal.reason;
      onBatch();
      for (const item of batch) {
        if (item.type === "ERROR") {
          const error = new StatusError(item.object);
          const broken = brokenFrame(error, watch.received);
          if (broken !== undefined) quarantine.add(broken);
          throw error;
        }
        if (item.type === "BOOKMARK") {
          bookmarks++;
          guard.bookmark();
        }
        if (item.type === "INVALID") writer.quarantine(item.quarantined);
        else if (writer.apply(item)) eventCount++;
      }
    }
    return { eventCount, bookmarks };
  } catch (error) {
    return { eventCount, bookmarks, error };
  } finally {
    guard.stop();
    onOpen(undefined);
    resync.onError = undefined;
    link.unlink();
    watch.close();
  }
}
