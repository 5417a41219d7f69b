/** gardener's `Informer`. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import type { StoreChange } from "../../informer/events.ts";
import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../../informer/shared_informer_options.ts";
import { callGuarded, errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";

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

const BY_KEY = "compat/gardener";

/**
 * What an {@linkcode Informer} holds, by uid (or another `keyPath`); it is written by the informer only.
 * Objects are shared: read-only.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { Informer } from "@listwatch/cache/compat/gardener";
 * const { store } = new Informer(newCluster({ server: "http://127.0.0.1:8001" }).resource("v1/namespaces"));
 * console.log(store.hasSynced, store.find(["metadata.name", "garden"])); // false undefined
 * ```
 */
export class InformerStore<T extends KubernetesObject> {
  readonly #informer: SharedIndexInformer<T, typeof BY_KEY>;
  readonly #keyPath: string;

  /** As an {@linkcode Informer} makes it. */
  constructor(informer: SharedIndexInformer<T, typeof BY_KEY>, keyPath: string) {
    this.#informer = informer;
    this.#keyPath = keyPath;
  }

  /** Whether it holds the whole first list. */
  get hasSynced(): boolean {
    return this.#informer.hasSynced();
  }

  /**
   * Resolves when it holds the whole first list.
   *
   * @throws {InformerStateError} The informer has stopped before.
   */
  get untilHasSynced(): Promise<void> {
    return this.#informer.synced();
  }

  /** All keys. */
  listKeys(): string[] {
    return this.#informer.indexer.listIndexFuncValues(BY_KEY);
  }

  /** All objects, in a new array. */
  list(): T[] {
    return this.#informer.indexer.list();
  }

  /** The key of an object: its uid. */
  getKey(object: T): string {
    return String(valueAt(object, this.#keyPath) ?? "");
  }

  /** The object of a key; `undefined` if there is none. */
  getByKey(key: string): T | undefined {
    return this.#informer.indexer.byIndex(BY_KEY, key)[0];
  }

  /** What is held of an object. */
  get(object: T): T | undefined {
    return this.getByKey(this.getKey(object));
  }

  /** Whether there is an object of a key. */
  hasByKey(key: string): boolean {
    return this.#informer.indexer.countByIndex(BY_KEY, key) > 0;
  }

  /** Whether an object is held, in any state. */
  has(object: T): boolean {
    return this.hasByKey(this.getKey(object));
  }

  /**
   * The first object that a predicate finds. By key (`["metadata.uid", uid]`), and by namespace and name
   * (`{ metadata: { namespace, name } }`), it is looked up; otherwise objects are tried one by one.
   *
   * @throws {TypeError} It is no predicate.
   */
  find(predicate: Predicate<T>): T | undefined {
    const test = testOf(predicate);
    for (const object of this.#candidates(predicate)) if (test(object)) return object;
    return undefined;
  }

  #candidates(predicate: Predicate<T>): Iterable<T> {
    const { indexer } = this.#informer;
    if (Array.isArray(predicate) && predicate[0] === this.#keyPath) {
      return indexer.byIndex(BY_KEY, String(predicate[1]));
    }
    const [namespace, name] = ["metadata.namespace", "metadata.name"].map((path) => valueAt(predicate, path));
    if (typeof namespace !== "string" || typeof name !== "string") return indexer.values();
    const found = indexer.getByKey(`${namespace}/${name}`);
    return found === undefined ? [] : [found];
  }
}

/**
 * What {@linkcode InformerStore.find} takes: a function; a path (`"spec.paused"`), whose value must be
 * truthy; a path and its value (`["spec.namespace", "garden-shop"]`); or a part of the object
 * (`{ metadata: { name: "web" } }`).
 */
export type Predicate<T> =
  | ((object: T) => unknown)
  | string
  | readonly [path: string, value: unknown]
  | { readonly [member: string]: unknown };

function testOf<T>(predicate: Predicate<T>): (object: T) => unknown {
  if (typeof predicate === "function") return predicate;
  if (typeof predicate === "string") return (object) => valueAt(object, predicate);
  if (typeof predicate !== "object" || predicate === null) {
    const why = `a predicate is a function, a path, [path, value] or a part, not ${String(predicate)}`;
    throw new TypeError(`Cannot find an object: ${why}`);
  }
  if (!Array.isArray(predicate)) return (object) => contains(object, predicate);
  const [path, value] = predicate;
  return (object) => contains(valueAt(object, path), value);
}

/** The value at a path such as `metadata.uid`. */
function valueAt(object: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, name) => memberOf(value, name), object);
}

/** Whether `value` has all that `part` has: of an array each element, in any order. */
function contains(value: unknown, part: unknown): boolean {
  if (typeof part !== "object" || part === null) return Object.is(value, part);
  if (Array.isArray(part)) {
    return Array.isArray(value) && part.every((one) => value.some((other) => contains(other, one)));
  }
  return typeof value === "object" && value !== null &&
    Object.entries(part).every(([name, one]) =>
      Object.hasOwn(value, name) && contains(memberOf(value, name), one)
    );
}

function memberOf(value: unknown, name: string): unknown {
  return (value as { readonly [name: string]: unknown } | null | undefined)?.[name];
}
