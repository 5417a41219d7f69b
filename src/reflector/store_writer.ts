/** The position of a store, and the code that writes to it: the position moves with each event. */

import { ageMsOf, type Quarantined, type WatchEvent, type WatchItem } from "../meta/list_watch.ts";
import { hasReached } from "../meta/merged_version.ts";
import { isOlder, isTable, type KeyFunc, type KubernetesObject, layoutOf, metaOf } from "../meta/object.ts";
import { groupVersion, type GroupVersionKind } from "../meta/resource.ts";
import type { ReflectorStore } from "../queue/queue.ts";
import type { Store } from "../store/store.ts";
import { before, type Clock, type Moment, momentOf } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { defined } from "../util/json.ts";
import type { Quarantine } from "./quarantine.ts";

/**
 * The position of the store, the last contact with the server, and the events of the present watch. It is the
 * one part of the state that changes in place, as it changes with each event.
 */
export interface Position {
  /** The version of the content: everything up to it was written; `""` before the first list. */
  resourceVersion: string;
  /**
   * The version at which the next watch begins, if a proof by state has moved the content beyond it. Events
   * of objects that were created and deleted in between may still arrive.
   */
  watchedVersion: string;
  /** The version of the last event, where that was older than the position. */
  olderVersion: string | undefined;
  /** The latest version of a quarantined event; the position does not move with it. */
  quarantinedVersion: string;
  /** The version of the last proof, until the watch has come to it. */
  provenVersion: string;
  /** The version of the last list or bookmark, or proven before that: the next bookmark is not before it. */
  completeVersion: string;
  /** Whether ADDED events move the position: a watch from no version begins with events in any order. */
  follows: boolean;
  /** How many events of the present watch reached the store, and how many of its bookmarks. */
  events: number;
  bookmarks: number;
  /** Whether the server has confirmed the content; until then the content of a snapshot has no contact. */
  isConfirmed: boolean;
  /**
   * The last contact with the server: something that shows how far it is, a list, an event or a bookmark, and
   * as old as its last bytes are. A watch that is opened shows nothing: the server may not follow its own
   * storage any more.
   */
  contact: Moment | undefined;
  /** When the last event arrived, and the last bookmark, by the wall clock. */
  lastEventTimeMs: number | undefined;
  lastBookmarkTimeMs: number | undefined;
}

export const NO_POSITION: Readonly<Position> = {
  resourceVersion: "",
  watchedVersion: "",
  olderVersion: undefined,
  quarantinedVersion: "",
  provenVersion: "",
  completeVersion: "",
  follows: false,
  events: 0,
  bookmarks: 0,
  isConfirmed: true,
  contact: undefined,
  lastEventTimeMs: undefined,
  lastBookmarkTimeMs: undefined,
};

/** All of a list was written; objects quarantined before it may be of another history. */
export function listedAt(position: Position, resourceVersion: string, contact: Moment): Position {
  const { lastEventTimeMs, lastBookmarkTimeMs } = position;
  const complete = { resourceVersion, completeVersion: resourceVersion, contact };
  return { ...NO_POSITION, ...complete, lastEventTimeMs, lastBookmarkTimeMs };
}

/** Something came, last at this time, with news of this age. */
export function noteContact(position: Position, moment: Moment, ageMs: number): void {
  if (!position.isConfirmed) return;
  const contact = before(moment, ageMs);
  // The contact of a cache below may be older than the last one that is known.
  const { contact: last } = position;
  if (ageMs === 0 || last === undefined || contact.monotonicMs > last.monotonicMs) position.contact = contact;
}

/** The position at the beginning of a watch; `isFollowing`: after a streamed list, whatever its version. */
export function watchingFrom(position: Position, isFollowing: boolean): Position {
  const { resourceVersion } = position;
  const follows = isFollowing || (resourceVersion !== "" && resourceVersion !== "0");
  return { ...position, follows, events: 0, bookmarks: 0 };
}

/** Whether every change up to this version arrived; quarantined ones did. */
export function hasReceived(position: Position, resourceVersion: string): boolean {
  return hasReached(position.resourceVersion, resourceVersion) ||
    hasReached(position.quarantinedVersion, resourceVersion);
}

