/**
 * The core of every informer: deltas of a queue, applied to a store and passed on to observers and handlers.
 *
 * Each delta runs through `#apply` in one synchronous turn:
 *
 * 1. An event of one object with an older version than the store has reached is classified
 *    (event_history.ts): it is new, or it was sent again and is skipped. Only the queue that keeps the order
 *    of events has such a history.
 * 2. The store is written.
 * 3. Handlers are notified (their notifications are queued), then observers. So a handler that looks up what
 *    it received finds that state, or a newer one.
 *
 * A list or a resync is applied in short steps (list_application.ts), so that others get a turn between them.
 * An object that cannot be stored (no key, an index function that throws) is quarantined, and the store keeps
 * what it has for the key. If it was a single change, that is lost and a relist is due; if it is deleted
 * before any state of it was stored, handlers receive nothing.
 *
 * Mirrors client-go's `processDeltas`, with differences: a list that brings an object unchanged leaves the
 * stored one in its place, so that references of readers stay good; and events that were sent again are
 * skipped. https://github.com/kubernetes/client-go/blob/master/tools/cache/controller.go
 *
 * @module
 */

import {
  DeletedFinalStateUnknown,
  isComparableResourceVersion,
  isOlder,
  isSameState,
  type KeyFunc,
  keyOf,
  layoutOf,
  resourceVersionOf,
} from "../meta/object.ts";
import type { VersionWaiters } from "../meta/version_waiters.ts";
import type { BookmarkInfo, Delta, Deltas } from "../queue/queue.ts";
import { type Quarantine, quarantinedBy } from "../reflector/quarantine.ts";
import type { HeldStore } from "../store/cache.ts";
import type { OnTransformFailure } from "../store/transform.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import { type Listeners, toError } from "../util/errors.ts";
import type { Metrics } from "../util/metrics.ts";
import { finish, type Steps } from "../util/turns.ts";
import { type Change, EventHistory, type Standing } from "./event_history.ts";
import { ListApplication, type ListApplicationOptions } from "./list_application.ts";
import type { StoreEvent } from "./events.ts";

export interface DeltaApplierOptions<T> extends ListApplicationOptions<T> {
  /**
   * For a queue that keeps the order of events: those with older versions are classified; all are new by
   * default. Called once, when it turns out that the server's versions do not ascend.
   */
  readonly onUnordered?: (() => void) | undefined;
  /** The calls that wait until the store reaches a version. */
  readonly waiters?: VersionWaiters;
  /** Receives measurements; there are none by default. */
  readonly measurement?: ApplierMeasurement | undefined;
}

export interface ApplierMeasurement {
  readonly metrics: Metrics;
  /** The informer's name, a label. */
  readonly name: string;
  readonly clock: Clock;
}

/** Applies deltas to a store, oldest first, and passes them on. See the module's description. */
export class DeltaApplier<T> {
  readonly #options: DeltaApplierOptions<T>;
  readonly #store: HeldStore<T>["held"];
  readonly #holding: HeldStore<T>["holding"];
  readonly #receiver: DeltaApplierOptions<T>["receiver"];
  readonly #observers: Listeners<StoreEvent<T>>;
  readonly #history: EventHistory<T> | undefined;
  readonly #lists: ListApplication<T>;
  readonly #measurement: ApplierMeasurement | undefined;
  readonly #quarantine: Quarantine;
  /** The last changes that were applied, a ring. A proxy that repeats events does so soon. */
  readonly #applied: Change<T>[] = [];
  #appliedCount = 0;
  /**
   * Whether versions say what is new: after a list at no particular version, the present objects come in any
   * order.
   */
  #hasPosition = false;
  /** The layout of the last list or bookmark: `""` unless it had a merged resourceVersion. */
  #layout = "";
  /** Whether the store is between two merged versions: the next bookmark says where the last changes lead. */
  isWithinStep = false;
  /** The version of the last list or event that was applied, or of the end of the gap behind it. */
  #newest = "";

