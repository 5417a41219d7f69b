/**
 * What waits for a handler.
 *
 * How it works. As long as few notifications wait they are kept one by one, in order. When there are more than the
 * limit, they are merged: one entry for each object, at the place of its first notification, which holds what the
 * handler saw last and what is true now. From then on each further notification is merged into its object's entry,
 * until all of them were taken. So a handler that stalls costs memory in proportion to the objects that changed, not to
 * the changes, and still sees for every object a history that makes sense: an add, then updates, then a delete, each
 * update with the state it saw before as the old one.
 *
 * What a list says is one entry of the queue, whose notifications are made when they are taken. It may pass the limit as
 * long as it is alone: it has each object once.
 *
 * @module
 */

import { type KeyFunc, keyOf } from "../meta/keys.ts";
import { metaOf } from "../meta/object.ts";
import { DeletedFinalStateUnknown, type DeletedObject } from "../meta/tombstone.ts";
import { Deque } from "../util/deque.ts";
import type { Notification } from "./event_handler.ts";
import { ListCursor } from "./list_notifications.ts";

/**
 * How many notifications may wait for a handler, and what becomes of more.
 *
 * @example
 * ```ts
 * import type { MailboxOptions } from "@listwatch/cache";
 * const everyChange: MailboxOptions = { limit: 100_000, onOverflow: "remove" };
 * ```
 */
export interface MailboxOptions {
  /**
   * How many may wait; 1,000 by default. A list may be longer, as long as nothing waits with it; with `remove` also then.
   */
  readonly limit?: number;
  /**
   * What happens when more do:
   *
   * - `coalesce`, the default: from then on those of one object are merged, so that at most one an object waits.
   * - `grow`: nothing, as in client-go. A handler that stalls takes memory without end.
   * - `remove`: the handler is taken away, with an error in the log: for those who need every change or none.
   */
  readonly onOverflow?: "coalesce" | "grow" | "remove";
}

const DEFAULT_LIMIT = 1_000;

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

/** Who is told what a mailbox does. */
export interface MailboxCallbacks {
  /** An object of the initial list will not be delivered as one: it was merged, or is gone again. */
  onInitialMerged(): void;
  /** The limit was passed, and the handler is to be taken away. */
  onRemove(): void;
}

/** The notifications that wait for one handler. */
export class Mailbox<T> {
  readonly #keyFunc: KeyFunc;
  readonly #limit: number;
  readonly #onOverflow: "coalesce" | "grow" | "remove";
  readonly #callbacks: MailboxCallbacks;
  readonly #list = new Deque<Notification<T> | ListCursor<T>>();
  /** How many lists are among them, and how many notifications those hold. */
  #lists = 0;
  #inLists = 0;
  #merged: Map<string, Merged<T>> | undefined;
  // One iterator for the life of the map: a new one would step over everything that was taken from the front.
  #next: Iterator<[string, Merged<T>]> | undefined;

  /** Makes an empty one. */
  constructor(options: MailboxOptions, keyFunc: KeyFunc, callbacks: MailboxCallbacks) {
    const { limit = DEFAULT_LIMIT, onOverflow = "coalesce" } = options;
    if (!(limit >= 1)) {
      throw new RangeError(`Cannot limit a mailbox to ${limit} notifications: the limit must be 1 or more`);
    }
    this.#limit = limit;
    this.#onOverflow = onOverflow;
    this.#keyFunc = keyFunc;
    this.#callbacks = callbacks;
  }

  /** How many notifications wait. */
  get length(): number {
    return this.#list.length - this.#lists + this.#inLists + (this.#merged?.size ?? 0);
  }

  /** Adds a notification. */
  push(notification: Notification<T>): void {
    if (this.#merged !== undefined) {
      this.#merge(this.#merged, notification);
      return;
    }
    this.#list.push(notification);
    if (!isInitial(notification)) this.#checkLimit(); // a first list has each object once
  }

  /** Adds all notifications of a list. */
  pushList(cursor: ListCursor<T>): void {
    if (this.#merged !== undefined) {
      this.#mergeList(this.#merged, cursor);
    } else if (cursor.length > 0) {
      this.#list.push(cursor);
      this.#lists++;
      this.#inLists += cursor.length;
      this.#checkLimit();
    }
  }