/** Everything up to this version was written; an older one leaves the position, unless that goes back. */
export function reach(
  position: Position,
  resourceVersion: string,
  neverGoesBack: boolean,
  isOld: boolean = isOlder(resourceVersion, position.resourceVersion),
): void {
  if (isOld) {
    const { watchedVersion } = position;
    if (watchedVersion !== "" && !isOlder(resourceVersion, watchedVersion)) {
      position.watchedVersion = resourceVersion;
      return;
    }
    if (neverGoesBack) {
      position.olderVersion = resourceVersion;
      return;
    }
  }
  position.resourceVersion = resourceVersion;
  position.watchedVersion = "";
  position.olderVersion = undefined;
}

/** The version at which the next watch begins. */
export function watchVersion({ resourceVersion, watchedVersion }: Position): string {
  return watchedVersion || resourceVersion;
}

/** Whether a bookmark goes back: it was sent again, or the server has started a new history. */
export function goesBack(position: Position, resourceVersion: string): boolean {
  return isOlder(resourceVersion, watchVersion(position)) ||
    isOlder(resourceVersion, position.completeVersion);
}

/** Everything up to this later version was written, although no event says so. */
export function provenAt(
  position: Position,
  resourceVersion: string,
  { neverGoesBack, byState }: { readonly neverGoesBack: boolean; readonly byState: boolean },
): Position {
  if (byState) {
    return {
      ...position,
      resourceVersion,
      watchedVersion: watchVersion(position),
      provenVersion: resourceVersion,
    };
  }
  const next = { ...position, provenVersion: resourceVersion, completeVersion: resourceVersion };
  reach(next, resourceVersion, neverGoesBack);
  return next;
}

interface BatchSource {
  readonly received: Moment | undefined;
  readonly receivedBytes: number;
  expectBookmarks(): void;
}

interface StoreWriterOptions {
  readonly clock: Clock;
  readonly expectedKind?: GroupVersionKind;
  readonly keyFunc: KeyFunc;
  readonly knownObjects?: { getByKey(key: string): unknown };
  readonly neverGoesBack: boolean;
  readonly quarantine: Quarantine;
  /** All that the reflector knows; the writer moves its position. */
  readonly record: { readonly state: { readonly position: Position } };
  readonly measured: { contact(wallMs: number): void; eventApplied(type: string): void } | undefined;
  readonly warn: (text: string) => void;
}

type DataEvent<T> = Exclude<WatchEvent<T>, { type: "ERROR" }>;

/**
 * Writes lists and batches of events to a store, in order. With each event the position moves: after the
 * write, never before.
 *
 * What cannot be applied (no metadata, another kind, a store that throws) is quarantined; the rest is
 * written. A list leaves the last accepted state of such an object; a quarantined change is lost, unless it
 * was a delete, which needs no more than the key. With `neverGoesBack` an event of an older version is
 * written, and leaves the position where it is: the reader of the queue decides what it is.
 */
export class StoreWriter<T> {
  readonly #store: ReflectorStore<T>;
  readonly #options: StoreWriterOptions;
  readonly #knownObjects: StoreWriterOptions["knownObjects"];
  readonly #neverGoesBack: boolean;

  constructor(store: ReflectorStore<T>, options: StoreWriterOptions) {
    this.#store = store;
    this.#options = options;
    this.#knownObjects = options.knownObjects ?? (isStore(store) ? store : undefined);
    this.#neverGoesBack = options.neverGoesBack;
  }

