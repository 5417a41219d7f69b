/**
 * The notifications of a list, as one unit.
 *
 * A list of many objects is many notifications. Made one by one for every handler they would take a long
 * turn, and more memory than an unchanged list should; so what the list brought is kept once, and a mailbox
 * makes each notification when its turn comes.
 *
 * @module
 */

import type { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { Steps } from "../util/turns.ts";
import type { Notification } from "./event_handler.ts";

/**
 * What receives the notifications of a store's changes: all listeners of a shared informer, or one handler.
 */
export interface NotificationReceiver<T> {
  /** Receives a notification; `isUnchanged`: an update whose two states are the same. */
  distribute(notification: Notification<T>, isUnchanged: boolean): void;
  /**
   * Does a part of the work of {@linkcode NotificationReceiver.distributeList} in advance, in steps. That
   * call follows in the turn of the last step, or {@linkcode NotificationReceiver.dropPrepared}.
   */
  prepareList(list: ListNotifications<T>, stepObjects: number): Steps;
  /** What was prepared is not distributed. */
  dropPrepared(): void;
  /** Receives the notifications of a list. */
  distributeList(list: ListNotifications<T>): void;
}

/** Which notifications of a list are not made. */
export interface ListNotificationsOptions {
  /** Whether the objects are those that a handler begins with. */
  readonly isInInitialList: boolean;
  /** Whether handlers receive no update for a state that was stored already. */
  readonly skipsUnchanged?: boolean;
}

/** One notification for each object that a list lacks, then one for each that it has. */
export class ListNotifications<T> {
  readonly #options: ListNotificationsOptions;
  readonly #deleted: DeletedFinalStateUnknown<T>[] = [];
  readonly #objects: T[];
  readonly #oldObjects: (T | undefined)[] = [];
  #adds = 0;
  /** The places of the updates that no handler receives. */
  readonly #skipped = new Places();
  /** The places of the other updates whose states are the same, for handlers whose resync is due. */
  readonly #syncs = new Places();

  /** Makes one without notifications, or with an add for each of these objects. */
  constructor(options: ListNotificationsOptions, objects: T[] = []) {
    this.#options = options;
    this.#objects = objects;
    this.#adds = objects.length;
  }

  /** The objects that the list brought. */
  get objects(): readonly T[] {
    return this.#objects;
  }

  /** What the store held for each of them; `undefined` where it held none. */
  get oldObjects(): readonly (T | undefined)[] {
    return this.#oldObjects;
  }

  /** What the store held and the list lacks. */
  get deleted(): readonly DeletedFinalStateUnknown<T>[] {
    return this.#deleted;
  }

  /** How many objects of an initial list there are in it. */
  get initialAdds(): number {
    return this.#options.isInInitialList ? this.#adds : 0;
  }

  /** Adds what the list brought; the stored object itself, if it is unchanged. */
  push(object: T, oldObject: T | undefined): void {
    const i = this.#objects.push(object) - 1;
    this.#oldObjects.push(oldObject);
    if (oldObject === undefined) this.#adds++;
    else if (oldObject === object) {
      (this.#options.skipsUnchanged === true ? this.#skipped : this.#syncs).add(i);
    }
  }

  /** Adds an object that the list lacks. */
  pushDeleted(deleted: DeletedFinalStateUnknown<T>): void {
    this.#deleted.push(deleted);
  }

  /** The notifications one after the other; with the updates of unchanged objects, if `isSyncing`. */
  cursor(isSyncing: boolean): ListCursor<T> {
    const silent = isSyncing ? [this.#skipped] : [this.#skipped, this.#syncs];
    return new ListCursor(this, silent.filter(({ count }) => count > 0));
  }

  /** How many places there are, of notifications that are made or not. */
  get places(): number {
    return this.#deleted.length + this.#objects.length;
  }

  /** The notification at a place. */
  at(place: number): Notification<T> {
    if (place < this.#deleted.length) {
      const deleted = this.#deleted[place];
      return { type: "delete", deleted, oldObject: deleted.object };
    }
    const object = this.#objects[place - this.#deleted.length];
    const oldObject = this.#oldObjects[place - this.#deleted.length];
    return oldObject === undefined
      ? { type: "add", object, isInInitialList: this.#options.isInInitialList }
      : { type: "update", oldObject, object };
  }
}

/** Places that ascend, in runs: those of a list that says nothing new are one. */
class Places {
  /** Where each run begins, and where the next place after it is. */
  readonly #runs: number[] = [];
  count = 0;

  add(place: number): void {
    const runs = this.#runs;
    this.count++;
    if (runs[runs.length - 1] === place) runs[runs.length - 1]++;
    else runs.push(place, place + 1);
  }

  /** Where run `i` begins and ends; `undefined` after the last. */
  begin(i: number): number | undefined {
    return this.#runs[2 * i];
  }

  end(i: number): number {
    return this.#runs[2 * i + 1];
  }
}

/** A place in the notifications of a list. */
export class ListCursor<T> {
  readonly #list: ListNotifications<T>;
  /** The places that are skipped, and the next run of each. */
  readonly #silent: readonly Places[];
  readonly #runs: number[];
  #next = 0;
  #length: number;

  /** Made by {@linkcode ListNotifications.cursor}. */
  constructor(list: ListNotifications<T>, silent: readonly Places[]) {
    this.#list = list;
    this.#silent = silent;
    this.#runs = silent.map(() => 0);
    this.#length = list.places;
    for (const { count } of silent) this.#length -= count;
  }

  /** How many notifications are left. */
  get length(): number {
    return this.#length;
  }

  /** Another one at the same place. */
  copy(): ListCursor<T> {
    const copy = new ListCursor(this.#list, this.#silent);
    copy.#next = this.#next;
    copy.#length = this.#length;
    for (let i = 0; i < this.#runs.length; i++) copy.#runs[i] = this.#runs[i];
    return copy;
  }

  /** Takes the next one out; `undefined` if none is left. */
  shift(): Notification<T> | undefined {
    if (this.#length === 0) return undefined;
    this.#length--;
    if (this.#silent.length > 0) this.#skip();
    return this.#list.at(this.#next++);
  }

  /** O(1) for each run of skipped places. */
  #skip(): void {
    const count = this.#list.deleted.length;
    for (let isMoved = true; isMoved;) {
      isMoved = false;
      for (let i = 0; i < this.#silent.length; i++) {
        const places = this.#silent[i];
        if (places.begin(this.#runs[i]) !== this.#next - count) continue;
        this.#next = count + places.end(this.#runs[i]++);
        isMoved = true;
      }
    }
  }
}
