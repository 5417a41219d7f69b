/** The shared informer: one reflector, one queue, one indexed store, any number of handlers. */

import type { VersionProof } from "../meta/list_watch.ts";
import { deletionHandlingMetaNamespaceKey, type KubernetesObject } from "../meta/object.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import type { WatchErrorHandler } from "../reflector/reflector_options.ts";
import type { FailedTry } from "../reflector/failures.ts";
import { type Cache, newCache } from "../store/cache.ts";
import type { Held } from "../store/holding.ts";
import type { Indexers, NoIndexNames } from "../store/index_func.ts";
import type { Indexer } from "../store/store.ts";
import type { TransformFunc } from "../store/transform.ts";
import { onAbort } from "../util/abort.ts";
import { type Clock, type Moment, realClock } from "../util/clock.ts";
import type { SyncedMethod } from "../util/deferred.ts";
import { Listeners } from "../util/errors.ts";
import { freezeObject } from "../util/json.ts";
import { guardedLogger, type Logger, logsThrown } from "../util/logger.ts";
import { guardedMetrics } from "../util/metrics.ts";
import { finishInTurns, type Pace, stepObjectsOf, type Steps } from "../util/turns.ts";
import { requireNumbers } from "../util/require_number.ts";
import { InformerStateError } from "./errors.ts";
import { newEventOpener, type ResourceEventHandler, type StoreEvent } from "./events.ts";
import { InformerWaits } from "./waits.ts";
import { newPipeline, type Pipeline } from "./pipeline.ts";
import { IDLE } from "../reflector/state.ts";
import type { FollowedNamespaces, NamespacePart } from "./namespaces/namespace_part.ts";
import { Processor } from "./processor.ts";
import { paceOf, type Running, startRunning } from "./queue_drain.ts";
import {
  checkInformerOptions,
  type HandlerOptions,
  type HandlerRegistration,
  namespaceSetOf,
  type SharedIndexInformerOptions,
} from "./shared_informer_options.ts";
import type { InformerStatus } from "./snapshot/storage.ts";

/**
 * Keeps an indexed copy of a resource, and notifies any number of handlers of its changes.
 *
 * Objects in the store and in notifications are shared: read-only. The store is written before handlers are
 * notified, so a handler that looks up an object finds the state that it received, or a newer one. Each
 * handler receives everything in order, in its own time.
 *
 * Mirrors client-go's
 * [`SharedIndexInformer`](https://github.com/kubernetes/client-go/blob/master/tools/cache/shared_informer.go).
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * interface Pod extends KubernetesObject {
 *   spec?: { nodeName?: string };
 * }
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const informer = new SharedIndexInformer(cluster.resource<Pod>("v1/pods"), {
 *   indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] },
 * });
 * await using running = informer.start();
 * await informer.synced(AbortSignal.timeout(30_000)).catch((error) => console.log(error.message)); // why
 * for (const node of informer.indexer.listIndexFuncValues("byNode")) {
 *   console.log(node, informer.indexer.byIndex("byNode", node).length);
 * }
 * ```
 *
 * @category Informers
 */
export class SharedIndexInformer<T, I extends string = NoIndexNames> {
  readonly #source: ListerWatcher<T>;
  #options: SharedIndexInformerOptions<T, I>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #processor: Processor<T>;
  readonly #observers: Listeners<StoreEvent<Held<T>>>;
  readonly #statusListeners: Listeners<InformerStatus>;
  readonly #waits: InformerWaits;
  readonly #store: Cache<T, I>;
  readonly #pace: Pace;
  #pipeline: Pipeline<T> | undefined;
  readonly #parts: FollowedNamespaces<T> | undefined;

  /** The informer's name in log lines. */
  readonly name: string;
  /** The store, with its indices; for reading only. */
  readonly indexer: Indexer<T, I>;
  /** The resource that the source lists, if that is known. */
  readonly resource: GroupVersionResource | undefined;
  /** The fields that the source leaves out of the objects, if that is known. */
  readonly projection: ListerWatcher<T>["projection"];
  /**
   * As {@linkcode ServedInformer.partsOf}, if the source has a set of namespaces.
   * @internal
   */
  readonly partsOf: ((resourceVersion: string) => readonly string[] | undefined) | undefined;