  get #position(): Position {
    return this.#options.record.state.position;
  }

  replace(items: T[], quarantined: readonly Quarantined[], resourceVersion: string): void {
    const keys = this.#quarantinedKeys(items, quarantined);
    try {
      if (keys.length === 0) this.#store.replace(items, resourceVersion);
      else if (this.#store.replaceKeeping) this.#store.replaceKeeping(items, resourceVersion, keys);
      else this.#store.replace(items.concat(this.#known(keys)), resourceVersion);
    } catch (error) {
      throw new Error(`unable to sync list result: ${errorMessage(error)}`, { cause: error });
    }
    this.#options.quarantine.recovered();
  }

  write(batch: readonly WatchItem<T>[], watch: BatchSource): void {
    this.#arrived(oldestNewsOf(batch), watch.received);
    if (batch.length > 1 && this.#isPassed(batch[batch.length - 1])) return this.#options.quarantine.lost();
    for (const item of batch) {
      if (item.type === "QUARANTINED") {
        this.#quarantine(item.quarantined);
        continue;
      }
      if (item.type === "ERROR") this.#options.quarantine.refuse(item.object, watch.receivedBytes);
      if (item.type === "BOOKMARK") {
        watch.expectBookmarks();
        this.#position.bookmarks++;
      }
      this.#apply(item);
    }
  }

  #arrived(ageMs: number, received: Moment | undefined): void {
    const { clock, measured: metrics } = this.#options;
    const now = momentOf(clock);
    const position = this.#position;
    const { contact: last } = position;
    if (ageMs === 0 && position.isConfirmed) position.contact = received ?? now;
    else noteContact(position, received ?? now, ageMs);
    position.lastEventTimeMs = now.wallMs;
    if (metrics && position.contact && position.contact !== last) metrics.contact(position.contact.wallMs);
  }

  /**
   * Whether what comes before a bookmark of a merged resource was passed: a list has proven that the content
   * is that of this version or a later one, while these changes were on their way. Their own versions do not
   * show it. The store is right, but not every change has been seen.
   */
  #isPassed(last: WatchItem<T>): boolean {
    const { resourceVersion: position, provenVersion } = this.#position;
    if (last.type !== "BOOKMARK" || layoutOf(position) === "") return false;
    const { resourceVersion = "" } = last.object.metadata;
    if (hasReached(resourceVersion, provenVersion)) this.#position.provenVersion = "";
    const isPassed = resourceVersion === provenVersion ||
      (resourceVersion !== position && hasReached(position, resourceVersion));
    if (isPassed) reach(this.#position, resourceVersion, this.#neverGoesBack);
    return isPassed;
  }

  /** Writes one event, unless it is quarantined before it reaches the store. */
  #apply(event: DataEvent<T>): void {
    const { expectedKind, measured: metrics } = this.#options;
    const problem = eventProblem(event.object, expectedKind);
    if (problem !== undefined) {
      return this.#quarantine({ reason: problem, path: "", eventType: event.type });
    }
    const resourceVersion = metaOf(event.object)?.resourceVersion;
    const isOld = isOlder(resourceVersion ?? "", this.#position.resourceVersion);
    try {
      this.#write(event, resourceVersion);
    } catch (error) {
      const key = this.#keyOf(event.object);
      const eventType = event.type;
      this.#quarantine(defined({ reason: errorMessage(error), path: "", eventType, key, resourceVersion }));
    }
    metrics?.eventApplied(event.type);
    const position = this.#position;
    position.events++;
    if (event.type !== "ADDED") position.follows = true;
    if (position.follows) reach(position, resourceVersion ?? "", this.#neverGoesBack, isOld);
  }

  #write(event: DataEvent<T>, resourceVersion: string | undefined): void {
    switch (event.type) {
      case "ADDED":
        this.#store.add(event.object);
        this.#accepted(event.object, resourceVersion);
        break;
      case "MODIFIED":
        this.#store.update(event.object);
        this.#accepted(event.object, resourceVersion);
        break;
      case "DELETED":
        if (!this.#deletesQuarantined(event.object, resourceVersion)) this.#store.delete(event.object);
        break;
      case "BOOKMARK":
        this.#bookmark(resourceVersion ?? "");
        break;
      default: {
        const { type } = event as { type: unknown };
        this.#options.warn(`unknown event type ${JSON.stringify(type)}`);
      }
    }
  }

  #bookmark(resourceVersion: string): void {
    const position = this.#position;
    position.lastBookmarkTimeMs = position.lastEventTimeMs;
    const isLoss = goesBack(position, resourceVersion);
    const isBehind = position.watchedVersion !== "" && isOlder(resourceVersion, position.resourceVersion);
    // A proof may have passed one bookmark; the next one is beyond what was proven before this one.
    position.completeVersion = isBehind ? position.resourceVersion : resourceVersion;
    if (isLoss) this.#options.quarantine.lost();
    if (!isBehind) this.#store.bookmark?.(resourceVersion);
  }

  /** Whether an event of this version leaves the position where it is. */
  #goesBack(resourceVersion: string | undefined): boolean {
    return this.#neverGoesBack && resourceVersion !== undefined &&
      isOlder(resourceVersion, this.#position.resourceVersion);
  }

  /** The keys of quarantined objects that the list has in no other state. */
  #quarantinedKeys(items: readonly T[], quarantined: readonly Quarantined[]): readonly string[] {
    const { quarantine } = this.#options;
    quarantine.startLedger(quarantined);
    if (quarantine.keys.size === 0) return [];
    for (const item of items) {
      const key = this.#keyOf(item);
      if (key !== undefined) quarantine.release(key);
    }
    return [...quarantine.keys.keys()];
  }

  #known(keys: readonly string[]): T[] {
    return keys.map((key) => this.#knownObjects?.getByKey(key) as T | undefined).filter((one) =>
      one !== undefined
    );
  }

  /** An event cannot be accepted. A delete needs no more than its key; any other change is lost. */
  #quarantine(quarantined: Quarantined): void {
    const { quarantine } = this.#options;
    const { eventType, key, resourceVersion } = quarantined;
    quarantine.add(quarantined);
    const position = this.#position;
    if (resourceVersion && isOlder(position.resourceVersion, resourceVersion)) {
      position.quarantinedVersion = resourceVersion;
    }
    if (eventType !== "DELETED" || !this.#deletesKey(key, resourceVersion)) quarantine.lost();
  }

  /** A later state of a quarantined object reached the store: its delete will be like any other. */
  #accepted(object: T, resourceVersion: string | undefined): void {
    const { quarantine } = this.#options;
    if (quarantine.keys.size === 0) return;
    const key = this.#keyOf(object);
    if (key !== undefined && !this.#goesBack(resourceVersion)) quarantine.release(key);
  }

  /**
   * Deletes a quarantined object by its key, as it may never have reached the store; false if it is not one.
   */
  #deletesQuarantined(object: T, resourceVersion: string | undefined): boolean {
    const { quarantine } = this.#options;
    if (quarantine.keys.size === 0) return false;
    const key = this.#keyOf(object);
    return key !== undefined && quarantine.keys.has(key) && this.#deletesKey(key, resourceVersion);
  }

  #deletesKey(key: string | undefined, resourceVersion: string | undefined): boolean {
    if (key === undefined || this.#store.deleteKey === undefined) return false;
    // A key alone does not show whether the delete was sent again: the object may be there again.
    if (this.#goesBack(resourceVersion)) return false;
    this.#store.deleteKey(key, resourceVersion);
    if (resourceVersion) {
      this.#store.bookmark?.(resourceVersion);
      reach(this.#position, resourceVersion, this.#neverGoesBack);
    }
    this.#options.quarantine.release(key);
    return true;
  }

  #keyOf(object: unknown): string | undefined {
    try {
      return this.#options.keyFunc(object);
    } catch {
      return undefined;
    }
  }
}

