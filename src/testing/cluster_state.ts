import type { KubernetesObject, ObjectMeta } from "../meta/object.ts";
import { VersionWaiters } from "../meta/version_waiters.ts";
import { Deque, firstIndex, getOrMake, lowerBound } from "../util/collections.ts";
import { coreEvent, newEvent, newEventChange } from "./event_forms.ts";
import type { ServedResource } from "./served_resources.ts";
import type { ServerSettings } from "./server_settings.ts";

export interface StoredMeta extends ObjectMeta {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly creationTimestamp: string;
}

/** A stored object: immutable, and replaced by every write. */
export interface StoredObject extends KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: StoredMeta;
  readonly [field: string]: unknown;
}

/** A write: the step from the previous revision to `revision`. */
export interface Change {
  /** The id of the resource in whose form the object is stored. */
  readonly storage: string;
  /** `namespace/name`, or `name`. */
  readonly key: string;
  readonly revision: bigint;
  /** The object after the write; `undefined`: it was deleted. */
  readonly object: StoredObject | undefined;
  /** The object before the write; `undefined`: it was created. */
  readonly previous: StoredObject | undefined;
}

export interface Snapshot {
  readonly revision: bigint;
  /** The keys, in the order of the storage: byte by byte, so that `a-1/x` comes before `a/x`. */
  readonly keys: readonly string[];
  get(key: string): StoredObject | undefined;
}

interface Collection {
  readonly objects: Map<string, StoredObject>;
  readonly keys: string[];
}

type Listener = (change: Change) => void;

/**
 * All objects, one revision counter for all of them, and the latest changes. Synchronous; listeners are
 * called within the write, in the order of the writes. Each method takes and returns objects in the form of
 * its resource.
 */
export class ClusterState {
  #revision: bigint;
  #compactedRevision: bigint;
  readonly #historyLimit: number;
  readonly #history = new Deque<Change>();
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly waiters: VersionWaiters;

  constructor(settings: ServerSettings) {
    this.#revision = BigInt(settings.initialResourceVersion);
    this.#compactedRevision = this.#revision;
    this.#historyLimit = settings.historyLimit;
    this.waiters = new VersionWaiters(() => String(this.#revision), settings);
  }

  get revision(): bigint {
    return this.#revision;
  }

  /** The oldest revision whose state is still known. */
  get compactedRevision(): bigint {
    return this.#compactedRevision;
  }

  get(resource: ServedResource, key: string): StoredObject | undefined {
    return inFormOf(resource, this.#collections.get(resource.storage)?.objects.get(key));
  }

  /** Creates or replaces an object; `build` makes it for the resourceVersion of this write. */
  write(
    resource: ServedResource,
    key: string,
    build: (resourceVersion: string) => StoredObject,
  ): StoredObject {
    const revision = this.#revision + 1n;
    const written = build(String(revision));
    const object = isStoredForm(resource) ? written : coreEvent(written);
    const { storage } = resource;
    const { objects, keys } = this.#collection(storage);
    const previous = objects.get(key);
    objects.set(key, object);
    if (previous === undefined) keys.splice(lowerBound(keys, key), 0, key);
    this.#commit({ storage, key, revision, object, previous });
    return inFormOf(resource, object);
  }

  remove({ storage }: ServedResource, key: string): Change | undefined {
    const { objects, keys } = this.#collection(storage);
    const previous = objects.get(key);
    if (previous === undefined) return undefined;
    objects.delete(key);
    keys.splice(lowerBound(keys, key), 1);
    const change = { storage, key, revision: this.#revision + 1n, object: undefined, previous };
    this.#commit(change);
    return change;
  }

  /** The state of a resource, now or at an older revision; `undefined` if that is compacted. */
  snapshot(resource: ServedResource, revision: bigint = this.#revision): Snapshot | undefined {
    if (revision < this.#compactedRevision) return undefined;
    const { objects, keys } = this.#collection(resource.storage);
    const present = (key: string) => inFormOf(resource, objects.get(key));
    const changes = this.changesAfter(resource, revision) ?? [];
    if (changes.length === 0) return { revision, keys, get: present };
    // The first change of a key after the revision has the object of the revision as `previous`.
    const then = new Map<string, StoredObject | undefined>();
    for (const change of changes) if (!then.has(change.key)) then.set(change.key, change.previous);
    const keysThen = keys.filter((key) => !then.has(key));
    for (const [key, object] of then) if (object !== undefined) keysThen.push(key);
    keysThen.sort();
    return { revision, keys: keysThen, get: (key) => then.has(key) ? then.get(key) : present(key) };
  }

  /** The changes of a resource after a revision, oldest first; `undefined` if some are compacted. */
  changesAfter(resource: ServedResource, revision: bigint): Change[] | undefined {
    if (revision < this.#compactedRevision) return undefined;
    const changes: Change[] = [];
    const history = this.#history;
    const first = firstIndex(history.length, (i) => history.at(i)!.revision > revision);
    for (let i = first; i < history.length; i++) {
      const change = history.at(i)!;
      if (change.storage === resource.storage) changes.push(change);
    }
    return isStoredForm(resource) ? changes : changes.map(newEventChange);
  }

  compact(revision: bigint = this.#revision): void {
    const target = revision < this.#revision ? revision : this.#revision;
    while ((this.#history.at(0)?.revision ?? target + 1n) <= target) this.#history.shift();
    if (target > this.#compactedRevision) this.#compactedRevision = target;
  }

  subscribe(resource: ServedResource, listener: Listener): () => void {
    const listeners = getOrMake(this.#listeners, resource.storage, () => new Set());
    const added: Listener = isStoredForm(resource) ? listener : (change) => listener(newEventChange(change));
    listeners.add(added);
    return () => {
      listeners.delete(added);
    };
  }

  #collection(storage: string): Collection {
    return getOrMake(this.#collections, storage, () => ({ objects: new Map(), keys: [] }));
  }

  #commit(change: Change): void {
    this.#revision = change.revision;
    this.#history.push(change);
    while (this.#history.length > this.#historyLimit) {
      this.#compactedRevision = this.#history.shift()!.revision;
    }
    for (const listener of this.#listeners.get(change.storage) ?? []) listener(change);
    this.waiters.moved();
  }
}

function isStoredForm({ id, storage }: ServedResource): boolean {
  return id === storage;
}

function inFormOf<O extends StoredObject | undefined>(resource: ServedResource, object: O): O {
  return isStoredForm(resource) ? object : newEvent(object);
}