  constructor(options: DeltaApplierOptions<T>) {
    const { store, receiver, onUnordered, observers, measurement } = options;
    this.#options = options;
    this.#store = store.held;
    this.#holding = store.holding;
    this.#quarantine = options.quarantine;
    this.#receiver = receiver;
    this.#observers = observers;
    this.#measurement = measurement;
    this.#history = onUnordered && new EventHistory<T>(store.holding, this.#applied, onUnordered);
    this.#lists = new ListApplication<T>(options, this.#history);
  }

  /** Applies deltas of the queue, in this turn. */
  readonly apply = (deltas: Deltas<T>, isInInitialList: boolean): void => {
    const startMs = this.#begins();
    for (const delta of deltas) {
      try {
        this.#apply(delta, isInInitialList);
      } catch (error) {
        this.#failed(error, delta);
      }
    }
    this.#ends(startMs);
  };

  /** Applies a list or a resync, in steps. */
  *applyList(
    delta: Extract<Delta<T>, { type: "ReplacedAll" | "SyncAll" }>,
    isInInitialList: boolean,
  ): Steps {
    const startMs = this.#begins();
    try {
      yield* this.#listSteps(delta, isInInitialList);
    } catch (error) {
      this.#failed(error, delta);
    }
    this.#ends(startMs);
  }

