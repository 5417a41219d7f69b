/**
 * From a list into the store, and on to whoever listens.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { ReplacedAllInfo } from "../queue/delta.ts";
import type { OnRejected, ReplacedInSteps, Store } from "../store/store.ts";
import { toError } from "../util/errors.ts";
import { STEP_OBJECTS, type Steps } from "../util/steps.ts";
import { ListNotifications } from "./list_notifications.ts";
import type { DeltaSink } from "./process_deltas.ts";
import { isSameState } from "./same_state.ts";
import type { StoreChange } from "./store_event.ts";

/**
 * Replaces the store's content by a list, in steps. The last one writes the store and tells everyone; until then readers
 * see what was there before. Where the list brings an object that has not changed, the store keeps the one it has.
 *
 * @throws {KeyError} An object has no key, and the sink does not want to know.
 * @throws {IndexFuncError} An index function threw, and the sink does not want to know.
 */
export function* replaceSteps<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  { objects, resourceVersion }: ReplacedAllInfo<T>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): Steps {
  sink.refused?.clear();
  const skipsUnchanged = sink.skipsUnchanged === true;
  const list = new ListNotifications<T>({ isInInitialList, skipsUnchanged });
  yield* compareSteps(store, sink, objects, keyFunc, list);

  const rejected = new Set<string>();
  const onRejected: OnRejected<T> | undefined = sink.rejected && ((error, object) => {
    rejected.add(error.key);
    sink.refused?.add(error.key);
    sink.rejected!(error, object, false);
    return store.getByKey(error.key); // still the state before: a replace takes effect as a whole
  });
  const { replaceSteps } = store as Store<T> & Partial<ReplacedInSteps<T>>;
  if (replaceSteps === undefined) store.replace(list.objects, resourceVersion, onRejected);
  else yield* replaceSteps.call(store, list.objects, resourceVersion, onRejected);

  sink.order?.replaced();
  const held = rejected.size === 0
    ? list
    : stored(list, rejected, keyFunc, new ListNotifications<T>({ isInInitialList, skipsUnchanged }));
  if (sink.notifyList !== undefined) {
    sink.notifyList(held);
  } else {
    const cursor = held.cursor(true);
    for (let next = cursor.shift(); next !== undefined; next = cursor.shift()) sink.notify(next);
  }
  if (sink.observes) {
    sink.observe?.({ type: "replaced", resourceVersion, changes: changesOf(held, keyFunc) });
  }
}

/** Holds a list against the store. */
function* compareSteps<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  objects: readonly T[],
  keyFunc: KeyFunc,
  list: ListNotifications<T>,
): Steps {
  const { isSame = isSameState } = sink;
  const known = store.listKeys();
  const keys = new Set<string>();
  let step = 0;
  for (const object of objects) {
    let key: string;
    try {
      key = keyOf(keyFunc, object, "replace");
    } catch (error) {
      if (sink.rejected === undefined) throw error;
      sink.rejected(toError(error), object, false);
      continue;
    }
    if (known.length > 0) keys.add(key);
    const oldObject = store.getByKey(key);
    if (oldObject !== undefined && isSame(oldObject, object)) {
      list.push(oldObject, oldObject);
    } else {
      list.push(object, oldObject);
      sink.order?.listed(key, object);
    }
    if (++step % STEP_OBJECTS === 0) yield;
  }
  for (const key of known) {
    if (!keys.has(key)) {
      list.pushGone(new DeletedFinalStateUnknown(key, store.getByKey(key)));
      sink.order?.listed(key, undefined);
    }
    if (++step % STEP_OBJECTS === 0) yield;
  }
}

/** What of a list is stored: an object that could not be indexed left the state before it. */
function stored<T>(
  list: ListNotifications<T>,
  rejected: ReadonlySet<string>,
  keyFunc: KeyFunc,
  held: ListNotifications<T>,
): ListNotifications<T> {
  for (const deleted of list.gone) held.pushGone(deleted);
  for (let i = 0; i < list.objects.length; i++) {
    const object = list.objects[i];
    const oldObject = list.oldObjects[i];
    if (!rejected.has(keyOf(keyFunc, object, "replace"))) held.push(object, oldObject);
    else if (oldObject !== undefined) held.push(oldObject, oldObject);
  }
  return held;
}

function changesOf<T>(list: ListNotifications<T>, keyFunc: KeyFunc): StoreChange<T>[] {
  const changes: StoreChange<T>[] = [];
  for (const { key, object } of list.gone) {
    changes.push({ type: "deleted", key, object: object as T, oldObject: object });
  }
  for (let i = 0; i < list.objects.length; i++) {
    const object = list.objects[i];
    const oldObject = list.oldObjects[i];
    if (object === oldObject) continue;
    const key = keyOf(keyFunc, object, "replace");
    if (oldObject === undefined) changes.push({ type: "added", key, object });
    else changes.push({ type: "updated", key, object, oldObject });
  }
  return changes;
}
