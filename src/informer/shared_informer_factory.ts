import type { ListOptions } from "../meta/list_watch.ts";
import type { NamespaceNames } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import {
  formatResource,
  type GroupVersionResource,
  parseResource,
  type ResourceName,
} from "../meta/resource.ts";
import { type ListerWatcher, newListWatch } from "../reflector/lister_watcher.ts";
import type { FailedTry } from "../reflector/failures.ts";
import { metaNamespaceIndex } from "../store/index_func.ts";
import type { TransformFunc } from "../store/transform.ts";
import type { SyncedMethod } from "../util/deferred.ts";
import { CacheSyncError, InformerStateError } from "./errors.ts";
import { type Lister, newLister } from "./lister.ts";
import type { Running } from "./queue_drain.ts";
import type { InformerSnapshot } from "./snapshot/informer_snapshot.ts";
import { SharedIndexInformer } from "./shared_informer.ts";
import type { SharedIndexInformerOptions } from "./shared_informer_options.ts";
import { waitFor } from "./waits.ts";

/** Makes the sources of a {@linkcode SharedInformerFactory}: a `Cluster`, or anything with such a method. */
export interface ResourceSource {
  /** The source of a resource's objects, of one namespace, of a set of them, or of all. */
  resource(
    resource: GroupVersionResource,
    options: { readonly namespace?: string; readonly namespaces?: NamespaceNames },
  ): ListerWatcher<KubernetesObject>;
}

/**
 * Options of every informer of a factory.
 *
 * @category Informers
 */
export type FactoryInformerOptions<T> = Omit<
  SharedIndexInformerOptions<T, "namespace">,
  "name" | "indexers" | "resyncPeriodMs" | "transform" | "keyFunc" | "snapshot"
>;

/**
 * Options of {@linkcode SharedInformerFactory}. All may be left out.
 *
 * @category Informers
 */
export interface SharedInformerFactoryOptions {
  /** Only objects of this namespace; all of them by default. */
  readonly namespace?: string;
  /** Only objects of these namespaces, which may change; in place of `namespace`. */
  readonly namespaces?: NamespaceNames;
  /** Changes the options of every list and watch. */
  readonly tweakListOptions?: (options: ListOptions, resource: GroupVersionResource) => ListOptions;
  /**
   * The resync period of resources that are not in `resyncPeriodsMs`, in milliseconds; 0, the default, is
   * none.
   */
  readonly resyncPeriodMs?: number;
  /** Resync periods by resource, written as `v1/pods`. */
  readonly resyncPeriodsMs?: Readonly<Record<string, number>>;
  /** Runs once on every object of every resource before it is queued, and may change it. */
  readonly transform?: TransformFunc<KubernetesObject>;
  /**
   * Makes the snapshot of each informer, in a place of its own; none by default. See `snapshot` of the
   * informer's options.
   */
  readonly snapshot?: (resource: GroupVersionResource) => InformerSnapshot | undefined;
  /** Further options of every informer. */
  readonly informer?: FactoryInformerOptions<KubernetesObject>;
}

/**
 * A resource of a {@linkcode SharedInformerFactory}. Mirrors client-go's `GenericInformer`.
 *
 * @category Informers
 */
export interface ResourceInformer<T> {
  /** The listed resource. */
  readonly resource: GroupVersionResource;
  /** The informer of the resource, which is indexed by namespace. */
  readonly informer: SharedIndexInformer<T, "namespace">;
  /** The informer's store, read as one reads an API. */
  readonly lister: Lister<T>;
}

/**
 * A resource of a {@linkcode SharedInformerFactory}, for one of its users.
 *
 * @category Informers
 */
export interface UsedInformer<T> extends ResourceInformer<T>, AsyncDisposable {
  /** Ends this use; the last one stops the informer, and resolves when nothing of it runs. */
  release(): Promise<void>;
}

/** An informer of a factory. */
interface Made {
  readonly name: string;
  readonly of: ResourceInformer<KubernetesObject>;
  /** How many users the informer has; `Infinity` if `forResource` has returned it. */
  users: number;
  running: Running | undefined;
  /** The signal given to `start`. */
  signal: AbortSignal | undefined;
}

