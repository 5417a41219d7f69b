/**
 * A handler that records its notifications, and finds impossible ones.
 * @module
 */

import {
  compareResourceVersions,
  type DeletedObject,
  type KubernetesObject,
  metaNamespaceKey,
  type ResourceEventHandler,
} from "@listwatch/cache";

/** One call of the handler. */
export interface HistoryEvent<T> {
  readonly type: "add" | "update" | "delete" | "tombstone";
  readonly key: string;
  readonly uid: string;
  /** The version of the new state; in a tombstone, of the last known one. */
  readonly resourceVersion: string;
  readonly object: T;
  readonly isInInitialList: boolean;
}

/**
 * Keeps the fold of all events, and checks each one against it: a key is added, then updated any number of
 * times, then deleted; an update's old state is the last one received; versions of a key only grow.
 */
export class History<T extends KubernetesObject> implements ResourceEventHandler<T> {
  readonly events: HistoryEvent<T>[] = [];
  /** The fold of the notifications, by key. */
  readonly objects: Map<string, T> = new Map();
  /** Impossible notifications. */
  readonly faults: string[] = [];
  readonly #lastVersions = new Map<string, string>();
  readonly #ofCache: boolean;

  /**
   * @param options `ofCache`: the events come from a cache. One that lists again knows of a delete
   * only as a fact, and sends the last known version.
   */
  constructor({ ofCache = false }: { readonly ofCache?: boolean } = {}) {
    this.#ofCache = ofCache;
  }

  onAdd(object: T, isInInitialList: boolean): void {
    const key = metaNamespaceKey(object);
    if (this.objects.has(key)) this.#fault(`${key} was added, but was there`);
    this.#expectNewer(key, object);
    this.objects.set(key, object);
    this.#record("add", key, object, isInInitialList);
  }

  onUpdate(oldObject: T, object: T): void {
    const key = metaNamespaceKey(object);
    const known = this.objects.get(key);
    if (known === undefined) this.#fault(`${key} was updated, but was not there`);
    else if (known !== oldObject) {
      this.#fault(`${key} was updated from ${versionOf(oldObject)}, but was at ${versionOf(known)}`);
    }
    // A relist notifies of unchanged objects, too.
    if (versionOf(oldObject) !== versionOf(object)) this.#expectNewer(key, object);
    this.objects.set(key, object);
    this.#record("update", key, object);
  }

  onDelete(deleted: DeletedObject<T>): void {
    const { key } = deleted;
    const known = this.objects.get(key);
    if (known === undefined) this.#fault(`${key} was deleted, but was not there`);
    const object = deleted.object ?? known;
    if (object === undefined) return;
    if (deleted.finalStateUnknown) {
      if (deleted.object !== known) this.#fault(`the tombstone of ${key} does not hold its last known state`);
    } else {
      if (known !== undefined && known.metadata?.uid !== object.metadata?.uid) {
        this.#fault(`${key} was deleted as ${object.metadata?.uid}, but was ${known.metadata?.uid}`);
      }
      if (!this.#ofCache || versionOf(object) !== (known && versionOf(known))) this.#expectNewer(key, object);
    }
    this.objects.delete(key);
    this.#record(deleted.finalStateUnknown ? "tombstone" : "delete", key, object);
  }

  /** The events of each object, in order, without those that repeat a version. */
  byUid(): Map<string, HistoryEvent<T>[]> {
    const result = new Map<string, HistoryEvent<T>[]>();
    for (const event of this.events) {
      const events = result.get(event.uid);
      if (events === undefined) result.set(event.uid, [event]);
      else if (event.type !== "update" || events.at(-1)!.resourceVersion !== event.resourceVersion) {
        events.push(event);
      }
    }
    return result;
  }

  /** How many events there were of a type. */
  count(type: HistoryEvent<T>["type"]): number {
    return this.events.filter((event) => event.type === type).length;
  }

  #record(type: HistoryEvent<T>["type"], key: string, object: T, isInInitialList = false): void {
    const { uid = "", resourceVersion = "" } = object.metadata ?? {};
    this.events.push({ type, key, uid, resourceVersion, object, isInInitialList });
  }

  #expectNewer(key: string, object: T): void {
    const last = this.#lastVersions.get(key);
    const version = object.metadata?.resourceVersion ?? "";
    if (last !== undefined && compareResourceVersions(version, last) <= 0) {
      this.#fault(`${key} went from version ${last} to ${version}`);
    }
    this.#lastVersions.set(key, version);
  }

  #fault(text: string): void {
    // The first ones suffice; a broken run may have thousands.
    if (this.faults.length < 20) this.faults.push(text);
  }
}

function versionOf(object: KubernetesObject): string {
  return `${object.metadata?.uid} at ${object.metadata?.resourceVersion}`;
}