/** Whether a store holds objects by key; a queue with `getByKey` holds deltas by key. */
function isStore<T>(store: ReflectorStore<T>): store is Store<T> {
  return "getByKey" in store && "lastStoreSyncResourceVersion" in store;
}

/** The problem with an event's object, in words; `undefined` if it can be applied. */
export function eventProblem(object: unknown, expected: GroupVersionKind | undefined): string | undefined {
  if (metaOf(object) === undefined) return "it has no metadata";
  const { kind, apiVersion } = object as KubernetesObject;
  if (isTable({ apiVersion, kind })) return "it is a Table: objects were requested";
  if (expected !== undefined && (kind !== expected.kind || apiVersion !== groupVersion(expected))) {
    const got = `${apiVersion || "no apiVersion"} ${kind || "and no kind"}`;
    return `expected ${groupVersion(expected)} ${expected.kind}, got ${got}`;
  }
  return undefined;
}

/**
 * The age of a batch's news: bookmarks of a cache say when it last had contact with its own server. Events
 * are new, unless the resource is merged: they come from one of several servers then.
 */
function oldestNewsOf(batch: readonly WatchItem<unknown>[]): number {
  const last = batch.at(-1);
  if (last?.type !== "BOOKMARK") return 0;
  const isMerged = layoutOf(last.object.metadata.resourceVersion ?? "") !== "";
  return isMerged || batch.every(({ type }) => type === "BOOKMARK") ? ageMsOf(last.object) : 0;
}
