/**
 * The notifications that wait for a handler.
 *
 * A few are kept one by one, in order. Beyond the limit they are merged: one entry for each object, at the
 * place of its first notification, with what the handler saw last and what is true now; so are those that
 * follow, until all were taken. So a handler that stalls costs memory for the objects that changed, not for
 * the changes, and sees a history of each object that makes sense.
 *
 * What a list says is one entry, which may pass the limit while it is alone: it has each object once. Changes
 * behind it are merged among themselves, and into what it says of their objects as that is taken. A list that
 * comes while much waits is merged with that, object by object, in steps before it is pushed.
 * @module
 */

import { DeletedFinalStateUnknown, type DeletedObject, type KeyFunc, keyOf, metaOf } from "../meta/object.ts";
import { Deque } from "../util/collections.ts";
import { requireNumbers } from "../util/require_number.ts";
import { finish, type Steps } from "../util/turns.ts";
import type { Notification } from "./events.ts";
import { ListCursor } from "./list_application.ts";

/** How many notifications may wait for a handler, and what happens when more do. */
export interface MailboxOptions {
  /**
   * How many may wait; 1,000 by default. A list may be longer, as long as nothing waits with it; with
   * `remove` also then.
   */
  readonly limit?: number;
  /**
   * What happens when more notifications wait:
   *
   * - `coalesce`, the default: from then on those of one object are merged, so that at most one an object
   *   waits.
   * - `grow`: nothing, as in client-go. A handler that stalls takes memory without end.
   * - `remove`: the handler is removed, with an error in the log: for handlers that need every change or
   *   none.
   */
  readonly onOverflow?: "coalesce" | "grow" | "remove";
}

const DEFAULT_LIMIT = 1_000;

export interface MailboxCallbacks {
  /** An object of the initial list will not be delivered as one: it was merged, or deleted again. */
  onInitialMerged(): void;
  /** The limit was passed, and the handler is to be removed. */
  onRemove(): void;
}

/** The content of a mailbox after a list is pushed. */
interface Prepared<T> {
  readonly cursor: ListCursor<T>;
  /** All that waits, merged with the list. */
  readonly merged: MergedNotifications<T>;
  /** How many objects of the initial list are then merged, and not delivered as such. */
  readonly initialMerged: number;
}

/** The notifications that wait for one handler. */
export class Mailbox<T> {
  readonly #keyFunc: KeyFunc;
  readonly #limit: number;
  readonly #onOverflow: "coalesce" | "grow" | "remove";
  readonly #callbacks: MailboxCallbacks;
  readonly #list = new Deque<Notification<T> | ListCursor<T>>();
  /** How many lists are in `#list`, and how many notifications these hold. */
  #lists = 0;
  #inLists = 0;
  /** The notifications behind `#list`, which is one list then, or empty. */
  #merged: MergedNotifications<T> | undefined;
  #prepared: Prepared<T> | undefined;
  #isPaused = false;

  constructor(options: MailboxOptions, keyFunc: KeyFunc, callbacks: MailboxCallbacks) {
    const { limit = DEFAULT_LIMIT, onOverflow = "coalesce" } = options;
    requireNumbers("make a mailbox", { limit }, { least: 1, mayBeInfinite: true });
    this.#limit = limit;
    this.#onOverflow = onOverflow;
    this.#keyFunc = keyFunc;
    this.#callbacks = callbacks;
  }

