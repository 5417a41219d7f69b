/**
 * Applies a list to a store in steps: compares, prepares the indices, then writes and notifies in one turn.
 *
 * As client-go's `processReplacedAllInfo`, where the comparison and the write are one turn:
 * https://github.com/kubernetes/client-go/blob/master/tools/cache/controller.go
 *
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { ReplacedAllInfo } from "../queue/delta.ts";
import type { KeyedStore } from "../store/cache.ts";
import type { OnIndexFailure, ReplacedInSteps, Replacement, ReplaceOptions, Store } from "../store/store.ts";
import type { Taken } from "../store/transform.ts";
import { toError } from "../util/errors.ts";
import { finish, type Steps } from "../util/turns.ts";
import type { EventHistory } from "./event_history.ts";
import { ListNotifications, type NotificationReceiver } from "./list_notifications.ts";
import type { IsSameState } from "./same_state.ts";
import type { StoreChange, StoreEvent } from "./store_event.ts";

/** What a {@linkcode ListApplication} needs. */
export interface ListApplicationOptions<T> {
  /** The store, with its objects in their held form. */
  readonly store: KeyedStore<T>;
  readonly keyFunc: KeyFunc;
  readonly isSame: IsSameState<T>;
  readonly receiver: NotificationReceiver<T>;
  /** Whether handlers receive no update for a state that is stored already, unless by a resync. */
  readonly skipsUnchanged: boolean;
  /**
   * What is stored of an object of a list, `undefined` if nothing is; the object itself, if there is no such
   * function.
   */
  readonly takeIn?: ((object: T) => Taken<T> | undefined) | undefined;
  /** How many objects there are to a step of a list. */
  readonly stepObjects: number;
}

/** What a {@linkcode ListApplication} shares with the events of single objects. */
export interface ListApplicationContext<T> {
  readonly history: EventHistory<T> | undefined;
  /** Reports an object that could not be stored; the store keeps what it has for its key. */
  readonly quarantine: (error: Error, object: unknown) => void;
  /** Whether there are observers. */
  readonly isObserved: () => boolean;
  readonly observe: (event: StoreEvent<T>) => void;
}

/** Applies whole lists, and resyncs, to a store. Nothing else may write to the store between two steps. */
export class ListApplication<T> {
  readonly #options: ListApplicationOptions<T>;
  readonly #context: ListApplicationContext<T>;

  constructor(options: ListApplicationOptions<T>, context: ListApplicationContext<T>) {
    this.#options = options;
    this.#context = context;
  }

  /**
   * Replaces the store's content by a list, in steps. The last step writes the store and notifies; until then
   * readers see the content before. If the list has an object unchanged, the store keeps the one it has.
   */
  *replaceSteps({ objects, resourceVersion }: ReplacedAllInfo<T>, isInInitialList: boolean): Steps {
    const { store, receiver, skipsUnchanged, stepObjects } = this.#options;
    const { history, quarantine, isObserved, observe } = this.#context;
    history?.listBegins(resourceVersion, store.lastStoreSyncResourceVersion());
    const options = { isInInitialList, skipsUnchanged };
    const list = new ListNotifications<T>(options);
    yield* this.#compare(objects, list);

    const notIndexed = new Set<string>();
    const onIndexFailure: OnIndexFailure<T> = (error, object) => {
      notIndexed.add(error.key);
      quarantine(error, object);
      return store.getByKey(error.key); // still the state before: a replace takes effect as a whole
    };
    const replacement = replacementOf(store, list.objects, resourceVersion, { stepObjects, onIndexFailure });
    let accepted = list;
    let changes: StoreChange<T>[] | undefined;
    try {
      do { // again if the store was written to, or given an index, in between
        yield* replacement.prepare();
        if (notIndexed.size > 0) {
          accepted = new ListNotifications<T>(options);
          yield* this.#accept(list, notIndexed, accepted);
        }
        if (isObserved()) yield* this.#collectChanges(accepted, changes = []);
        yield* receiver.prepareList(accepted, stepObjects);
      } while (!replacement.commit());
    } catch (error) {
      receiver.dropPrepared();
      throw error;
    }
    history?.listEnds();
    receiver.distributeList(accepted);
    if (!isObserved()) return;
    if (changes === undefined) finish(this.#collectChanges(accepted, changes = [])); // an observer came late
    observe({ type: "replaced", resourceVersion, changes });
  }

  /** Sends everything that is stored again, in steps; the last one notifies. */
  *resyncSteps(): Steps {
    const { store, receiver, stepObjects } = this.#options;
    const list = new ListNotifications<T>({ isInInitialList: false });
    let step = 0;
    for (const object of store.list()) {
      list.push(object, object);
      if (++step % stepObjects === 0) yield;
    }
    try {
      yield* receiver.prepareList(list, stepObjects);
    } catch (error) {
      receiver.dropPrepared();
      throw error;
    }
    receiver.distributeList(list);
  }

  /** Compares a list with the store. */
  *#compare(objects: readonly T[], list: ListNotifications<T>): Steps {
    const { store, keyFunc, isSame, takeIn, stepObjects } = this.#options;
    const { history, quarantine } = this.#context;
    const known = store.listKeys();
    const keys = new Set<string>();
    let step = 0;
    for (const given of objects) {
      if (++step % stepObjects === 0) yield;
      let object = given;
      if (takeIn !== undefined) {
        const taken = takeIn(given);
        if (taken === undefined) continue;
        ({ object } = taken);
      }
      let key: string;
      try {
        key = keyOf(keyFunc, object, "replace");
      } catch (error) {
        quarantine(toError(error), object);
        continue;
      }
      if (known.length > 0) keys.add(key);
      const oldObject = store.getByKey(key);
      if (oldObject !== undefined && isSame(oldObject, object)) {
        list.push(oldObject, oldObject);
      } else {
        list.push(object, oldObject);
        history?.listed(key, object);
      }
    }
    for (const key of known) {
      if (!keys.has(key)) {
        list.pushDeleted(new DeletedFinalStateUnknown(key, store.getByKey(key)));
        history?.listed(key, undefined);
      }
      if (++step % stepObjects === 0) yield;
    }
  }

  /** What of a list is stored: for an object that could not be indexed, the state before. */
  *#accept(
    list: ListNotifications<T>,
    notIndexed: ReadonlySet<string>,
    accepted: ListNotifications<T>,
  ): Steps {
    const { keyFunc, stepObjects } = this.#options;
    for (const deleted of list.deleted) accepted.pushDeleted(deleted);
    for (let i = 0; i < list.objects.length; i++) {
      const object = list.objects[i];
      const oldObject = list.oldObjects[i];
      if (!notIndexed.has(keyOf(keyFunc, object, "replace"))) accepted.push(object, oldObject);
      else if (oldObject !== undefined) accepted.push(oldObject, oldObject);
      if ((i + 1) % stepObjects === 0) yield;
    }
  }

  /** What observers receive of a list. */
  *#collectChanges(list: ListNotifications<T>, changes: StoreChange<T>[]): Steps {
    const { keyFunc, stepObjects } = this.#options;
    let step = 0;
    for (const { key, object } of list.deleted) {
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
      store.replace(objects, resourceVersion, options.onIndexFailure);
      yield;
    },
    commit: () => true,
  };
}
