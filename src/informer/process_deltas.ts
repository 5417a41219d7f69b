/**
 * From the queue into the store, and on to whoever listens: the core of every informer.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { metaOf, resourceVersionOf } from "../meta/object.ts";
import { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { Delta, Deltas, ReplacedAllInfo } from "../queue/delta.ts";
import type { Store } from "../store/store.ts";
import type { Notification } from "./event_handler.ts";
import type { StoreChange, StoreEvent } from "./store_event.ts";

/** Told of what was written, right after each write and in the same turn. */
export interface DeltaSink<T> {
  /** One call for a handler. */
  notify(notification: Notification<T>): void;
  /** What happened to the store, for observers; only called if {@linkcode DeltaSink.observes}. */
  observe?(event: StoreEvent<T>): void;
  /** Whether there are observers. */
  readonly observes?: boolean;
}

/**
 * Applies deltas to a store, oldest first. The store is always written before anyone is told.
 *
 * Mirrors client-go's `processDeltas`; where a list brings an object that has not changed, the store keeps the object
 * it has, so that readers' references stay good and nothing is held twice.
 *
 * @throws {KeyError} An object has no key.
 * @throws {IndexFuncError} An index function threw. The deltas after it are not applied.
 */
export function processDeltas<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  deltas: Deltas<T>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): void {
  for (const delta of deltas) {
    switch (delta.type) {
      case "ReplacedAll":
        replaceAll(store, sink, delta.object, isInInitialList, keyFunc);
        break;
      case "SyncAll":
        for (const object of store.list()) sink.notify({ type: "update", oldObject: object, object });
        break;
      case "Bookmark":
        store.bookmark(delta.object.resourceVersion);
        if (sink.observes) {
          sink.observe?.({ type: "bookmark", resourceVersion: delta.object.resourceVersion });
        }
        break;
      case "Deleted":
        remove(store, sink, delta.object, keyFunc);
        break;
      default:
        write(store, sink, delta, isInInitialList, keyFunc);
    }
  }
}

function write<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  delta: Extract<Delta<T>, { type: "Added" | "Updated" | "Replaced" | "Sync" }>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): void {
  const { object } = delta;
  const oldObject = store.update(object);
  if (oldObject === undefined) {
    sink.notify({ type: "add", object, isInInitialList });
    if (sink.observes) sink.observe?.({ type: "added", key: keyOf(keyFunc, object, "add"), object });
  } else {
    sink.notify({ type: "update", oldObject, object });
    if (sink.observes && delta.type !== "Sync") {
      sink.observe?.({ type: "updated", key: keyOf(keyFunc, object, "update"), object, oldObject });
    }
  }
}

function remove<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  deleted: T | DeletedFinalStateUnknown<T>,
  keyFunc: KeyFunc,
): void {
  const oldObject = store.delete(deleted);
  if (deleted instanceof DeletedFinalStateUnknown) {
    sink.notify({ type: "delete", deleted });
    const object = deleted.object ?? oldObject;
    if (sink.observes && object !== undefined) {
      sink.observe?.({ type: "deleted", key: deleted.key, object, oldObject });
    }
    return;
  }
  const key = keyOf(keyFunc, deleted, "delete");
  sink.notify({ type: "delete", deleted: { finalStateUnknown: false, key, object: deleted } });
  if (sink.observes) sink.observe?.({ type: "deleted", key, object: deleted, oldObject });
}

function replaceAll<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  info: ReplacedAllInfo<T>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): void {
  const { objects, resourceVersion } = info;
  const kept: T[] = new Array(objects.length);
  const old: (T | undefined)[] = new Array(objects.length);
  const keys = new Set<string>();
  for (let i = 0; i < objects.length; i++) {
    const object = objects[i];
    const key = keyOf(keyFunc, object, "replace");
    const oldObject = store.getByKey(key);
    keys.add(key);
    old[i] = oldObject;
    kept[i] = oldObject !== undefined && isSameVersion(oldObject, object) ? oldObject : object;
  }
  const gone: DeletedFinalStateUnknown<T>[] = [];
  for (const key of store.listKeys()) {
    if (!keys.has(key)) gone.push(new DeletedFinalStateUnknown(key, store.getByKey(key)));
  }
  store.replace(kept, resourceVersion);

  const changes: StoreChange<T>[] = [];
  for (const deleted of gone) {
    sink.notify({ type: "delete", deleted });
    const object = deleted.object as T;
    if (sink.observes) changes.push({ type: "deleted", key: deleted.key, object, oldObject: object });
  }
  for (let i = 0; i < kept.length; i++) {
    const object = kept[i];
    const oldObject = old[i];
    if (oldObject === undefined) {
      sink.notify({ type: "add", object, isInInitialList });
      if (sink.observes) changes.push({ type: "added", key: keyOf(keyFunc, object, "add"), object });
    } else {
      sink.notify({ type: "update", oldObject, object });
      if (sink.observes && oldObject !== object) {
        changes.push({ type: "updated", key: keyOf(keyFunc, object, "update"), object, oldObject });
      }
    }
  }
  if (sink.observes) sink.observe?.({ type: "replaced", resourceVersion, changes });
}

/** Whether two states of one object are the same state: same object, same version. */
function isSameVersion(a: unknown, b: unknown): boolean {
  const left = metaOf(a);
  const right = metaOf(b);
  return left !== undefined && right !== undefined && Boolean(left.resourceVersion) &&
    left.resourceVersion === right.resourceVersion && left.uid === right.uid;
}

/** Whether both have metadata, with the same resourceVersion. */
export function isSameResourceVersion(a: unknown, b: unknown): boolean {
  const left = resourceVersionOf(a);
  return left !== undefined && left === resourceVersionOf(b);
}
