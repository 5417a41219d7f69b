/**
 * From what a server sends into the store.
 * @module
 */

import { deletionHandlingMetaNamespaceKey, type KeyFunc } from "../meta/keys.ts";
import type { Quarantined } from "../meta/list_watch.ts";
import { metaOf } from "../meta/object.ts";
import type { ReflectorStore } from "../queue/queue.ts";
import { errorMessage } from "../util/errors.ts";
import { type DataEvent, eventProblem } from "./events.ts";
import type { Position } from "./position.ts";
import type { ReflectorMetrics } from "./reflector_metrics.ts";
import type { ReflectorOptions } from "./reflector_options.ts";
import type { ReflectorReports } from "./reflector_reports.ts";
import type { StatusKeeper } from "./status.ts";

/** What a {@linkcode StoreWriter} needs. */
export interface StoreWriterOptions
  extends Pick<ReflectorOptions, "expectedKind" | "keyFunc" | "knownObjects"> {
  readonly position: Position;
  readonly status: StatusKeeper;
  readonly metrics: ReflectorMetrics;
  readonly reports: ReflectorReports;
  /** A change on the watch could not be applied: everything must be listed again. */
  readonly onLost: () => void;
}

/**
 * Writes lists and events to a store, in order; the position moves after the write, never before.
 *
 * What cannot be applied (no metadata, another kind, a store that throws) is set aside, counted and reported; the rest
 * goes on. A list leaves the state of such an object that is known; a change that was set aside is lost, unless it was
 * a delete, which needs no more than the key.
 */
export class StoreWriter<T> {
  readonly #store: ReflectorStore<T>;
  readonly #options: StoreWriterOptions;
  readonly #keyFunc: KeyFunc;
  /** The keys of what was set aside since the last list. */
  #refused = new Set<string>();

  constructor(store: ReflectorStore<T>, options: StoreWriterOptions) {
    this.#store = store;
    this.#options = options;
    this.#keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
  }

  /**
   * Writes a whole list; of what was set aside, the state that is known stays.
   *
   * @throws What the store throws, in the words of client-go.
   */
  replace(items: T[], setAside: readonly Quarantined[], resourceVersion: string): void {
    const known = this.#knownInstead(items, setAside);
    try {
      this.#store.replace(known.length === 0 ? items : items.concat(known), resourceVersion);
    } catch (error) {
      throw new Error(`unable to sync list result: ${errorMessage(error)}`, { cause: error });
    }
  }

  /** What is known of objects that were set aside; of each key once, and of none that the list has in another state. */
  #knownInstead(items: readonly T[], setAside: readonly Quarantined[]): T[] {
    const refused = this.#refused = new Set<string>();
    for (const { key } of setAside) if (key !== undefined) refused.add(key);
    if (refused.size === 0) return []; // the ordinary case
    for (const item of items) {
      const key = this.#keyOf(item);
      if (key !== undefined) refused.delete(key);
    }
    const known: T[] = [];
    for (const key of refused) {
      const object = this.#options.knownObjects?.getByKey(key);
      if (object !== undefined) known.push(object as T);
    }
    return known;
  }

  /** Writes one event; false if it was set aside before it reached the store. */
  apply(event: DataEvent<T>): boolean {
    const problem = eventProblem(event, this.#options.expectedKind);
    if (problem !== undefined) {
      this.refuse({ reason: problem, path: "", eventType: event.type });
      return false;
    }
    try {
      this.#write(event);
    } catch (error) {
      const resourceVersion = metaOf(event.object)?.resourceVersion;
      const key = this.#keyOf(event.object);
      this.refuse({
        reason: errorMessage(error),
        path: "",
        eventType: event.type,
        ...(key === undefined ? {} : { key }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      });
    }
    this.#options.metrics.eventApplied(event.type);
    this.#options.position.passed(event);
    return true;
  }

  /** An event cannot be accepted. A delete needs no more than its key; any other change is lost. */
  refuse(quarantined: Quarantined): void {
    const { eventType, key, resourceVersion } = quarantined;
    this.quarantine(quarantined);
    if (eventType !== "DELETED" || !this.#deletesKey(key, resourceVersion)) this.#options.onLost();
  }

  /** Counts and reports what could not be accepted. */
  quarantine(quarantined: Quarantined): void {
    const { status, metrics, reports } = this.#options;
    status.quarantined++;
    metrics.quarantined();
    if (quarantined.key !== undefined) this.#refused.add(quarantined.key);
    reports.quarantined(quarantined);
  }

  #write(event: DataEvent<T>): void {
    const { position, status, reports, onLost } = this.#options;
    switch (event.type) {
      case "ADDED":
        this.#store.add(event.object);
        this.#accepted(event.object);
        break;
      case "MODIFIED":
        this.#store.update(event.object);
        this.#accepted(event.object);
        break;
      case "DELETED":
        if (!this.#deletesRefused(event.object)) this.#store.delete(event.object);
        break;
      case "BOOKMARK": {
        const { resourceVersion = "" } = event.object.metadata;
        status.bookmarkArrived();
        // Of a new history nothing would be known but what changes from now on.
        if (position.bookmarked(resourceVersion)) onLost();
        this.#store.bookmark?.(resourceVersion);
        break;
      }
      default:
        reports.log("warn", `unknown event type ${JSON.stringify((event as { type: unknown }).type)}`);
    }
  }

  /** A later state of what was refused reached the store: its delete will be like any other. */
  #accepted(object: T): void {
    if (this.#refused.size === 0) return; // the ordinary case
    const key = this.#keyOf(object);
    const isRepeated = this.#options.position.isRepeated(metaOf(object)?.resourceVersion);
    if (key !== undefined && !isRepeated) this.#refused.delete(key);
  }

  /** Deletes what was refused before by its key, as it may never have reached the store; false if it was not. */
  #deletesRefused(object: T): boolean {
    if (this.#refused.size === 0) return false; // the ordinary case
    const key = this.#keyOf(object);
    return key !== undefined && this.#refused.has(key) &&
      this.#deletesKey(key, metaOf(object)?.resourceVersion);
  }

  #deletesKey(key: string | undefined, resourceVersion: string | undefined): boolean {
    const { position } = this.#options;
    if (key === undefined || this.#store.deleteKey === undefined) return false;
    // What a key alone says cannot be told from a delete that was sent again: the object may be there again.
    if (position.isRepeated(resourceVersion)) return false;
    this.#store.deleteKey(key);
    if (resourceVersion) {
      this.#store.bookmark?.(resourceVersion);
      position.reached(resourceVersion);
    }
    this.#refused.delete(key);
    return true;
  }

  #keyOf(object: unknown): string | undefined {
    try {
      return this.#keyFunc(object);
    } catch {
      return undefined;
    }
  }
}
