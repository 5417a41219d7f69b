/**
 * From a list into the store, and on to whoever listens.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { ReplacedAllInfo } from "../queue/delta.ts";
import type { OnRejected, ReplacedInSteps, Replacement, ReplaceOptions, Store } from "../store/store.ts";
import { toError } from "../util/errors.ts";
import { finish, STEP_OBJECTS, type Steps } from "../util/steps.ts";
import { ListNotifications } from "./list_notifications.ts";
import type { DeltaSink } from "./process_deltas.ts";
import { quarantinedBy } from "./quarantined_by.ts";
import { isSameState } from "./same_state.ts";
import type { StoreChange } from "./store_event.ts";

/**
 * Replaces the store's content by a list, in steps. The last one writes the store and tells everyone; until then readers
 * see what was there before. Where the list brings an object that has not changed, the store keeps the one it has.
 *
 * @throws {KeyError} An object has no key, and there is no `sink.quarantine`.
 * @throws {IndexFuncError} An index function threw, and there is no `sink.quarantine`.
 */
export function* replaceSteps<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  { objects, resourceVersion }: ReplacedAllInfo<T>,
  isInInitialList: boolean,
  keyFunc: KeyFunc,
): Steps {
  const { stepObjects = STEP_OBJECTS } = sink;
  const options = { isInInitialList, skipsUnchanged: sink.skipsUnchanged === true };
  const list = new ListNotifications<T>(options);
  yield* compareSteps(store, sink, objects, keyFunc, list);

  const rejected = new Set<string>();
  const onRejected: OnRejected<T> | undefined = sink.quarantine && ((error, object) => {
    rejected.add(error.key);
    sink.quarantine!.add(quarantinedBy(error, object));
    return store.getByKey(error.key); // still the state before: a replace takes effect as a whole
  });
  const replacement = replacementOf(store, list.objects, resourceVersion, {
    stepObjects,
    ...(onRejected && { onRejected }),
  });
  let held = list;
  let changes: StoreChange<T>[] | undefined;
  try {
    do { // again where the store was written to, or given an index, in between
      yield* replacement.prepare();
      if (rejected.size > 0) {
        held = new ListNotifications<T>(options);
        yield* acceptedSteps(list, rejected, keyFunc, held, stepObjects);
      }
      if (sink.observes) yield* changesSteps(held, keyFunc, changes = [], stepObjects);
      if (sink.prepareList !== undefined) yield* sink.prepareList(held, stepObjects);
    } while (!replacement.commit());
  } catch (error) {
    sink.dropPrepared?.();
    throw error;
  }
  sink.order?.replaced();
  notifyList(sink, held);
  if (!sink.observes) return;
  if (changes === undefined) finish(changesSteps(held, keyFunc, changes = [], stepObjects)); // an observer came late
  sink.observe?.({ type: "replaced", resourceVersion, changes });
}

/** Hands out everything that is stored again, in steps. The last one tells everyone. */
export function* syncSteps<T>(store: Store<T>, sink: DeltaSink<T>): Steps {
  const { stepObjects = STEP_OBJECTS } = sink;
  const list = new ListNotifications<T>({ isInInitialList: false });
  let step = 0;
  for (const object of store.list()) {
    list.push(object, object);
    if (++step % stepObjects === 0) yield;
  }
  try {
    if (sink.prepareList !== undefined) yield* sink.prepareList(list, stepObjects);
  } catch (error) {
    sink.dropPrepared?.();
    throw error;
  }
  notifyList(sink, list);
}

function notifyList<T>(sink: DeltaSink<T>, list: ListNotifications<T>): void {
  if (sink.notifyList !== undefined) return sink.notifyList(list);
  const cursor = list.cursor(true);
  for (let next = cursor.shift(); next !== undefined; next = cursor.shift()) sink.notify(next);
}

/** A replace in steps; of a store that has none, in one. */
function replacementOf<T>(
  store: Store<T>,
  objects: readonly T[],
  resourceVersion: string,
  options: ReplaceOptions<T>,
): Replacement {
  if ("newReplacement" in store) {
    return (store as ReplacedInSteps<T>).newReplacement(objects, resourceVersion, options);
  }
  return {
    *prepare() {
      store.replace(objects, resourceVersion, options.onRejected);
      yield;
    },
    commit: () => true,
  };
}

/** Holds a list against the store. */
function* compareSteps<T>(
  store: Store<T>,
  sink: DeltaSink<T>,
  objects: readonly T[],
  keyFunc: KeyFunc,
  list: ListNotifications<T>,
): Steps {
  const { isSame = isSameState, stepObjects = STEP_OBJECTS } = sink;
  const known = store.listKeys();
  const keys = new Set<string>();
  let step = 0;
  for (const given of objects) {
    if (++step % stepObjects === 0) yield;
    const taken = sink.takeIn === undefined ? { object: given } : sink.takeIn(given);
    if (taken === undefined) continue;
    const { object } = taken;
    let key: string;
    try {
      key = keyOf(keyFunc, object, "replace");
    } catch (error) {
      if (sink.quarantine === undefined) throw error;
      sink.quarantine.add(quarantinedBy(toError(error), object));
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
  }
  for (const key of known) {
    if (!keys.has(key)) {
      list.pushGone(new DeletedFinalStateUnknown(key, store.getByKey(key)));
      sink.order?.listed(key, undefined);
    }
    if (++step % stepObjects === 0) yield;
  }
}

/** What of a list is stored: an object that could not be indexed left the state before it. */
function* acceptedSteps<T>(
  list: ListNotifications<T>,
  rejected: ReadonlySet<string>,
  keyFunc: KeyFunc,
  held: ListNotifications<T>,
  stepObjects: number,
): Steps {
  for (const deleted of list.gone) held.pushGone(deleted);
  for (let i = 0; i < list.objects.length; i++) {
    const object = list.objects[i];
    const oldObject = list.oldObjects[i];
    if (!rejected.has(keyOf(keyFunc, object, "replace"))) held.push(object, oldObject);
    else if (oldObject !== undefined) held.push(oldObject, oldObject);
    if ((i + 1) % stepObjects === 0) yield;
  }
}

function* changesSteps<T>(
  list: ListNotifications<T>,
  keyFunc: KeyFunc,
  changes: StoreChange<T>[],
  stepObjects: number,
): Steps {
  let step = 0;
  for (const { key, object } of list.gone) {
    changes.push({ type: "deleted", key, object: object as T, oldObject: object });
    if (++step % stepObjects === 0) yield;
  }
  for (let i = 0; i < list.objects.length; i++) {
    if (++step % stepObjects === 0) yield;
    const object = list.objects[i];
    const oldObject = list.oldObjects[i];
    if (object === oldObject) continue;
    const key = keyOf(keyFunc, object, "replace");
    if (oldObject === undefined) changes.push({ type: "added", key, object });
    else changes.push({ type: "updated", key, object, oldObject });
  }
}
