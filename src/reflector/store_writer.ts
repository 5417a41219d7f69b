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
import type { Store } from "../store/store.ts";
import type { Quarantine } from "./quarantine.ts";
import type { ReflectorReports } from "./reflector_reports.ts";
import type { ReflectorWiring } from "./reflector_wiring.ts";
import type { StatusKeeper } from "./status.ts";

/** What a {@linkcode StoreWriter} needs. */
export interface StoreWriterOptions
  extends Pick<ReflectorOptions, "expectedKind" | "keyFunc">, Pick<ReflectorWiring, "knownObjects"> {
  readonly position: Position;
  readonly status: StatusKeeper;
  readonly metrics: ReflectorMetrics;
  readonly reports: ReflectorReports;
  readonly quarantine: Quarantine;
}

/**
 * Writes lists and events to a store, in order; the position moves after the write, never before.
 *
 * What cannot be applied (no metadata, another kind, a store that throws) is quarantined; the rest is written. A list
 * leaves the state of such an object that is known; a quarantined change is lost, unless it was a delete, which needs no
 * more than the key.
 */
export class StoreWriter<T> {
  readonly #store: ReflectorStore<T>;
  readonly #options: StoreWriterOptions;
  readonly #keyFunc: KeyFunc;
  readonly #knownObjects: ReflectorWiring["knownObjects"];

  constructor(store: ReflectorStore<T>, options: StoreWriterOptions) {
    this.#store = store;
    this.#options = options;
    this.#keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
    this.#knownObjects = options.knownObjects ?? (isStore(store) ? store : undefined);
  }

  /**
   * Writes a whole list; of quarantined objects, the state that is known stays.
   *
   * @throws What the store throws, in the words of client-go.
   */
  replace(items: T[], quarantined: readonly Quarantined[], resourceVersion: string): void {
    const known = this.#knownInstead(items, quarantined);
    try {
      this.#store.replace(known.length === 0 ? items : items.concat(known), resourceVersion);
    } catch (error) {
      throw new Error(`unable to sync list result: ${errorMessage(error)}`, { cause: error });
    }
  }

  /** What is known of quarantined objects; of each key once, and of none that the list has in another state. */
  #knownInstead(items: readonly T[], quarantined: readonly Quarantined[]): T[] {
    const { quarantine } = this.#options;
    quarantine.startLedger(quarantined);
    if (quarantine.isEmpty) return [];
    for (const item of items) {
      const key = this.#keyOf(item);
      if (key !== undefined) quarantine.release(key);
    }
    const known: T[] = [];
    for (const key of quarantine.keys()) {
      const object = this.#knownObjects?.getByKey(key);
      if (object !== undefined) known.push(object as T);
    }
    return known;
  }

  /** Writes one event; false if it was quarantined before it reached the store. */
  apply(event: DataEvent<T>): boolean {
    const problem = eventProblem(event, this.#options.expectedKind);
    if (problem !== undefined) {
      this.quarantine({ reason: problem, path: "", eventType: event.type });
      return false;
    }
    try {
      this.#write(event);
    } catch (error) {
      const resourceVersion = metaOf(event.object)?.resourceVersion;
      const key = this.#keyOf(event.object);
      this.quarantine({
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
  quarantine(quarantined: Quarantined): void {
    const { quarantine } = this.#options;
    const { eventType, key, resourceVersion } = quarantined;
    quarantine.add(quarantined);
    if (eventType !== "DELETED" || !this.#deletesKey(key, resourceVersion)) quarantine.lost();
  }

  #write(event: DataEvent<T>): void {
    const { position, status, reports, quarantine } = this.#options;
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
        if (!this.#deletesQuarantined(event.object)) this.#store.delete(event.object);
        break;
      case "BOOKMARK": {
        const { resourceVersion = "" } = event.object.metadata;
        status.bookmarkArrived();
        // Of a new history nothing would be known but what changes from now on.
        if (position.bookmarked(resourceVersion)) quarantine.lost();
        this.#store.bookmark?.(resourceVersion);
        break;
      }
      default:
        reports.log("warn", `unknown event type ${JSON.stringify((event as { type: unknown }).type)}`);
    }
  }

  /** A later state of a quarantined object reached the store: its delete will be like any other. */
  #accepted(object: T): void {
    const { quarantine } = this.#options;
    if (quarantine.isEmpty) return;
    const key = this.#keyOf(object);
    const isRepeated = this.#options.position.isRepeated(metaOf(object)?.resourceVersion);
    if (key !== undefined && !isRepeated) quarantine.release(key);
  }

  /** Deletes a quarantined object by its key, as it may never have reached the store; false if it is not one. */
  #deletesQuarantined(object: T): boolean {
    const { quarantine } = this.#options;
    if (quarantine.isEmpty) return false;
    const key = this.#keyOf(object);
    return key !== undefined && quarantine.has(key) &&
      this.#deletesKey(key, metaOf(object)?.resourceVersion);
  }

  #deletesKey(key: string | undefined, resourceVersion: string | undefined): boolean {
    const { position, quarantine } = this.#options;
    if (key === undefined || this.#store.deleteKey === undefined) return false;
    // What a key alone says cannot be told from a delete that was sent again: the object may be there again.
    if (position.isRepeated(resourceVersion)) return false;
    this.#store.deleteKey(key);
    if (resourceVersion) {
      this.#store.bookmark?.(resourceVersion);
      position.reached(resourceVersion);
    }
    quarantine.release(key);
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

/** Whether it holds objects by key; a queue with that method holds what waits for each key. */
function isStore<T>(store: ReflectorStore<T>): store is Store<T> {
  return "getByKey" in store && "lastStoreSyncResourceVersion" in store;
}
