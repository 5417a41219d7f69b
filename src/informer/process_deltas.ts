/**
 * From the queue into the store, and on to whoever listens: the core of every informer.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { resourceVersionOf } from "../meta/object.ts";
import { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { Delta, Deltas } from "../queue/delta.ts";
import type { Quarantine } from "../reflector/quarantine.ts";
import type { Store } from "../store/store.ts";
import type { Taken } from "../store/transform.ts";
import { toError } from "../util/errors.ts";
import { finish, type Steps } from "../util/steps.ts";
import type { Notification } from "./event_handler.ts";
import type { EventOrder } from "./event_order.ts";
import type { ListNotifications } from "./list_notifications.ts";
import { replaceSteps, syncSteps } from "./process_list.ts";
import { quarantinedBy } from "./quarantined_by.ts";
import { type IsSameState, isSameState } from "./same_state.ts";
import type { StoreEvent } from "./store_event.ts";

/** Told of what was written, right after each write and in the same turn. */
export interface DeltaSink<T> {
  /** One call for a handler. */
  notify(notification: Notification<T>): void;
  /** All calls that a list makes; they come one by one where it is absent. */
  notifyList?(list: ListNotifications<T>): void;
  /** Does some of the work of {@linkcode DeltaSink.notifyList} before, in steps; it comes in the turn of the last one. */
  prepareList?(list: ListNotifications<T>, stepObjects: number): Steps;
  /** It does not come: something went wrong. */
  dropPrepared?(): void;
  /** What becomes of an object of a list before it is stored; `undefined` for nothing. It stays as it is by default. */
  readonly takeIn?: ((object: T) => Taken<T> | undefined) | undefined;
  /** How many objects there are to a step of a list. */
  readonly stepObjects?: number;
  /** What happened to the store, for observers; only called if {@linkcode DeltaSink.observes}. */
  observe?(event: StoreEvent<T>): void;
  /** Whether there are observers. */
  readonly observes?: boolean;
  /**
   * Receives each object that could not be stored; the store keeps what it has for its key. No handler has received such
   * an object, so none is notified of its delete.
   */
  readonly quarantine?: Quarantine | undefined;
  /** Whether two states are the same, where they are not held as they are. */
  readonly isSame?: IsSameState<T>;
  /** Whether handlers are not told of a state that is stored already, unless by a resync. */
  readonly skipsUnchanged?: boolean;
  /** Tells which events were seen before, and are stepped over; all are new where it is absent. */
  readonly order?: EventOrder<T>;
  /** Told of an event that was stepped over; `isDoubtful`: it may have been a change that is lost now. */
  steppedOver?(type: "Added" | "Updated" | "Deleted" | "Bookmark", isDoubtful: boolean): void;
}

/**
 * Applies deltas to a store, oldest first. The store is always written before anyone is told.
 *
 * Mirrors client-go's `processDeltas`; where a list brings an object that has not changed, the store keeps the object
 * it has, so that readers' references stay good and nothing is held twice.
 *
 * An object that has no key, or for which an index function throws, is added to `sink.quarantine` and skipped.
 *
 * @throws {KeyError} An object has no key, and there is no `sink.quarantine`. The deltas after it are not applied.
 * @throws {IndexFuncError} An index function threw, and there is no `sink.quarantine`. The same.
 */
export function processDeltas<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  deltas: Deltas<T>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): void {
  for (const delta of deltas) {
    try {
      processDelta(store, sink, delta, isInInitialList, keyFunc);
    } catch (error) {
      if (sink.quarantine === undefined) throw error;
      const isLost = delta.type !== "Replaced" && delta.type !== "Sync";
      sink.quarantine.add(quarantinedBy(toError(error), delta.object), { isLost });
    }
  }
}

/**
 * Applies a list, or hands out everything again, in short steps, for those who give way to others between them; the same
 * as {@linkcode processDeltas} with a `ReplacedAll` or `SyncAll` delta. The last step replaces the store's content and
 * tells everyone; until then readers see what was there before. Nobody else may apply deltas meanwhile.
 */
export function* listSteps<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  delta: Extract<Delta<T>, { type: "ReplacedAll" | "SyncAll" }>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): Steps {
  if (delta.type === "SyncAll") return yield* syncSteps(store, sink);
  sink.order?.standingOf(delta, store); // always new, but it takes note of it
  try {
    yield* replaceSteps(store, sink, delta.object, isInInitialList, keyFunc);
  } catch (error) {
    if (sink.quarantine === undefined) throw error;
    sink.quarantine.add(quarantinedBy(toError(error), delta.object), { isLost: true });
  }
}

