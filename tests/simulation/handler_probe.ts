/**
 * A handler of the program under test, and the invariants of the notifications it receives.
 * @module
 */

import type { DeletedObject, HandlerRegistration, ResourceEventHandler } from "@listwatch/cache";
import { keyOfObject, type SimObject, stateOf } from "./cluster_model.ts";
import type { SeededRandom } from "./seeded_random.ts";
import { isSameValue } from "./views.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** What a handler is like. */
export interface HandlerConfig {
  readonly manner: "quick" | "slow" | "async" | "throwing" | "rejecting";
  /** How long a slow one takes, in milliseconds. */
  readonly delayMs: number;
  /** How many notifications may wait for it before they are merged. */
  readonly mailboxLimit: number | undefined;
  /** The handler's own resync period. */
  readonly resyncPeriodMs: number;
  readonly reads: "everything" | "metadata";
}

/** What a probe needs to know. */
export interface HandlerProbeOptions {
  readonly name: string;
  readonly config: HandlerConfig;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly violate: (text: string) => void;
  /** Whether the server was restored: versions may decrease, and deletes may come without an add. */
  readonly wasRestored: () => boolean;
  /** Whether this very state of an object was ever in the store. */
  readonly wasStored: (object: SimObject) => boolean;
  /** Whether a state of this object was refused: then its delete ends what was stored under its name. */
  readonly wasRefused: (object: SimObject) => boolean;
}

/**
 * Folds its notifications, and checks each step: an add, then updates from the state before, then a delete.
 */
export class HandlerProbe implements ResourceEventHandler<SimObject> {
  readonly #options: HandlerProbeOptions;
  readonly #violate: (text: string) => void;
  readonly #known = new Map<string, SimObject>();
  readonly #resyncs = new Map<string, number>();
  #busy = false;
  #removed = false;
  #synced = false;
  /** The handler's registration, while it is registered. */
  registration: HandlerRegistration | undefined;

  constructor(options: HandlerProbeOptions) {
    this.#options = options;
    this.#violate = (text) => options.violate(`${options.name}: ${text}`);
  }

  /** The handler's name. */
  get name(): string {
    return this.#options.name;
  }

  /** The objects that its notifications add up to. */
  get known(): ReadonlyMap<string, SimObject> {
    return this.#known;
  }

  /** The handler's configuration. */
  get config(): HandlerConfig {
    return this.#options.config;
  }

  /** How often it received an unchanged state, by key, since this was cleared. */
  get resyncs(): Map<string, number> {
    return this.#resyncs;
  }

  /** The handler was removed: from now on it must not be called. */
  removed(): void {
    this.#removed = true;
    this.registration = undefined;
  }

  onAdd(object: SimObject, isInInitialList: boolean): void | Promise<void> {
    const key = this.#enter("add", object);
    const known = this.#known.get(key);
    if (known !== undefined) {
      this.#violate(`add of ${key} ${stateOf(object)}, which it knows as ${stateOf(known)}`);
    }
    if (isInInitialList && this.#synced) {
      this.#violate(`add of ${key} "in the initial list", after it had synced`);
    }
    this.#known.set(key, object);
    return this.#leave();
  }

  onUpdate(oldObject: SimObject, newObject: SimObject): void | Promise<void> {
    const key = this.#enter("update", newObject);
    const known = this.#known.get(key);
    if (known === undefined) {
      this.#violate(`update of ${key} to ${stateOf(newObject)}, which it does not know`);
    } else if (known !== oldObject && stateOf(known) !== stateOf(oldObject)) {
      this.#violate(`update of ${key} from ${stateOf(oldObject)}, which it knows as ${stateOf(known)}`);
    }
    const isBack = Number(newObject.metadata.resourceVersion) < Number(oldObject.metadata.resourceVersion);
    if (isBack && !this.#options.wasRestored()) {
      this.#violate(`update of ${key} back from ${stateOf(oldObject)} to ${stateOf(newObject)}`);
    }
    if (stateOf(oldObject) === stateOf(newObject)) {
      this.#resyncs.set(key, (this.#resyncs.get(key) ?? 0) + 1);
    }
    this.#known.set(key, newObject);
    return this.#leave();
  }

  onDelete(deleted: DeletedObject<SimObject>): void | Promise<void> {
    const { key, object } = deleted;
    this.#enter("delete", undefined);
    const known = this.#known.get(key);
    if (this.#options.wasRestored()) {
      // Events that were withheld are unknown: a delete may come without an add.
    } else if (known === undefined) {
      this.#violate(`delete of ${key}, which it does not know`);
    } else if (
      object !== undefined && object.metadata.uid !== known.metadata.uid && !this.#options.wasRefused(object)
    ) {
      this.#violate(`delete of ${key} ${stateOf(object)}, which it knows as ${stateOf(known)}`);
    } else if (deleted.finalStateUnknown && object !== undefined && stateOf(object) !== stateOf(known)) {
      this.#violate(`tombstone of ${key} with ${stateOf(object)}, which it knows as ${stateOf(known)}`);
    }
    this.#known.delete(key);
    return this.#leave();
  }

  #enter(what: string, object: SimObject | undefined): string {
    if (this.#busy) this.#violate(`${what} while another call is running`);
    if (this.#removed) this.#violate(`${what} after it was removed`);
    this.#busy = true;
    this.#synced ||= this.registration?.hasSynced() ?? false;
    if (object === undefined) return "";
    // What is parsed when it is read must be what was stored, even if another handler has read it before.
    if (this.config.reads === "everything") void JSON.stringify(object);
    if (!this.#options.wasStored(object)) {
      this.#violate(`${what} of ${stateOf(object)}, which was never stored`);
    }
    return keyOfObject(object);
  }

  #leave(): void | Promise<void> {
    const { config, random, time } = this.#options;
    switch (config.manner) {
      case "quick":
        this.#busy = false;
        return;
      case "throwing":
        this.#busy = false;
        if (random.chance(0.2)) throw new Error("a handler that throws");
        return;
      case "rejecting": {
        const fails = random.chance(0.2);
        return Promise.resolve().then(() => {
          this.#busy = false;
          if (fails) throw new Error("a handler that rejects");
        });
      }
      case "async":
        return Promise.resolve().then(() => {
          this.#busy = false;
        });
      case "slow":
        return new Promise((resolve) => {
          time.schedule(() => {
            this.#busy = false;
            resolve();
          }, config.delayMs);
        });
    }
  }
}

/** How what a handler knows differs from a store; `undefined` if it does not. */
export function differenceOf(
  store: ReadonlyMap<string, SimObject>,
  known: ReadonlyMap<string, SimObject>,
): string | undefined {
  for (const [key, object] of store) {
    const one = known.get(key);
    if (one === object) continue;
    if (stateOf(one) !== stateOf(object)) {
      return `it knows ${key} as ${stateOf(one)}, the store has ${stateOf(object)}`;
    }
    const isSame = "key" in one! ? headOf(one) === headOf(object) : isSameValue(one, object);
    if (!isSame) return `it knows ${key} as ${JSON.stringify(one)}, the store has ${JSON.stringify(object)}`;
  }
  for (const key of known.keys()) if (!store.has(key)) return `it knows ${key}, which the store lacks`;
  return undefined;
}

/** What a head has of an object. */
export function headOf(object: SimObject): string {
  const { labels = {}, name, namespace } = object.metadata;
  return `${stateOf(object)} ${namespace}/${name} ${Object.entries(labels).sort().join()}`;
}
