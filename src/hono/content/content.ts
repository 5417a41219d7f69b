/** The content of one resource: what its informer holds, what it held before, and what has happened since. */

import type { KubernetesObject } from "../../meta/object.ts";
import { type Held, heldStoreOf, type Holding } from "../../store/holding.ts";
import { EventLog, type EventLogOptions } from "./event_log.ts";
import { ContentHashes } from "./hashes.ts";
import type { ServedInformer, ServedStore } from "./served_informer.ts";
import { ContentStates } from "./states.ts";

/** The content of one informer. */
export class Content<T extends KubernetesObject> {
  readonly #informer: ServedInformer<T>;
  readonly #held: ServedStore<Held<T>>;

  /** How the store holds its objects; snapshots and entries keep them in that form. */
  readonly holding: Holding<T>;
  /** What has happened. */
  readonly log: EventLog<T>;
  /** What lists read. */
  readonly states: ContentStates<T>;
  /** Shows whether lists are the same. */
  readonly hashes: ContentHashes<T>;

  /** Starts to follow the informer. */
  constructor(informer: ServedInformer<T>, options: EventLogOptions) {
    this.#informer = informer;
    const store = heldStoreOf<T, ServedStore<Held<T>>>(informer.indexer);
    this.holding = store.holding;
    this.#held = store.held;
    this.log = new EventLog(informer, store, options);
    this.states = new ContentStates(this.log, store.held, options.clock);
    this.hashes = new ContentHashes(this.log, this.states);
  }

  /** How many milliseconds ago the informer had the last contact with its server; 0 if it does not say. */
  get ageMs(): number {
    const { lagMs = 0 } = this.#informer.status();
    return Number.isFinite(lagMs) ? lagMs : 0;
  }

  /** The object of a key, as the store holds it. */
  held(key: string): Held<T> | undefined {
    return this.#held.getByKey(key);
  }
}
