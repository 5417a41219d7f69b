/**
 * Applies a list to a store in steps: compares, prepares the indices, then writes and notifies in one turn.
 *
 * As client-go's `processReplacedAllInfo`, where the comparison and the write are one turn:
 * https://github.com/kubernetes/client-go/blob/master/tools/cache/controller.go
 *
 * @module
 */

import { DeletedFinalStateUnknown, isSameState, keyOf, metaOf } from "../meta/object.ts";
import type { ReplacedAllInfo } from "../queue/queue.ts";
import { type Quarantine, quarantinedBy } from "../reflector/quarantine.ts";
import type { HeldStore } from "../store/cache.ts";
import type { OnIndexFailure } from "../store/store.ts";
import type { Taken } from "../store/transform.ts";
import { type Listeners, toError } from "../util/errors.ts";
import { finish, type Steps } from "../util/turns.ts";
import type { EventHistory } from "./event_history.ts";
import type { Notification, StoreChange, StoreEvent } from "./events.ts";

export interface ListApplicationOptions<T> {
  readonly store: HeldStore<T>;
  readonly receiver: NotificationReceiver<T>;
  /** Whether handlers receive no update for a state that is stored already, unless by a resync. */
  readonly skipsUnchanged: boolean;
  /**
   * Returns the object to store for one of a list, `undefined` for none; without it, the object itself is
   * stored.
   */
  readonly takeIn?: ((object: T) => Taken<T> | undefined) | undefined;
  /** How many objects of a list are one step. */
  readonly stepObjects: number;
  /** Receives every object that could not be stored, and every loss of a change. */
  readonly quarantine: Quarantine;
  /** The observers of the store, called within the turn of each write. */
  readonly observers: Listeners<StoreEvent<T>>;
}

/** Applies whole lists, and resyncs, to a store. Nothing else may write to the store between two steps. */
export class ListApplication<T> {
  readonly #options: ListApplicationOptions<T>;
  readonly #history: EventHistory<T> | undefined;

  /** @param history The history of single objects' events, where the queue keeps their order. */
  constructor(options: ListApplicationOptions<T>, history: EventHistory<T> | undefined) {
    this.#options = options;
    this.#history = history;
  }