  /** Takes the next one out. */
  shift(): Notification<T> | undefined {
    if (this.#merged !== undefined) return this.#shiftMerged(this.#merged);
    const first = this.#list.at(0);
    if (!(first instanceof ListCursor)) return this.#list.shift() as Notification<T> | undefined;
    const notification = first.shift();
    this.#inLists--;
    if (first.length === 0) {
      this.#list.shift();
      this.#lists--;
    }
    return notification;
  }

  /** Drops everything. */
  clear(): void {
    this.#clearList();
    this.#merged = undefined;
    this.#next = undefined;
  }

  #checkLimit(): void {
    if (this.length <= this.#limit || this.#list.length === this.#lists && this.#lists === 1) return;
    if (this.#onOverflow === "coalesce") this.#mergeAll();
    else if (this.#onOverflow === "remove" && this.#isTooMuch()) this.#callbacks.onRemove();
  }

  /** For a handler that wants every change; one list is too much for nobody. */
  #isTooMuch(): boolean {
    return this.#lists > 1 || this.#list.length - this.#lists > this.#limit;
  }

  #clearList(): void {
    this.#list.clear();
    this.#lists = this.#inLists = 0;
  }

  #mergeAll(): void {
    const merged = new Map<string, Merged<T>>();
    for (const waiting of this.#list) {
      if (waiting instanceof ListCursor) this.#mergeList(merged, waiting);
      else this.#merge(merged, waiting);
    }
    this.#clearList();
    this.#merged = merged;
    this.#next = merged.entries();
  }

  #shiftMerged(merged: Map<string, Merged<T>>): Notification<T> | undefined {
    const { done, value } = this.#next!.next();
    if (done) {
      this.#merged = undefined;
      this.#next = undefined;
      return undefined;
    }
    const [key, entry] = value;
    merged.delete(key);
    if (merged.size === 0) {
      this.#merged = undefined;
      this.#next = undefined;
    }
    if (entry.deleted !== undefined) return { type: "delete", deleted: entry.deleted, oldObject: entry.seen };
    const object = entry.object as T;
    if (entry.seen !== undefined) return { type: "update", oldObject: entry.seen, object };
    return { type: "add", object, isInInitialList: entry.isInInitialList };
  }

  #mergeList(merged: Map<string, Merged<T>>, cursor: ListCursor<T>): void {
    for (let next = cursor.shift(); next !== undefined; next = cursor.shift()) this.#merge(merged, next);
  }

  #merge(merged: Map<string, Merged<T>>, notification: Notification<T>): void {
    const key = notification.type === "delete"
      ? notification.deleted.key
      : keyOf(this.#keyFunc, notification.object, "notify of");
    const entry = merged.get(key);
    if (entry === undefined) {
      merged.set(key, first(notification));
      return;
    }
    if (notification.type === "delete") {
      if (!entry.isKnown) {
        // The handler never saw it: there is nothing to tell.
        if (entry.isInInitialList) this.#callbacks.onInitialMerged();
        merged.delete(key);
        return;
      }
      entry.deleted = deletedOf(notification.deleted, entry.seen);
      entry.object = undefined;
      return;
    }
    if (isInitial(notification)) this.#callbacks.onInitialMerged();
    entry.deleted = undefined;
    entry.object = notification.object;
  }
}

/** A delete of the object that the handler saw: if another of its name came and went meanwhile, of its last known state. */
function deletedOf<T>(deleted: DeletedObject<T>, seen: T | undefined): DeletedObject<T> {
  if (seen === undefined) return deleted;
  if (!deleted.finalStateUnknown && metaOf(deleted.object)?.uid === metaOf(seen)?.uid) return deleted;
  return new DeletedFinalStateUnknown(deleted.key, seen);
}

function isInitial(notification: Notification<unknown>): boolean {
  return notification.type === "add" && notification.isInInitialList;
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
      const seen = oldObject ?? deleted.object;
      return { isKnown: true, seen, isInInitialList: false, object: undefined, deleted };
    }
  }
}