/**
 * Makes informers, one for each resource, when they are first requested; starts and stops them together. All
 * parts of a program that need pods share one watch and one store.
 *
 * Mirrors client-go's `SharedInformerFactory` and, as objects need no types here, its
 * `DynamicSharedInformerFactory`. It differs in `shutdown`, which stops the informers before it waits for
 * them.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedInformerFactory } from "@listwatch/cache";
 * interface Pod extends KubernetesObject {
 *   spec?: { nodeName?: string };
 * }
 * await using factory = new SharedInformerFactory(newCluster({ server: "http://127.0.0.1:8001" }));
 * const pods = factory.forResource<Pod>("v1/pods");
 * const nodes = factory.forResource("v1/nodes");
 * pods.informer.addEventHandler({ onAdd: (pod) => console.log(pod.metadata?.name, "is on", pod.spec?.nodeName) });
 * factory.start();
 * await factory.synced(AbortSignal.timeout(30_000)).catch((error) => console.log(error.message));
 * console.log(nodes.lister.list("node-role.kubernetes.io/control-plane").length);
 * ```
 *
 * @category Informers
 */
export class SharedInformerFactory implements AsyncDisposable {
  readonly #source: ResourceSource;
  readonly #options: SharedInformerFactoryOptions;
  readonly #informers = new Map<string, Made>();
  /** Informers without users, until nothing of them runs. */
  readonly #stopping = new Set<Made>();
  #isShutDown = false;

  constructor(source: ResourceSource, options: SharedInformerFactoryOptions = {}) {
    this.#source = source;
    this.#options = options;
  }

  /**
   * The informer of a resource: made when it is first requested, the same one from then on. One that was made
   * after {@linkcode SharedInformerFactory.start} runs from the next `start` on.
   *
   * `T` is what the caller knows of the objects; it is not checked. One resource requested with two types is
   * one informer with two views.
   * @param resource `"v1/pods"`, `"apps/v1/deployments"`, or its parts.
   * @throws {TypeError} The resource is no such text.
   * @throws {InformerStateError} The factory was shut down, and the informer is not there.
   */
  forResource<T extends KubernetesObject = KubernetesObject>(
    resource: ResourceName | GroupVersionResource,
  ): ResourceInformer<T> {
    const made = this.#get(resource);
    made.users = Infinity;
    return made.of as unknown as ResourceInformer<T>;
  }

  /**
   * The informer of a resource for one more user. It runs from now on, and is stopped when its last user
   * has released it; the next user gets a new one. One that
   * {@linkcode SharedInformerFactory.forResource} has given out runs until the shutdown.
   *
   * For programs whose resources change: a page that is open, kinds whose definitions come and go. Add
   * handlers with a name, and remove them before the release: other users keep the informer.
   * @throws {TypeError} The resource is no such text.
   * @throws {InformerStateError} The factory was shut down.
   */
  use<T extends KubernetesObject = KubernetesObject>(
    resource: ResourceName | GroupVersionResource,
  ): UsedInformer<T> {
    let made = this.#get(resource);
    if (this.#isShutDown) throw new InformerStateError(`Cannot use ${made.name}: its factory was shut down`);
    if (made.signal?.aborted || made.of.informer.isStopped()) {
      void this.#giveUp(made);
      made = this.#get(resource);
    }
    made.users++;
    if (!made.of.informer.isStarted()) made.running = made.of.informer.start();
    let released: Promise<void> | undefined;
    const used = made;
    const release = () => released ??= --used.users > 0 ? Promise.resolve() : this.#giveUp(used);
    return { ...made.of as unknown as ResourceInformer<T>, release, [Symbol.asyncDispose]: release };
  }

  async #giveUp(made: Made): Promise<void> {
    this.#informers.delete(made.name);
    this.#stopping.add(made);
    await made.running?.stop();
    this.#stopping.delete(made);
  }

