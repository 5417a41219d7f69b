/**
 * A queue of notifications that are merged by object.
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { metaOf } from "../meta/object.ts";
import { DeletedFinalStateUnknown, type DeletedObject } from "../meta/tombstone.ts";
import type { Notification } from "./event_handler.ts";

/** One object's notifications, merged. */
interface Merged<T> {
  /** Whether the handler knows the object. */
  readonly isKnown: boolean;
  /** The state that the handler saw last, where it is known. */
  readonly seen: T | undefined;
  readonly isInInitialList: boolean;
  object: T | undefined;
  deleted: DeletedObject<T> | undefined;
}

/**
 * One notification for each object, at the place of its first one: of what the handler saw last, and what is
 * true now. An object that came and went without being seen is not among them.
 */
export class MergedNotifications<T> {
  readonly #keyFunc: KeyFunc;
  readonly #entries = new Map<string, Merged<T>>();
  // One iterator as long as there are entries: a new one would skip over everything that was taken from the
  // front.
  #next: Iterator<[string, Merged<T>]> | undefined;
  /** Called for an object of an initial list that will not be delivered as one. */
  onInitialMerged: () => void;

  constructor(keyFunc: KeyFunc, onInitialMerged: () => void) {
    this.#keyFunc = keyFunc;
    this.onInitialMerged = onInitialMerged;
  }

  /** How many there are. */
  get size(): number {
    return this.#entries.size;
  }

  /** Merges one in. */
  push(notification: Notification<T>): void {
    this.#merge(this.#keyOf(notification), first(notification));
  }

  /** Merges others in, which come after these and stay as they are; one at each step. */
  *pushAll(others: MergedNotifications<T>): Generator<undefined, void, undefined> {
    for (const [key, entry] of others.#entries) {
      this.#merge(key, { ...entry });
      yield;
    }
  }

  /** Takes the next one out. */
  shift(): Notification<T> | undefined {
    const { done, value } = (this.#next ??= this.#entries.entries()).next();
    if (done) return undefined;
    const [key, entry] = value;
    this.#remove(key);
    return made(entry);
  }

  /**
   * Takes out what is here of the object of a notification that comes before, and merges it into that;
   * `undefined` if both together change nothing.
   */
  mergedInto(earlier: Notification<T>): Notification<T> | undefined {
    const key = this.#keyOf(earlier);
    const entry = this.#entries.get(key);
    if (entry === undefined) return earlier;
    this.#remove(key);
    const merged = first(earlier);
    return this.#isNothing(merged, entry) ? undefined : made(merged);
  }

  #merge(key: string, later: Merged<T>): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) this.#entries.set(key, later);
    else if (this.#isNothing(entry, later)) this.#remove(key);
  }

  /** Makes `entry` what both come to; true if that is nothing. */
  #isNothing(entry: Merged<T>, later: Merged<T>): boolean {
    if (later.isInInitialList) this.onInitialMerged();
    entry.object = later.object;
    if (later.deleted === undefined) {
      entry.deleted = undefined;
      return false;
    }
    if (entry.isKnown) {
      entry.deleted = deletedOf(later.deleted, entry.seen);
      return false;
    }
    if (entry.isInInitialList) this.onInitialMerged();
    return true;
  }

  #remove(key: string): void {
    this.#entries.delete(key);
    if (this.#entries.size === 0) this.#next = undefined;
  }

  #keyOf(notification: Notification<T>): string {
    return notification.type === "delete"
      ? notification.deleted.key
      : keyOf(this.#keyFunc, notification.object, "notify of");
  }
}

/**
 * A delete of the object that the handler saw: if another of its name came and went meanwhile, of its last
 * known state.
 */
function deletedOf<T>(deleted: DeletedObject<T>, seen: T | undefined): DeletedObject<T> {
  if (seen === undefined) return deleted;
  if (!deleted.finalStateUnknown && metaOf(deleted.object)?.uid === metaOf(seen)?.uid) return deleted;
  return new DeletedFinalStateUnknown(deleted.key, seen);
}

function first<T>(notification: Notification<T>): Merged<T> {
  switch (notification.type) {
    case "add": {
      const { object, isInInitialList } = notification;
      return { isKnown: false, seen: undefined, isInInitialList, object, deleted: undefined };
    }
    case "update": {
      const { object, oldObject } = notification;
      return { isKnown: true, seen: oldObject, isInInitialList: false, object, deleted: undefined };
    }
    case "delete": {
      const { deleted, oldObject } = notification;
      // One that was never stored was never seen: an object of its name that comes after it is new to the
      // handler.
      return { isKnown: true, seen: oldObject, isInInitialList: false, object: undefined, deleted };
    }
  }
}

function made<T>({ deleted, seen, object, isInInitialList }: Merged<T>): Notification<T> {
  if (deleted !== undefined) return { type: "delete", deleted, oldObject: seen };
  if (seen !== undefined) return { type: "update", oldObject: seen, object: object as T };
  return { type: "add", object: object as T, isInInitialList };
}