  /**
   * Makes an informer that has not started.
   * @throws {RangeError} A number among the options is negative, `NaN`, or infinite where that is no limit.
   * @throws {TypeError} There is a snapshot, and a queue of your own, or nothing that identifies the content;
   * or the source has a set of namespaces, and there is a snapshot or a queue of your own.
   * @throws {InformerStateError} Another informer has its snapshot.
   */
  constructor(source: ListerWatcher<T>, options: SharedIndexInformerOptions<T, I> = {}) {
    this.#source = source;
    this.resource = source.resource;
    this.projection = source.projection;
    this.#clock = options.clock ?? realClock;
    this.name = options.name ?? options.reflector?.name ?? source.description ?? "objects";
    this.#parts = namespaceSetOf(source)?.follow<T>({ informer: this, source, options });
    this.partsOf = this.#parts?.partsOf;
    this.#waits = new InformerWaits(this, this.#clock, this.#parts?.hasReached);
    this.#logger = guardedLogger(options.logger);
    const metrics = guardedMetrics(options.metrics, this.#logger);
    this.#options = { ...options, ...(metrics && { metrics }) };
    const logged = { logger: this.#logger, name: this.name };
    this.#observers = new Listeners(logsThrown(logged, "an observer"));
    // A change is saved before any observer sees it.
    if (options.snapshot) this.#observers.add((event) => this.#pipeline?.snapshot?.observe(event));
    this.#statusListeners = new Listeners(logsThrown(logged, "a status listener"));
    checkInformerOptions(this.name, options);
    this.#pace = paceOf(options.turnObjects);
    const { keyFunc = deletionHandlingMetaNamespaceKey, storage, freezeObjects } = options;
    this.#store = newCache<T, I>(keyFunc, (options.indexers ?? {}) as Indexers<T, I>, {
      storage,
      ...(freezeObjects && { freeze: freezeObject }),
    });
    this.indexer = this.#store;
    this.#processor = new Processor<T>({
      holding: this.#store.holding,
      metrics,
      resyncCheckPeriodMs: options.resyncPeriodMs ?? 0,
      stopTimeoutMs: options.handlerStopTimeoutMs,
      clock: this.#clock,
      logger: this.#logger,
      name: this.name,
      failure: () => this.failure(),
    });
    options.snapshot?.claim({
      name: this.name,
      source: source.identity,
      hasQueue: options.queue !== undefined,
      hasTransform: options.transform !== undefined,
    });
  }

  /**
   * Runs until the signal is aborted; resolves when the reflector, the queue and every handler's pump have
   * stopped. A running call of a handler is awaited, for `handlerStopTimeoutMs` at most; what waited for it
   * is dropped. It cannot be run again.
   *
   * A handler may stop its informer and await that: its own call is not awaited then, if it stops it before
   * its first `await`, and otherwise until that time is over.
   * @throws {InformerStateError} The informer was run before.
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#refuseStarted("run");
    this.#pipeline = newPipeline<T, I>({
      source: this.#source,
      namespaces: this.#parts,
      store: this.#store,
      processor: this.#processor,
      observers: this.#observers,
      statusListeners: this.#statusListeners,
      waits: this.#waits,
      informer: this.#options,
      pace: this.#pace,
      clock: this.#clock,
      logger: this.#logger,
      name: this.name,
    });
    const unlisten = onAbort(signal, () => this.#processor.stopping());
    try {
      await this.#pipeline.run(signal);
    } finally {
      unlisten();
      this.#waits.stop();
      await Promise.all([this.#processor.stop(), this.#pipeline.snapshot?.stop()]);
    }
  }

  /**
   * Runs it in the background, until `stop` is called, the optional signal is aborted, or the scope of an
   * `await using` ends.
   * @throws {InformerStateError} The informer was run before.
   */
  start(signal?: AbortSignal): Running {
    this.#refuseStarted("start");
    return startRunning((linked) => this.run(linked), signal);
  }

  /**
   * Adds a handler; at any time before the informer has stopped. One that joins a running informer first
   * receives everything in the store, with `isInInitialList` true. The same handler may be added several
   * times.
   * @throws {InformerStateError} The informer has stopped.
   * @throws {RangeError} The resync period or the mailbox's limit is no such number.
   */
  addEventHandler(handler: ResourceEventHandler<T>, options: HandlerOptions = {}): HandlerRegistration {
    if (this.isStopped()) {
      throw new InformerStateError(
        `Cannot add a handler to the informer of ${this.name}: it was not added to shared informer because it has stopped already`,
      );
    }
    const resyncPeriodMs = options.resyncPeriodMs ?? this.#options.resyncPeriodMs ?? 0;
    requireNumbers("add a handler", { resyncPeriodMs });
    // No await from here to the end: what the store holds now, and every later change, reach the handler
    // once.
    const present = this.#pipeline === undefined ? undefined : this.#store.held.list();
    return this.#processor.add(handler, { ...options, resyncPeriodMs }, present);
  }

  /**
   * Removes a handler: it receives nothing any more, and what waited for it is dropped. A handler that is not
   * there (any more) is fine.
   * @returns Resolves when a running call has ended, or after `handlerStopTimeoutMs`; at once if that call
   * removes it, before its first `await`.
   */
  removeEventHandler(registration: HandlerRegistration): Promise<void> {
    return this.#processor.remove(registration);
  }

  /**
   * Calls `observer` with everything that happens to the store, within the turn that it happens, right after
   * the write. For code that must keep in step with the store; it must be quick and must not write. Errors
   * that it throws are logged.
   * @returns A function that removes the observer.
   */
  observe(observer: (event: StoreEvent<T>) => void): () => void {
    const opened = newEventOpener(this.#store.holding);
    return this.observeHeld((event) => observer(opened(event)));
  }

  /**
   * As {@linkcode SharedIndexInformer.observe}, with the objects in the form in which the store holds them:
   * for adapters that keep what they receive.
   * @internal
   */
  observeHeld(observer: (event: StoreEvent<Held<T>>) => void): () => void {
    return this.#observers.add(observer);
  }

  /**
   * Adds indices, at any time before the informer has stopped: stored objects are indexed at once, within
   * this turn. If they are many, or stored encoded, {@linkcode SharedIndexInformer.addIndexersInTurns} does
   * not block the event loop.
   * @throws {InformerStateError} The informer has stopped.
   * @throws {IndexerConflictError} A name is taken; nothing was added.
   * @throws {IndexFuncError} An index function threw; nothing was added.
   */
  addIndexers<J extends string>(indexers: Indexers<T, J>): SharedIndexInformer<T, I | J> {
    this.#refuseStopped();
    this.indexer.addIndexers(indexers);
    return this as unknown as SharedIndexInformer<T, I | J>;
  }

  /**
   * As {@linkcode SharedIndexInformer.addIndexers}, but others get a turn of the event loop every few
   * milliseconds. The indices are there, as one step, when the promise resolves; until then lookups do not
   * know them. Changes and lists that arrive meanwhile are taken in. Meanwhile it takes as much memory again
   * as all indices.
   * @returns This informer, with the new names in its type.
   * @throws As {@linkcode SharedIndexInformer.addIndexers}, also where the informer stops meanwhile.
   */
  async addIndexersInTurns<J extends string>(
    indexers: Indexers<T, J>,
  ): Promise<SharedIndexInformer<T, I | J>> {
    this.#refuseStopped();
    const steps = this.#store.addIndexersSteps(indexers, { stepObjects: stepObjectsOf(this.#pace) });
    await finishInTurns(this.#unlessStopped(steps), { ...this.#pace, clock: this.#clock });
    return this as unknown as SharedIndexInformer<T, I | J>;
  }

  *#unlessStopped(steps: Steps): Steps {
    for (const _ of steps) {
      yield;
      this.#refuseStopped(); // ends the steps too
    }
  }

  #refuseStopped(): void {
    if (!this.isStopped()) return;
    throw new InformerStateError(`Cannot add indexers to the informer of ${this.name}: it has stopped`);
  }

  /**
   * Sets what runs on every object before it is queued; the last one counts.
   * @throws {InformerStateError} The informer has started.
   * @throws {TypeError} The informer has a snapshot without an `identity`.
   */
  setTransform(transform: TransformFunc<T>): void {
    this.#refuseStarted("set the transform of");
    const { snapshot } = this.#options;
    if (snapshot && !snapshot.options.identity) {
      throw new TypeError(`Cannot set the transform of ${this.name}: its snapshot has no \`identity\``);
    }
    this.#options = { ...this.#options, transform };
  }

  /**
   * Sets the handler of failed lists and refused watches; the last one counts.
   * @throws {InformerStateError} The informer has started.
   */
  setWatchErrorHandler(handler: WatchErrorHandler): void {
    this.#refuseStarted("set the watch error handler of");
    this.#options = {
      ...this.#options,
      reflector: { ...this.#options.reflector, watchErrorHandler: handler },
    };
  }

  /**
   * Whether the store holds the whole first list; or the content of a snapshot, and the server has confirmed
   * it by a list, a bookmark or the changes since. For the handlers see their registrations.
   */
  hasSynced(): boolean {
    return this.#waits.synced.isOpen;
  }

  /**
   * Whether the store holds the content of a snapshot that the server has not confirmed yet: as old as
   * `status().restored` says, or older if the server was restored from a backup; or that of some namespaces
   * of a set. False again once it has synced.
   */
  isRestored(): boolean {
    if (this.hasSynced()) return false;
    return this.#waits.restored.isOpen || this.#parts?.all.some((part) => part.hasSynced()) === true;
  }

  /**
   * Resolves when the store has content to read: a snapshot's, or the first list.
   * @throws {CacheSyncError} As {@linkcode SharedIndexInformer.synced}.
   * @throws {InformerStateError} The informer stopped before.
   */
  readonly restored: SyncedMethod = (signal) => this.#waits.opened(this.#waits.restored, signal);

  /**
   * Resolves when the store holds the whole first list.
   * @throws {CacheSyncError} The signal was aborted first. Its message and its cause are what the requests
   * fail with (no connection, 403, 404, ...), or the signal's reason where none has failed.
   * @throws {InformerStateError} The informer stopped before.
   */
  readonly synced: SyncedMethod = (signal) => this.#waits.opened(this.#waits.synced, signal);

  /**
   * The error of the last request, and how many tries failed in this outage; `undefined` unless the informer
   * runs and cannot read the server. For a program that wants to give up, or to say why it waits.
   */
  failure(): FailedTry | undefined {
    return this.#pipeline?.reflector.failure();
  }

  /**
   * Resolves when the store has reached a resourceVersion: after it, a read sees the write that returned that
   * version, also if the object was deleted and created again since. A relist, an event of any object and a
   * bookmark all count.
   *
   * Needs the default queue: with a `DeltaFIFO`, which mixes the order of objects, the store has no single
   * version.
   * @param options `signal` bounds the wait; without one it lasts as long as the informer runs.
   * @throws {NotFreshError} The signal was aborted, or the
   * informer stopped, first: before the call or after it.
   * @throws {TypeError} The version is not one that can be compared.
   */
  async waitForVersion(
    resourceVersion: string,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<void> {
    await this.#waits.reached(resourceVersion, options.signal);
  }

  /**
   * The object of a key, read when the store has reached `notOlderThan`, if that is given; `undefined` if
   * there is none.
   * @throws {NotFreshError} The signal was aborted, or the informer stopped, before the store got there.
   * @throws {TypeError} `notOlderThan` is no resourceVersion that can be compared.
   */
  async get(
    key: string,
    options: { readonly notOlderThan?: string; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    if (options.notOlderThan !== undefined) await this.#waits.reached(options.notOlderThan, options.signal);
    return this.indexer.getByKey(key);
  }

  /**
   * The namespaces it is made of, each with a version and a state of its own; `undefined` if its source has
   * no set of namespaces.
   * @internal
   */
  get sources(): readonly { readonly name: string; readonly informer: NamespacePart<T> }[] | undefined {
    return this.#parts?.sources;
  }

  /** A source of the names and versions of what it lists; `undefined` if its source has none. */
  metadata(): ListerWatcher<KubernetesObject> | undefined {
    return this.#source.metadata?.();
  }

  /**
   * Moves the store's version forward to `through`, as a bookmark does, if every change up to `after` has
   * arrived. For callers with proof that there is no change between the two.
   * @returns Whether the reflector is there; not between two watches.
   */
  proven(proof: VersionProof): boolean {
    return this.#pipeline?.reflector.proven(proof) ?? false;
  }

  /**
   * The store still lacks what the server had at a time: a watch that has brought nothing since is dead.
   * @internal
   */
  overdue(since: Moment): void {
    this.#pipeline?.reflector.overdue(since);
  }

  /**
   * Whether the store has synced, and a list, an event or a bookmark came at most so many milliseconds ago. A
   * quiet resource has about one bookmark a minute.
   */
  isFresh(maxAgeMs: number): boolean {
    const lagMs = this.lagMs();
    return this.hasSynced() && lagMs !== undefined && lagMs <= maxAgeMs;
  }

  /**
   * How many milliseconds ago a list, an event or a bookmark came, as in the status; `undefined` before the
   * first one.
   */
  lagMs(): number | undefined {
    return this.#pipeline?.reflector.lagMs();
  }

  /**
   * When the last list was requested that had everything written before the request, by the
   * monotonic clock; `undefined` if there was none.
   * @internal
   */
  consistentMs(): number | undefined {
    return this.#pipeline?.reflector.consistentMs();
  }

  /** Whether the informer has run and stopped. */
  isStopped(): boolean {
    return this.#waits.stopped.isOpen;
  }

  /** Whether the informer was run; stays true. */
  isStarted(): boolean {
    return this.#pipeline !== undefined;
  }

  /**
   * The last resourceVersion the reflector saw, also in an event that was sent again; `""` before the first
   * list. The store's version is `indexer.lastStoreSyncResourceVersion()`.
   */
  lastSyncResourceVersion(): string {
    return this.#pipeline?.reflector.lastSyncResourceVersion() ?? "";
  }

  /** The reflector's status, and that of its snapshot. */
  status(): InformerStatus {
    return {
      ...(this.#pipeline?.reflector.status() ?? IDLE),
      ...this.#pipeline?.snapshot?.status(),
    };
  }

  /**
   * Calls `listener` whenever the reflector's phase changes or a list progresses, in the turn it happens.
   * @returns A function that removes the listener.
   */
  onStatus(listener: (status: InformerStatus) => void): () => void {
    return this.#statusListeners.add(listener);
  }

  #refuseStarted(what: string): void {
    if (this.#pipeline === undefined) return;
    throw new InformerStateError(
      `Cannot ${what} the informer of ${this.name}: informer has already started`,
    );
  }
}