  #get(resource: ResourceName | GroupVersionResource): Made {
    const gvr = typeof resource === "string" ? parseResource(resource) : resource;
    const name = formatResource(gvr);
    let made = this.#informers.get(name);
    if (made === undefined) {
      if (this.#isShutDown) {
        throw new InformerStateError(`Cannot make an informer of ${name}: its factory was shut down`);
      }
      made = { name, of: this.#make(gvr, name), users: 0, running: undefined, signal: undefined };
      this.#informers.set(name, made);
    }
    return made;
  }

  /**
   * Starts the informers that were made and not started yet; does not wait. They run until the signal is
   * aborted or the factory is shut down. After a shutdown it does nothing.
   */
  start(signal?: AbortSignal): void {
    if (this.#isShutDown) return;
    for (const made of this.#informers.values()) {
      const { informer } = made.of;
      if (made.running !== undefined || informer.isStarted()) continue;
      made.running = informer.start(signal);
      made.signal = signal;
    }
  }

  /**
   * Waits until the informers that were started by now have synced; at once where none was, as in client-go.
   * @returns Which have, by resource (`v1/pods`): all, unless the signal was aborted or one was stopped
   * before. {@linkcode SharedInformerFactory.synced} and the informer's `failure()` say why one has not.
   */
  async waitForCacheSync(signal?: AbortSignal): Promise<ReadonlyMap<string, boolean>> {
    const started = [...this.#informers.values()].filter(({ of }) => of.informer.isStarted());
    await waitFor(started.map(({ of }) => of.informer), signal === undefined ? {} : { signal });
    return new Map(started.map(({ name, of }) => [name, of.informer.hasSynced()]));
  }

  /**
   * Resolves when the informers that were made by now have synced.
   * @throws {InformerStateError} An informer was not started, and would not sync. client-go leaves it out, as
   * {@linkcode SharedInformerFactory.waitForCacheSync} does.
   * @throws {CacheSyncError} The signal was aborted, or an informer stopped, before all had; it names those
   * that had not, and says what their requests fail with.
   */
  readonly synced: SyncedMethod = async (signal) => {
    const idle = [...this.#informers.values()].filter(({ of }) => !of.informer.isStarted());
    if (idle.length > 0) {
      const names = idle.map(({ name }) => name).sort().join(", ");
      throw new InformerStateError(
        `Cannot wait for ${names}: call start() of the factory first`,
      );
    }
    const failures = new Map<string, FailedTry | undefined>();
    for (const [name, hasSynced] of await this.waitForCacheSync(signal)) {
      if (!hasSynced) failures.set(name, this.#informers.get(name)?.of.informer.failure());
    }
    if (failures.size === 0) return;
    const endedBy = signal?.aborted ? signal.reason : new Error("an informer was stopped");
    throw new CacheSyncError([...failures.keys()].sort(), endedBy, { failures });
  };

  /** Stops the informers that it started, lets no other start, and resolves when nothing is left running. */
  async shutdown(): Promise<void> {
    this.#isShutDown = true;
    const all = [...this.#informers.values(), ...this.#stopping];
    await Promise.all(all.map(({ running }) => running?.stop()));
  }

  /** As {@linkcode SharedInformerFactory.shutdown}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  #make(resource: GroupVersionResource, name: string): ResourceInformer<KubernetesObject> {
    const { namespace, namespaces, tweakListOptions, resyncPeriodsMs = {}, transform } = this.#options;
    const snapshot = this.#options.snapshot?.(resource);
    const own = this.#source.resource(resource, {
      ...(namespace !== undefined && { namespace }),
      ...(namespaces && { namespaces }),
    });
    const informer = new SharedIndexInformer<KubernetesObject, "namespace">(
      tweakListOptions === undefined
        ? own
        : newListWatch(own, (options) => tweakListOptions(options, resource)),
      {
        ...this.#options.informer,
        name,
        indexers: { namespace: metaNamespaceIndex },
        resyncPeriodMs: Object.hasOwn(resyncPeriodsMs, name)
          ? resyncPeriodsMs[name]
          : this.#options.resyncPeriodMs ?? 0,
        ...(transform === undefined ? {} : { transform }),
        ...(snapshot && { snapshot }),
      },
    );
    return { resource, informer, lister: newLister(informer.indexer, resource) };
  }
}