  #failed(error: unknown, { type, object }: Delta<T>): void {
    this.#receiver.dropPrepared();
    this.#quarantine.add(quarantinedBy(toError(error), object));
    if (type !== "Replaced" && type !== "Sync") this.#quarantine.lost();
  }

  #apply(delta: Delta<T>, isInInitialList: boolean): void {
    switch (delta.type) {
      case "Added":
      case "Updated": {
        const standing = this.#history === undefined ? "next" : this.#standingOf(this.#history, delta);
        if (standing === "next" || standing === "late") {
          return this.#write(delta, isInInitialList, standing === "late");
        }
        return standing === "resent" ? this.#resent(delta.object) : this.#skipped(delta.type, standing);
      }
      case "Replaced":
      case "Sync":
        return this.#write(delta, isInInitialList, false);
      case "Deleted":
        return this.#delete(delta.object, delta.resourceVersion);
      case "Bookmark":
        return this.#bookmark(delta.object);
      case "ReplacedAll":
      case "SyncAll":
        return finish(this.#listSteps(delta, isInInitialList));
    }
  }

  *#listSteps(
    delta: Extract<Delta<T>, { type: "ReplacedAll" | "SyncAll" }>,
    isInInitialList: boolean,
  ): Steps {
    if (delta.type === "SyncAll") return yield* this.#lists.resyncSteps();
    const { resourceVersion } = delta.object;
    this.#hasPosition = resourceVersion !== "" && resourceVersion !== "0";
    this.#layout = layoutOf(resourceVersion);
    this.isWithinStep = false;
    this.#newest = resourceVersion;
    try {
      yield* this.#lists.replaceSteps(delta.object, isInInitialList);
    } finally {
      this.#holding.listStored();
    }
  }

  /** Puts an object in; `isLate`: the store's version stays, as it is past the object's. */
  #write(
    { type, object }: Extract<Delta<T>, { type: "Added" | "Updated" | "Replaced" | "Sync" }>,
    isInInitialList: boolean,
    isLate: boolean,
  ): void {
    const store = this.#store;
    const key = this.#keyOf(object, "update");
    const reached = this.#reachedBeside(object, isLate);
    // A queue that keeps the order has held forms already.
    const held = this.#history === undefined ? this.#holding.hold(object, key) : object;
    let oldObject: T | undefined;
    try {
      oldObject = store.update(key, held);
    } catch (error) {
      // An index function may refuse the stored object now: a resync of it reaches the handlers nevertheless.
      oldObject = store.get(key);
      if (!oldObject || type !== "Sync") throw error;
    }
    if (reached !== undefined) store.bookmark(reached);
    if (oldObject === undefined) {
      this.#receiver.distribute({ type: "add", object, isInInitialList }, false);
      if (this.#observers.size > 0) this.#observers.call({ type: "added", key, object });
      return;
    }
    const isUnchanged = isSameState(this.#holding, oldObject, object);
    if (!isUnchanged || type === "Sync" || !this.#options.skipsUnchanged) {
      this.#receiver.distribute({ type: "update", oldObject, object }, isUnchanged);
    }
    if (this.#observers.size > 0 && type !== "Sync") {
      this.#observers.call({ type: "updated", key, object, oldObject });
    }
  }

  /** The stored state was sent again: handlers receive it as in client-go, and the store stays as it is. */
  #resent(object: T): void {
    if (this.#options.skipsUnchanged) return;
    const stored = this.#store.get(this.#keyOf(object, "update"));
    if (stored === undefined) return;
    this.#receiver.distribute({ type: "update", oldObject: stored, object: stored }, true);
  }

  /**
   * The store's version, if it stays where it is with a change: it is past the object's, or is a merged one,
   * of which the object's says nothing. `undefined` if it becomes the object's.
   */
  #reachedBeside(object: T, isLate: boolean): string | undefined {
    if (!isLate && this.#layout === "") return undefined; // the ordinary case
    const isUnplaced = this.#layout !== "" && layoutOf(resourceVersionOf(object) ?? "") !== this.#layout;
    if (isUnplaced) this.isWithinStep = true;
    return isLate || isUnplaced ? this.#store.lastStoreSyncResourceVersion() : undefined;
  }

  #delete(deleted: T | DeletedFinalStateUnknown<T>, resourceVersion: string | undefined): void {
    if (deleted instanceof DeletedFinalStateUnknown) return this.#deleteTombstone(deleted, resourceVersion);
    const standing = this.#history === undefined
      ? "next"
      : this.#standingOf(this.#history, { type: "Deleted", object: deleted });
    if (standing === "seen" || standing === "doubtful") return this.#skipped("Deleted", standing);
    const store = this.#store;
    const key = this.#keyOf(deleted, "delete");
    const reached = this.#reachedBeside(deleted, standing === "late");
    const oldObject = store.deleteWithObject(key, deleted);
    if (reached !== undefined) store.bookmark(reached);
    if (oldObject === undefined && this.#quarantine.explains(key, resourceVersionOf(deleted))) {
      // Nothing was deleted after all, but the store has reached a later version.
      const resourceVersion = resourceVersionOf(deleted);
      if (resourceVersion) this.#observers.call({ type: "bookmark", resourceVersion });
      return;
    }
    this.#receiver.distribute({
      type: "delete",
      deleted: { finalStateUnknown: false, key, object: deleted },
      oldObject,
    }, false);
    if (this.#observers.size > 0) this.#observers.call({ type: "deleted", key, object: deleted, oldObject });
  }

  #deleteTombstone(deleted: DeletedFinalStateUnknown<T>, resourceVersion: string | undefined): void {
    this.#hasPosition = true;
    const oldObject = this.#store.deleteWithObject(deleted.key, deleted);
    if (resourceVersion && isOlder(this.#store.lastStoreSyncResourceVersion(), resourceVersion)) {
      this.#store.bookmark(resourceVersion);
    }
    const { key, object = oldObject } = deleted;
    this.#quarantine.release(key, resourceVersion);
    if (object === undefined) return; // it was never stored
    const tombstone = deleted.object === undefined ? new DeletedFinalStateUnknown(key, object) : deleted;
    this.#receiver.distribute({ type: "delete", deleted: tombstone, oldObject }, false);
    this.#observers.call({
      type: "deleted",
      key,
      object,
      oldObject,
      ...(resourceVersion && { resourceVersion }),
    });
  }

  #bookmark(bookmark: BookmarkInfo): void {
    const { resourceVersion } = bookmark;
    const store = this.#store;
    if (this.#history !== undefined && this.#hasPosition) {
      if (isOlder(resourceVersion, store.lastStoreSyncResourceVersion())) {
        return this.#skipped("Bookmark", "seen");
      }
    }
    this.#hasPosition = true;
    this.#layout = layoutOf(resourceVersion);
    this.isWithinStep = false;
    store.bookmark(resourceVersion);
    this.#observers.call({ type: "bookmark", ...bookmark });
  }

  /** Whether an event is new; if not, what it is. Remembers the new ones. */
  #standingOf(history: EventHistory<T>, change: Change<T>): Standing | "next" {
    if (!this.#hasPosition) {
      this.#hasPosition = change.type !== "Added";
      return "next";
    }
    const reached = this.#store.lastStoreSyncResourceVersion();
    const version = resourceVersionOf(change.object) ?? "";
    // A write gives several objects one version; a delete has one of its own.
    const isAgain = change.type === "Deleted" && version === reached && isComparableResourceVersion(version);
    if (!isAgain && !isOlder(version, reached)) {
      this.#applied[this.#appliedCount++ % REMEMBERED] = change;
      this.#newest = version;
      return "next";
    }
    const key = this.#keyOf(change.object, "update");
    if (isOlder(this.#newest, version)) this.#passed();
    return history.classify(change, key, this.#store.get(key));
  }

  #skipped(type: "Added" | "Updated" | "Deleted" | "Bookmark", standing: "seen" | "doubtful"): void {
    const measurement = this.#measurement;
    measurement?.metrics.count("informer_repeated_events_total", 1, { name: measurement.name, type });
    if (standing === "doubtful") this.#quarantine.lost();
  }

  /**
   * An event that is newer than every change that was applied, but older than the store: a list has proven
   * the store's version before it came, and so it is of an object that came and went in between. The store is
   * right, but an observer of each event lacks one.
   */
  #passed(): void {
    const resourceVersion = this.#newest = this.#store.lastStoreSyncResourceVersion();
    this.#observers.call({ type: "replaced", resourceVersion, changes: [], isGap: true });
  }

  #keyOf(object: T, operation: string): string {
    return keyOf(this.#holding.keyFunc, object, operation);
  }

  #begins(): number {
    return this.#measurement === undefined ? 0 : monotonicNow(this.#measurement.clock);
  }

  #ends(startMs: number): void {
    const { waiters } = this.#options;
    if (waiters !== undefined && waiters.waiting.size > 0) waiters.moved();
    if (this.#measurement === undefined) return;
    const { metrics, name, clock } = this.#measurement;
    const labels = { name };
    metrics.observe(
      "informer_processing_latency_seconds",
      (monotonicNow(clock) - startMs) / 1_000,
      labels,
    );
    metrics.gauge("informer_objects", this.#store.size, labels);
    const version = Number(this.#store.lastStoreSyncResourceVersion().slice(-RESOURCE_VERSION_DIGITS));
    if (Number.isFinite(version)) metrics.gauge("informer_store_resource_version", version, labels);
  }
}

const REMEMBERED = 128;
// A gauge is a double: more digits would not survive.
const RESOURCE_VERSION_DIGITS = 15;

/** Reports objects that a queue could not accept; what the store holds takes their place. */
export function quarantiner<T>(
  keyFunc: KeyFunc,
  store: { getByKey(key: string): T | undefined },
  quarantine: Quarantine,
): OnTransformFailure<T> {
  return (error, object) => {
    let key: string | undefined;
    try {
      key = keyFunc(object);
    } catch {
      // it has none: the report says what is wrong
    }
    quarantine.add({ ...quarantinedBy(error, object), ...(key !== undefined && { key }) });
    return key === undefined ? undefined : store.getByKey(key);
  };
}