  /**
   * Replaces the store's content by a list, in steps. The last step writes the store and notifies; until then
   * readers see the content before. If the list has an object unchanged, the store keeps the one it has.
   */
  *replaceSteps(info: ReplacedAllInfo<T>, isInInitialList: boolean): Steps {
    const { resourceVersion } = info;
    const { store, receiver, skipsUnchanged, stepObjects, quarantine, observers } = this.#options;
    const history = this.#history;
    history?.listBegins(resourceVersion, store.held.lastStoreSyncResourceVersion());
    const options = { isInInitialList, skipsUnchanged };
    const list = new ListNotifications<T>(options);
    const objects = yield* this.#compare(info, list);

    const notIndexed = new Set<string>();
    const onIndexFailure: OnIndexFailure<T> = (error, object) => {
      notIndexed.add(error.key);
      quarantine.add(quarantinedBy(error, object));
      return store.held.get(error.key); // still the state before: a replace takes effect as a whole
    };
    const replacement = store.held.newReplacement({ objects, resourceVersion }, {
      stepObjects,
      onIndexFailure,
    });
    let accepted = list;
    let changes: StoreChange<T>[] | undefined;
    do { // again if the store was written to, or given an index, in between
      yield* replacement.prepare();
      if (notIndexed.size > 0) {
        accepted = new ListNotifications<T>(options);
        yield* this.#accept(list, notIndexed, accepted);
      }
      if (observers.size > 0) yield* this.#collectChanges(accepted, changes = []);
      yield* receiver.prepareList(accepted, stepObjects);
    } while (!replacement.commit());
    history?.listEnds();
    receiver.distributeList(accepted);
    for (const { object, oldObject } of accepted.again) {
      receiver.distribute({ type: "update", oldObject, object }, false);
    }
    if (observers.size === 0) return;
    if (changes === undefined) finish(this.#collectChanges(accepted, changes = [])); // an observer came late
    observers.call({ type: "replaced", resourceVersion, changes });
  }

  /** Sends everything that is stored again, in steps; the last one notifies. */
  *resyncSteps(): Steps {
    const { store, receiver, stepObjects } = this.#options;
    const list = new ListNotifications<T>({ isInInitialList: false });
    let step = 0;
    for (const object of store.held.list()) {
      list.push(object, object);
      if (++step % stepObjects === 0) yield;
    }
    yield* receiver.prepareList(list, stepObjects);
    receiver.distributeList(list);
  }

  /** Returns what is to be stored. */
  *#compare(
    { objects, keptKeys = [], namespace }: ReplacedAllInfo<T>,
    list: ListNotifications<T>,
  ): Generator<undefined, Map<string, T>, undefined> {
    const { store, takeIn, stepObjects, quarantine } = this.#options;
    const { holding } = store;
    const history = this.#history;
    const known = store.held.listKeys();
    const listed = new Map<string, T>();
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
        key = keyOf(holding.keyFunc, object, "replace");
      } catch (error) {
        quarantine.add(quarantinedBy(toError(error), object));
        continue;
      }
      const before = listed.get(key);
      const oldObject = before ?? store.held.get(key);
      if (oldObject !== undefined && isSameState(holding, oldObject, object)) object = oldObject;
      else history?.listed(key, object);
      listed.set(key, object);
      if (before === undefined) list.push(object, oldObject, key);
      else if (before !== object) list.again.push({ type: "updated", key, object, oldObject: before });
    }
    for (const key of keptKeys) {
      const object = store.held.get(key);
      if (object === undefined || listed.has(key)) continue;
      listed.set(key, object);
      list.push(object, object, key);
      if (++step % stepObjects === 0) yield;
    }
    for (const key of known) {
      const stored = namespace === undefined ? undefined : store.held.get(key);
      if (stored !== undefined && metaOf(stored)?.namespace !== namespace) listed.set(key, stored);
      else if (!listed.has(key)) {
        list.deleted.push(new DeletedFinalStateUnknown(key, store.held.get(key)));
        history?.listed(key, undefined);
      }
      if (++step % stepObjects === 0) yield;
    }
    return listed;
  }

  /** Takes the stored states of a list: of an object that could not be indexed, the state before. */
  *#accept(
    list: ListNotifications<T>,
    notIndexed: ReadonlySet<string>,
    accepted: ListNotifications<T>,
  ): Steps {
    for (const deleted of list.deleted) accepted.deleted.push(deleted);
    for (const change of list.again) if (!notIndexed.has(change.key)) accepted.again.push(change);
    for (const [i, key] of list.keys.entries()) {
      const oldObject = list.oldObjects[i];
      if (!notIndexed.has(key)) accepted.push(list.objects[i], oldObject, key);
      else if (oldObject !== undefined) accepted.push(oldObject, oldObject, key);
      if ((i + 1) % this.#options.stepObjects === 0) yield;
    }
  }

  /** Collects the changes of a list for observers. */
  *#collectChanges(list: ListNotifications<T>, changes: StoreChange<T>[]): Steps {
    const { stepObjects } = this.#options;
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
      const key = list.keys[i];
      if (oldObject === undefined) changes.push({ type: "added", key, object });
      else changes.push({ type: "updated", key, object, oldObject });
    }
    for (const change of list.again) changes.push(change);
  }
}

/** Receives the notifications of a store's changes: all listeners of a shared informer, or one handler. */
export interface NotificationReceiver<T> {
  /** Receives a notification; `isUnchanged`: an update whose two states are the same. */
  distribute(notification: Notification<T>, isUnchanged: boolean): void;
  /**
   * Does a part of the work of {@linkcode NotificationReceiver.distributeList} in advance, in steps. That
   * call follows in the turn of the last step, or {@linkcode NotificationReceiver.dropPrepared}.
   */
  prepareList(list: ListNotifications<T>, stepObjects: number): Steps;
  /** Drops the prepared list, which is not distributed. */
  dropPrepared(): void;
  /** Receives the notifications of a list. */
  distributeList(list: ListNotifications<T>): void;
}