function processDelta<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  delta: Delta<T>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): void {
  const standing = sink.order?.standingOf(delta, store) ?? "next";
  if (standing === "seen" || standing === "doubtful") {
    return sink.steppedOver?.(delta.type as "Added", standing === "doubtful");
  }
  switch (delta.type) {
    case "ReplacedAll":
      return finish(replaceSteps(store, sink, delta.object, isInInitialList, keyFunc));
    case "SyncAll":
      return finish(syncSteps(store, sink));
    case "Bookmark":
      store.bookmark(delta.object.resourceVersion);
      if (sink.observes) sink.observe?.({ type: "bookmark", resourceVersion: delta.object.resourceVersion });
      return;
    case "Deleted":
      return remove(store, sink, delta.object, keyFunc, { isLate: standing === "late" });
    default:
      if (standing === "resent") return resent(store, sink, delta.object, keyFunc);
      return write(store, sink, delta, isInInitialList, keyFunc, { isLate: standing === "late" });
  }
}

function write<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  delta: Extract<Delta<T>, { type: "Added" | "Updated" | "Replaced" | "Sync" }>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
  { isLate }: { readonly isLate: boolean },
): void {
  const { object } = delta;
  const reachedVersion = store.lastStoreSyncResourceVersion();
  const oldObject = store.update(object);
  if (isLate) store.bookmark(reachedVersion);
  if (oldObject === undefined) {
    sink.notify({ type: "add", object, isInInitialList });
    if (sink.observes) sink.observe?.({ type: "added", key: keyOf(keyFunc, object, "add"), object });
  } else {
    if (delta.type === "Sync" || !isSkipped(sink, oldObject, object)) {
      sink.notify({ type: "update", oldObject, object });
    }
    if (sink.observes && delta.type !== "Sync") {
      sink.observe?.({ type: "updated", key: keyOf(keyFunc, object, "update"), object, oldObject });
    }
  }
}

/** The stored state came again: told as upstream tells it, and the store stays where it is. */
function resent<T>(store: Store<T>, sink: DeltaSink<T>, object: T, keyFunc: KeyFunc): void {
  if (sink.skipsUnchanged) return;
  const stored = store.getByKey(keyOf(keyFunc, object, "update"));
  if (stored !== undefined) sink.notify({ type: "update", oldObject: stored, object: stored });
}

function remove<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  deleted: T | DeletedFinalStateUnknown<T>,
  keyFunc: KeyFunc,
  { isLate }: { readonly isLate: boolean },
): void {
  const reachedVersion = store.lastStoreSyncResourceVersion();
  const oldObject = store.delete(deleted);
  if (isLate) store.bookmark(reachedVersion); // the delete says when the object was last seen, not where the store stands
  if (deleted instanceof DeletedFinalStateUnknown) {
    const { key, object = oldObject } = deleted;
    sink.quarantine?.release(key);
    if (object === undefined) return; // it was never here
    const tombstone = deleted.object === undefined ? new DeletedFinalStateUnknown(key, object) : deleted;
    sink.notify({ type: "delete", deleted: tombstone, oldObject });
    if (sink.observes) sink.observe?.({ type: "deleted", key, object, oldObject });
    return;
  }
  const key = keyOf(keyFunc, deleted, "delete");
  if (oldObject === undefined && sink.quarantine?.release(key)) return reached(sink, deleted);
  sink.notify({ type: "delete", deleted: { finalStateUnknown: false, key, object: deleted }, oldObject });
  if (sink.observes) sink.observe?.({ type: "deleted", key, object: deleted, oldObject });
}

/** Nothing was deleted after all, but the store stands at a later version. */
function reached<T>(sink: DeltaSink<T>, object: T): void {
  const resourceVersion = resourceVersionOf(object);
  if (sink.observes && resourceVersion) sink.observe?.({ type: "bookmark", resourceVersion });
}

/** Whether handlers are not told of an update, as it says nothing new. */
function isSkipped<T>(sink: DeltaSink<T>, oldObject: T, object: T): boolean {
  return sink.skipsUnchanged === true && (sink.isSame ?? isSameState)(oldObject, object);
}
