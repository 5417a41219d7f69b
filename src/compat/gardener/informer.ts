import type { KubernetesObject } from "../../meta/object.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import type { StoreChange } from "../../informer/events.ts";
import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../../informer/shared_informer_options.ts";
import { GuardedEmitter } from "../../node/guarded_emitter.ts";
import { guardedLogger } from "../../util/logger.ts";

/** Options of {@linkcode Informer}: gardener's, and those of a `SharedIndexInformer`. */
export interface GardenerInformerOptions<T>
  extends Omit<SharedIndexInformerOptions<T>, "indexers" | "keyFunc"> {
  /** The path of the store's key. Default: `metadata.uid`. */
  readonly keyPath?: string;
}

/**
 * gardener's informer over this package's, which lists in pages, continues by itself after any failure, and
 * holds one copy for all that read it.
 *
 * It is an event emitter of Node. Listeners are called in the turn in which the change was stored, so that
 * the store shows the state that is reported. If an object was deleted and made again between two lists,
 * listeners receive `delete` and `add`.
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
export class Informer<T extends KubernetesObject = KubernetesObject> extends GuardedEmitter {
  /** The informer beneath, for what gardener's has not: indices, handlers, lag, status. */
  readonly shared: SharedIndexInformer<T, typeof BY_KEY>;
  /** The store of the informer's objects. */
  readonly store: InformerStore<T>;
  readonly #ended = new AbortController();

  /** Makes an informer that does not run yet; gardener's `Informer.create`. */
  constructor(source: ListerWatcher<T>, options: GardenerInformerOptions<T> = {}) {
    super(guardedLogger(options.logger));
    const { keyPath = "metadata.uid", ...others } = options;
    this.shared = new SharedIndexInformer<T, typeof BY_KEY>(source, {
      ...others,
      indexers: { [BY_KEY]: (object: T) => [this.store.getKey(object)] },
    });
    this.store = new InformerStore(this.shared, keyPath);
    this.shared.observe((event) => {
      if (event.type === "bookmark") return;
      for (const change of event.type === "replaced" ? event.changes : [event]) this.#report(change);
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

  /** Calls `listener` for changes from now on; its errors are logged, and the others are called. */
  override on(event: "add" | "delete", listener: (object: T) => unknown): this;
  override on(event: "update", listener: (object: T, oldObject: T) => unknown): this;
  override on(event: string, listener: (...objects: T[]) => unknown): this {
    return super.on(event, listener);
  }

  /** Runs until `signal` or {@linkcode Informer.abort}; once. */
  run(signal?: AbortSignal): void {
    const signals = signal === undefined ? [] : [signal];
    this.shared.start(AbortSignal.any([this.#ended.signal, ...signals]));
  }

  /** Stops it. The stored objects stay readable. */
  abort(): void {
    this.#ended.abort();
  }

  #report(change: StoreChange<T>): void {
    const { type, object } = change;
    if (type === "added") this.emit("add", object);
    else if (type === "deleted") this.emit("delete", object);
    else if (this.store.getKey(change.oldObject) === this.store.getKey(object)) {
      this.emit("update", object, change.oldObject);
    } else {
      this.emit("delete", change.oldObject);
      this.emit("add", object);
    }
  }
}

const BY_KEY = "compat/gardener";

/**
 * The objects of an {@linkcode Informer}, by uid (or another `keyPath`); it is written by the informer only.
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
  readonly #keyNames: readonly string[];

  /** Made by an {@linkcode Informer}. */
  constructor(informer: SharedIndexInformer<T, typeof BY_KEY>, keyPath: string) {
    this.#informer = informer;
    this.#keyPath = keyPath;
    this.#keyNames = namesOf(keyPath);
  }

  /** Whether the store has the whole first list. */
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
    return String(valueAt(object, this.#keyNames) ?? "");
  }

  /** The object of a key; `undefined` if there is none. */
  getByKey(key: string): T | undefined {
    return this.#informer.indexer.byIndex(BY_KEY, key)[0];
  }

  /** The stored state of an object. */
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
   * @throws {TypeError} The argument is no predicate.
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
    const [namespace, name] = ["namespace", "name"].map((name) => valueAt(predicate, ["metadata", name]));
    if (typeof namespace !== "string" || typeof name !== "string") return indexer.values();
    const found = indexer.getByKey(`${namespace}/${name}`);
    return found === undefined ? [] : [found];
  }
}

/**
 * The argument of {@linkcode InformerStore.find}: a function; a path (`"spec.paused"`, `"a[0]['b.c']"`),
 * whose value must be truthy; a path and its value (`["spec.namespace", "garden-shop"]`); or a part of the
 * object (`{ metadata: { name: "web" } }`).
 */
export type Predicate<T> =
  | ((object: T) => unknown)
  | string
  | readonly [path: string | readonly string[], value: unknown]
  | { readonly [member: string]: unknown };

function testOf<T>(predicate: Predicate<T>): (object: T) => unknown {
  if (typeof predicate === "function") return predicate;
  if (typeof predicate === "string") {
    const names = namesOf(predicate);
    return (object) => valueAt(object, names);
  }
  if (typeof predicate !== "object" || predicate === null) {
    const why = `a predicate is a function, a path, [path, value] or a part, not ${String(predicate)}`;
    throw new TypeError(`Cannot find an object: ${why}`);
  }
  if (!Array.isArray(predicate)) return (object) => contains(object, predicate);
  const [path, value] = predicate;
  const names = namesOf(path);
  return (object) => contains(valueAt(object, names), value);
}

/** A step of a path: `name`, `[0]`, `["a.b"]` or `['a.b']`; an empty path has one without a name. */
// deno-lint-ignore listwatch/linear-regex -- paths are part of a program
const STEP = /\["([^"]*)"\]|\['([^']*)'\]|[^.[\]]+|^$/g;

/** The names in a path such as `metadata.labels["app"]`. */
function namesOf(path: string | readonly string[]): readonly string[] {
  if (typeof path !== "string") return path;
  return Array.from(path.matchAll(STEP), ([step, double, single]) => double ?? single ?? step);
}

function valueAt(object: unknown, names: readonly string[]): unknown {
  return names.reduce(memberOf, object);
}

/** Whether `value` has all of `part`: an array must have a different element for each of those in `part`. */
function contains(value: unknown, part: unknown): boolean {
  // Objects of a server have no members that are undefined.
  if (typeof part !== "object" || part === null) return value === part && part !== undefined;
  if (typeof value !== "object" || value === null || Array.isArray(value) !== Array.isArray(part)) {
    return false;
  }
  if (!Array.isArray(part)) {
    return Object.entries(part).every(([name, one]) => contains(memberOf(value, name), one));
  }
  const others = [...value as unknown[]];
  return part.every((one) => {
    const at = others.findIndex((other) => contains(other, one));
    return at >= 0 && others.splice(at, 1).length > 0;
  });
}

function memberOf(value: unknown, name: string): unknown {
  return (value as { readonly [name: string]: unknown } | null | undefined)?.[name];
}