export interface ListNotificationsOptions {
  /** Whether the objects are those that a handler begins with. */
  readonly isInInitialList: boolean;
  /** Whether handlers receive no update for a state that was stored already. */
  readonly skipsUnchanged?: boolean;
}

/** One notification for each object that a list lacks, then one for each that it has. */
export class ListNotifications<T> {
  /** Objects that the store held and the list lacks. */
  readonly deleted: DeletedFinalStateUnknown<T>[] = [];
  /** The objects that the list brought. */
  readonly objects: T[];
  /** The keys of the objects. */
  readonly keys: string[] = [];
  /** The stored state of each object before; `undefined` where there was none. */
  readonly oldObjects: (T | undefined)[] = [];
  /** Further states of a key that the list has more than once: an update each, as in client-go. */
  readonly again: Extract<StoreChange<T>, { type: "updated" }>[] = [];
  readonly #options: ListNotificationsOptions;
  #adds = 0;
  /** How many of the objects are the stored ones. */
  #unchanged = 0;

  /** Makes one without notifications, or with an add for each of these objects. */
  constructor(options: ListNotificationsOptions, objects: T[] = []) {
    this.#options = options;
    this.objects = objects;
    this.#adds = objects.length;
  }

  /** How many adds of an initial list the notifications have. */
  get initialAdds(): number {
    return this.#options.isInInitialList ? this.#adds : 0;
  }

  /** Adds what the list brought; the stored object itself, if it is unchanged. A resync needs no keys. */
  push(object: T, oldObject: T | undefined, key?: string): void {
    this.objects.push(object);
    this.oldObjects.push(oldObject);
    if (key !== undefined) this.keys.push(key);
    if (oldObject === undefined) this.#adds++;
    else if (oldObject === object) this.#unchanged++;
  }

  /** The notifications one after the other; with the updates of unchanged objects, if `isSyncing`. */
  cursor(isSyncing: boolean): ListCursor<T> {
    const isWhole = isSyncing && !this.#options.skipsUnchanged;
    const silent = isWhole ? 0 : this.#unchanged;
    return new ListCursor(this, isWhole, this.deleted.length + this.objects.length - silent);
  }

  /** The next place from one on whose notification is made; there must be one. */
  placeFrom(place: number, isWhole: boolean): number {
    const { objects, oldObjects } = this;
    let i = place - this.deleted.length;
    if (i >= 0 && !isWhole && this.#unchanged > 0) { while (objects[i] === oldObjects[i]) i++; }
    return i + this.deleted.length;
  }

  /** The notification at a place. */
  at(place: number): Notification<T> {
    if (place < this.deleted.length) {
      const deleted = this.deleted[place];
      return { type: "delete", deleted, oldObject: deleted.object };
    }
    const object = this.objects[place - this.deleted.length];
    const oldObject = this.oldObjects[place - this.deleted.length];
    return oldObject === undefined
      ? { type: "add", object, isInInitialList: this.#options.isInInitialList }
      : { type: "update", oldObject, object };
  }
}

/** A place in the notifications of a list; `isWhole`: with the updates of unchanged objects. */
export class ListCursor<T> {
  readonly list: ListNotifications<T>;
  readonly #isWhole: boolean;
  #next = 0;
  /** How many are left. */
  length: number;

  constructor(list: ListNotifications<T>, isWhole: boolean, length: number) {
    this.list = list;
    this.#isWhole = isWhole;
    this.length = length;
  }

  /** Another cursor at the same place. */
  copy(): ListCursor<T> {
    const copy = new ListCursor(this.list, this.#isWhole, this.length);
    copy.#next = this.#next;
    return copy;
  }

  /** Takes the next one out; `undefined` if none is left. */
  shift(): Notification<T> | undefined {
    if (this.length === 0) return undefined;
    this.length--;
    const place = this.list.placeFrom(this.#next, this.#isWhole);
    this.#next = place + 1;
    return this.list.at(place);
  }
}