  /**
   * How many notifications wait; at least so many while a list is taken, as it is not known which changes
   * behind it concern objects that are still in it.
   */
  get length(): number {
    return Math.max(this.#list.length - this.#lists + this.#inLists, this.#merged?.size ?? 0);
  }

  push(notification: Notification<T>): void {
    this.#prepared = undefined; // that is not all any more
    if (this.#merged !== undefined) {
      this.#merged.push(notification);
      return;
    }
    this.#list.push(notification);
    if (isInitial(notification)) return; // a first list has each object once
    if (this.#onOverflow === "coalesce") {
      if (this.#isTooLong(0)) this.#merge();
    } else this.#removeIfTooMuch();
  }

  /** Whether a list that is pushed is merged with what waits. */
  mergesWith(cursor: ListCursor<T>): boolean {
    if (this.#onOverflow !== "coalesce" || cursor.length === 0 || this.length === 0) return false;
    return this.#merged !== undefined || this.#isTooLong(cursor.length);
  }

  /** Merges a list with what waits, in steps of one object, before it is pushed. */
  *prepareList(cursor: ListCursor<T>): Steps {
    this.#isPaused = true;
    let initialMerged = 0;
    const merged = new MergedNotifications<T>(this.#keyFunc, () => initialMerged++);
    for (const waiting of this.#list) {
      if (waiting instanceof ListCursor) yield* allOf(waiting, merged);
      else merged.push(waiting);
    }
    if (this.#merged !== undefined) yield* merged.pushAll(this.#merged);
    yield* allOf(cursor, merged);
    this.#prepared = { merged, cursor, initialMerged };
  }

  /** Adds all notifications of a list. */
  pushList(cursor: ListCursor<T>): void {
    if (!this.mergesWith(cursor)) {
      if (cursor.length > 0) {
        this.#list.push(cursor);
        this.#lists++;
        this.#inLists += cursor.length;
        this.#removeIfTooMuch();
      }
    } else {
      if (this.#prepared?.cursor !== cursor) finish(this.prepareList(cursor));
      this.#clearList();
      const { merged, initialMerged } = this.#prepared!;
      merged.onInitialMerged = () => this.#callbacks.onInitialMerged();
      for (let i = 0; i < initialMerged; i++) this.#callbacks.onInitialMerged();
      this.#merged = merged;
    }
    this.resume();
  }

  /** Lets notifications be taken out again; drops a list that was prepared and not pushed. */
  resume(): void {
    this.#prepared = undefined;
    this.#isPaused = false;
  }

  shift(): Notification<T> | undefined {
    if (this.#isPaused) return undefined;
    for (let next = this.#shiftList(); next !== undefined; next = this.#shiftList()) {
      if (this.#merged === undefined) return next;
      const merged = this.#merged.mergedInto(next);
      if (merged !== undefined) return merged;
    }
    const next = this.#merged?.shift();
    if (this.#merged?.size === 0) this.#merged = undefined;
    return next;
  }

  clear(): void {
    this.#clearList();
    this.#merged = undefined;
    this.resume();
  }

  #isTooLong(more: number): boolean {
    return this.length + more > this.#limit;
  }

  /** Removes a handler that needs every change if too much waits; a single list is never too much. */
  #removeIfTooMuch(): void {
    if (this.#onOverflow !== "remove" || !this.#isTooLong(0)) return;
    if (this.#lists > 1 || this.#list.length - this.#lists > this.#limit) this.#callbacks.onRemove();
  }

  #shiftList(): Notification<T> | undefined {
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

  #clearList(): void {
    this.#list.clear();
    this.#lists = this.#inLists = 0;
  }

  /** Merges the waiting notifications: all of them, or those behind the one list at the front. */
  #merge(): void {
    const merged = new MergedNotifications<T>(this.#keyFunc, () => this.#callbacks.onInitialMerged());
    const first = this.#list.at(0);
    const kept = first instanceof ListCursor && this.#lists === 1 ? first : undefined;
    for (const waiting of this.#list) {
      if (!(waiting instanceof ListCursor)) merged.push(waiting);
      else if (waiting !== kept) { for (const _ of allOf(waiting, merged)); }
    }
    this.#clearList();
    this.#merged = merged;
    if (kept === undefined) return;
    this.#list.push(kept);
    this.#lists = 1;
    this.#inLists = kept.length;
  }
}

/** Merges in all that is left of a list, which stays as it is. */
function* allOf<T>(cursor: ListCursor<T>, merged: MergedNotifications<T>): Steps {
  const rest = cursor.copy();
  for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
    merged.push(next);
    yield;
  }
}

/** Whether a notification is an add of the initial list. */
export function isInitial(notification: Notification<unknown>): boolean {
  return notification.type === "add" && notification.isInInitialList;
}

/** The merged notifications of one object. */
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
 * One notification for each object, at the place of its first one: from the state that the handler saw last
 * to the present one.
 */
export class MergedNotifications<T> {
  readonly #keyFunc: KeyFunc;
  readonly #entries = new Map<string, Merged<T>>();
  // One iterator for all that comes: a new one would skip over everything that was taken from the front. Who
  // has taken the last one makes new notifications.
  #next: Iterator<[string, Merged<T>]> | undefined;
  /** Called for an object of an initial list that will not be delivered as one. */
  onInitialMerged: () => void;

  constructor(keyFunc: KeyFunc, onInitialMerged: () => void) {
    this.#keyFunc = keyFunc;
    this.onInitialMerged = onInitialMerged;
  }

  get size(): number {
    return this.#entries.size;
  }

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

  shift(): Notification<T> | undefined {
    const { done, value } = (this.#next ??= this.#entries.entries()).next();
    if (done) return undefined;
    const [key, entry] = value;
    this.#entries.delete(key);
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
    this.#entries.delete(key);
    const merged = first(earlier);
    return this.#isNothing(merged, entry) ? undefined : made(merged);
  }

  #merge(key: string, later: Merged<T>): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) this.#entries.set(key, later);
    else if (this.#isNothing(entry, later)) this.#entries.delete(key);
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
      // An object that was never stored was never seen: the next one of its name is new to the handler.
      return { isKnown: true, seen: oldObject, isInInitialList: false, object: undefined, deleted };
    }
  }
}

function made<T>({ deleted, seen, object, isInInitialList }: Merged<T>): Notification<T> {
  if (deleted !== undefined) return { type: "delete", deleted, oldObject: seen };
  if (seen !== undefined) return { type: "update", oldObject: seen, object: object as T };
  return { type: "add", object: object as T, isInInitialList };
}
