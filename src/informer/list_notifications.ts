/**
 * What handlers are told of a list, in one piece.
 *
 * A list of many objects is many notifications. Made one by one for every handler they would take a long turn, and more
 * memory than an unchanged list should; so what the list brought is kept once, and a mailbox makes each notification
 * when its turn comes.
 *
 * @module
 */

import type { DeletedFinalStateUnknown } from "../meta/tombstone.ts";
import type { Notification } from "./event_handler.ts";
import { isSameState } from "./same_state.ts";

/** Which notifications of a list are not made. */
export interface ListNotificationsOptions {
  /** Whether the objects are those that a handler begins with. */
  readonly isInInitialList: boolean;
  /** Whether nobody is told of a state that was stored already. */
  readonly skipsUnchanged?: boolean;
}

/** One notification for each object that a list did not bring any more, then one for each that it brought. */
export class ListNotifications<T> {
  readonly #options: ListNotificationsOptions;
  readonly #gone: DeletedFinalStateUnknown<T>[] = [];
  readonly #objects: T[] = [];
  readonly #oldObjects: (T | undefined)[] = [];
  #adds = 0;
  /** Updates that nobody is told of. */
  #skipped = 0;
  /** Updates that say nothing new, for those whose resync is due. */
  #syncs = 0;

  /** Makes one without notifications. */
  constructor(options: ListNotificationsOptions) {
    this.#options = options;
  }

  /** The objects that the list brought. */
  get objects(): readonly T[] {
    return this.#objects;
  }

  /** What the store held for each of them; `undefined` where it held none. */
  get oldObjects(): readonly (T | undefined)[] {
    return this.#oldObjects;
  }

  /** What the store held and the list did not bring. */
  get gone(): readonly DeletedFinalStateUnknown<T>[] {
    return this.#gone;
  }

  /** How many objects of an initial list there are in it. */
  get initialAdds(): number {
    return this.#options.isInInitialList ? this.#adds : 0;
  }

  /** Adds what the list brought; the stored object itself, where that is the same. */
  push(object: T, oldObject: T | undefined): void {
    this.#objects.push(object);
    this.#oldObjects.push(oldObject);
    if (oldObject === undefined) this.#adds++;
    else if (this.#isSkipped(object, oldObject)) this.#skipped++;
    else if (isSameState(oldObject, object)) this.#syncs++;
  }

  /** Adds what it did not bring. */
  pushGone(deleted: DeletedFinalStateUnknown<T>): void {
    this.#gone.push(deleted);
  }

  /** The notifications one after the other; with updates that say nothing new, if `isSyncing`. */
  cursor(isSyncing: boolean): ListCursor<T> {
    const length = this.#gone.length + this.#objects.length - this.#skipped - (isSyncing ? 0 : this.#syncs);
    return new ListCursor(this, isSyncing, length);
  }

  /** The notification at a place; `undefined` if there is none to be made. */
  at(i: number, isSyncing: boolean): Notification<T> | undefined {
    if (i < this.#gone.length) {
      const deleted = this.#gone[i];
      return { type: "delete", deleted, oldObject: deleted.object };
    }
    const object = this.#objects[i - this.#gone.length];
    const oldObject = this.#oldObjects[i - this.#gone.length];
    if (oldObject === undefined) {
      return { type: "add", object, isInInitialList: this.#options.isInInitialList };
    }
    if (this.#isSkipped(object, oldObject)) return undefined;
    if (!isSyncing && isSameState(oldObject, object)) return undefined;
    return { type: "update", oldObject, object };
  }

  #isSkipped(object: T, oldObject: T): boolean {
    return this.#options.skipsUnchanged === true && isSameState(oldObject, object);
  }
}

/** A place in the notifications of a list. */
export class ListCursor<T> {
  readonly #list: ListNotifications<T>;
  readonly #isSyncing: boolean;
  #next = 0;
  #length: number;

  /** Made by {@linkcode ListNotifications.cursor}. */
  constructor(list: ListNotifications<T>, isSyncing: boolean, length: number) {
    this.#list = list;
    this.#isSyncing = isSyncing;
    this.#length = length;
  }

  /** How many notifications are left. */
  get length(): number {
    return this.#length;
  }

  /** Takes the next one out; `undefined` if none is left. */
  shift(): Notification<T> | undefined {
    while (this.#length > 0) {
      const notification = this.#list.at(this.#next++, this.#isSyncing);
      if (notification === undefined) continue;
      this.#length--;
      return notification;
    }
    return undefined;
  }
}
