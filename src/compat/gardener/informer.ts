/** gardener's `Informer`. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import type { StoreChange } from "../../informer/events.ts";
import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../../informer/shared_informer_options.ts";
import { callGuarded, errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";
import { valueAt } from "./predicate.ts";
import { BY_KEY, InformerStore } from "./store.ts";

/** Options of {@linkcode Informer}: gardener's, and those of a `SharedIndexInformer`. */
export interface GardenerInformerOptions<T>
  extends Omit<SharedIndexInformerOptions<T>, "indexers" | "keyFunc"> {
  /** The path of the store's key. Default: `metadata.uid`. */
  readonly keyPath?: string;
}

type Listener<T> = (object: T, oldObject: T) => unknown;

/**
 * gardener's informer over this package's, which lists in pages, continues by itself after any failure, and
 * holds one copy for all that read it.
 *
 * Listeners are called in the turn in which the change was stored, so that the store shows the state that is
 * reported. Where an object was deleted and made again between two lists, they receive `delete` and `add`.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { Informer } from "@listwatch/cache/compat/gardener";
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const projects = new Informer(cluster.resource("core.gardener.cloud/v1beta1/projects"));
 * projects.on("update", (project, old) => console.log(project.metadata?.name, old?.metadata?.resourceVersion));
 * projects.run(AbortSignal.timeout(10_000));
 * await projects.store.untilHasSynced.catch((error) => console.log(error.message));
 * ```
 */
export class Informer<T extends KubernetesObject = KubernetesObject> {
  /** The informer beneath, for what gardener's has not: indices, handlers, lag, status. */
  readonly shared: SharedIndexInformer<T, typeof BY_KEY>;
  /** What it holds. */
  readonly store: InformerStore<T>;
  readonly #ended = new AbortController();
  readonly #listeners: Record<"add" | "update" | "delete", Listener<T>[]> = {
    add: [],
    update: [],
    delete: [],
  };
  readonly #logger: Logger;

  /** Makes an informer that does not run yet; gardener's `Informer.create`. */
  constructor(source: ListerWatcher<T>, options: GardenerInformerOptions<T> = {}) {
    const { keyPath = "metadata.uid", ...others } = options;
    this.shared = new SharedIndexInformer<T, typeof BY_KEY>(source, {
      ...others,
      indexers: { [BY_KEY]: (object: T) => [String(valueAt(object, keyPath) ?? "")] },
    });
    this.store = new InformerStore(this.shared, keyPath);
    this.#logger = guardedLogger(options.logger);
    this.shared.observe((event) => {
      if (event.type === "bookmark") return;
      for (const change of event.type === "replaced" ? event.changes : [event]) this.#emit(change);
    });
  }

  /** Whether the store holds the whole first list. */
  get hasSynced(): boolean {
    return this.shared.hasSynced();
  }

  /** The resourceVersion that the store has reached; `""` before the first list. */
  get lastSyncResourceVersion(): string {
    return this.shared.lastSyncResourceVersion();
  }

  /** Calls `listener` for changes from now on; what it throws is logged, and the others are called. */
  on(event: "add" | "delete", listener: (object: T) => unknown): this;
  on(event: "update", listener: (object: T, oldObject: T) => unknown): this;
  on(event: "add" | "update" | "delete", listener: Listener<T>): this {
    this.#listeners[event].push(listener);
    return this;
  }

  /** Runs until `signal` or {@linkcode Informer.abort}; once. */
  run(signal?: AbortSignal): void {
    const signals = signal === undefined ? [] : [signal];
    this.shared.start(AbortSignal.any([this.#ended.signal, ...signals]));
  }

  /** Stops it. What it holds stays readable. */
  abort(): void {
    this.#ended.abort();
  }

  #emit(change: StoreChange<T>): void {
    const { type, object } = change;
    if (type === "added") return this.#call("add", object);
    if (type === "deleted") return this.#call("delete", object);
    if (this.store.getKey(change.oldObject) === this.store.getKey(object)) {
      return this.#call("update", object, change.oldObject);
    }
    this.#call("delete", change.oldObject);
    this.#call("add", object);
  }

  #call(event: "add" | "update" | "delete", object: T, oldObject = object): void {
    for (const listener of [...this.#listeners[event]]) {
      callGuarded(
        () => listener(object, oldObject),
        (error) =>
          this.#logger.error(`${this.shared.name}: a listener for "${event}" threw: ${errorMessage(error)}`, {
            error,
          }),
      );
    }
  }
}
