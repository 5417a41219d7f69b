/**
 * The shared informer: one reflector, one queue, one indexed store, any number of handlers.
 *
 * How it works. The reflector fills the queue; the controller takes deltas out, and for each one `processDeltas` writes
 * the store and then - in the same turn, with nothing awaited in between - tells the observers and queues one
 * notification for every handler. Each handler has its own pump, so they run in their own time. A handler that joins
 * late is given everything that is in the store in the turn it registers: no change can fall between, none comes twice.
 *
 * @module
 */

import { deletionHandlingMetaNamespaceKey, type KeyFunc } from "../meta/keys.ts";
import type { Quarantined } from "../meta/list_watch.ts";
import type { Queue } from "../queue/queue.ts";
import { RealFIFO } from "../queue/real_fifo.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import type { ReflectorOptions, WatchErrorHandler } from "../reflector/reflector_options.ts";
import type { ReflectorStatus } from "../reflector/status.ts";
import type { Indexers } from "../store/index_func.ts";
import type { Held, ObjectCodec } from "../store/object_codec.ts";
import {
  type Indexer,
  newEncodedIndexer,
  newIndexer,
  type OnTransformRejected,
  type StoreOptions,
  type TransformFunc,
} from "../store/store.ts";
import { abortable, linkedAbort } from "../util/abort.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { Latch } from "../util/deferred.ts";
import { errorMessage } from "../util/errors.ts";
import { callGuarded } from "../util/guarded.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import type { Steps } from "../util/steps.ts";
import { Controller } from "./controller.ts";
import { InformerStateError } from "./errors.ts";
import type { Notification, ResourceEventHandler } from "./event_handler.ts";
import { EventOrder } from "./event_order.ts";
import { FreshnessWaiters } from "./freshness.ts";
import { InformerMetrics } from "./informer_metrics.ts";
import type { MailboxOptions } from "./mailbox.ts";
import { freezeObject } from "./freeze_object.ts";
import { EncodingIntake, type Intake, newPlainIntake } from "./intake.ts";
import { openedEvent } from "./opened_event.ts";
import {
  type DeltaSink,
  isSameResourceVersion,
  listSteps,
  processDeltas,
  quarantinedBy,
  rejecter,
} from "./process_deltas.ts";
import { Processor } from "./processor.ts";
import type { ProcessorListener } from "./processor_listener.ts";
import type { StoreEvent } from "./store_event.ts";

/**
 * What a queue of an informer is made from.
 *
 * @example
 * ```ts
 * import { DeltaFIFO, type KubernetesObject, type Queue, type QueueContext } from "@listwatch/cache";
 * function newQueue(context: QueueContext<KubernetesObject>): Queue<KubernetesObject> {
 *   return new DeltaFIFO({ ...context, emitDeltaTypeReplaced: true });
 * }
 * ```
 */
export interface QueueContext<T> {
  readonly keyFunc: KeyFunc;
  /** The informer's store: what the consumer knows. */
  readonly knownObjects: Indexer<T>;
  readonly transform: TransformFunc<T> | undefined;
  /** Reports an object of a list that the transform throws for, and gives the state that is known in its place. */
  readonly onRejected: OnTransformRejected<T>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly name: string;
}

/**
 * Options of {@linkcode SharedIndexInformer}. All may be left out.
 *
 * @example
 * ```ts
 * import { DeltaFIFO, type KubernetesObject, metaNamespaceIndex, type SharedIndexInformerOptions } from "@listwatch/cache";
 * const options: SharedIndexInformerOptions<KubernetesObject, "namespace"> = {
 *   indexers: { namespace: metaNamespaceIndex },
 *   resyncPeriodMs: 600_000,
 *   queue: (context) => new DeltaFIFO({ ...context, emitDeltaTypeReplaced: true }),
 * };
 * ```
 */
export interface SharedIndexInformerOptions<T, I extends string = never> {
  /** For log lines and errors; the source's description by default. */
  readonly name?: string;
  /** Indices that are there from the start. Their names are the ones that lookups accept. */
  readonly indexers?: Indexers<T, I>;
  /** The resync period of handlers that do not ask for their own, in milliseconds; 0, the default, is none. */
  readonly resyncPeriodMs?: number;
  /** Runs once on every object before it is queued, and may change it. */
  readonly transform?: TransformFunc<T>;
  /** Keys; `deletionHandlingMetaNamespaceKey` by default. */
  readonly keyFunc?: KeyFunc;
  /**
   * Makes the queue; an atomic `RealFIFO` by default, which keeps the order of events across objects. With that one,
   * events that are sent again (an older resourceVersion than the store stands at) are stepped over; with any other
   * they are followed, as client-go does.
   */
  readonly queue?: (context: QueueContext<T>) => Queue<T>;
  /**
   * Whether handlers are told of objects that a relist brings unchanged (the same uid and resourceVersion), or that are
   * sent again as they are stored, by an update whose old and new object are the same state. `true` by default, as
   * client-go does; with `false` an update that is no resync is always a change.
   */
  readonly notifyUnchanged?: boolean;
  /**
   * How the store holds objects: `objects`, the default, as they are; `encoded` as short texts that are decoded when
   * someone wants them, for a sixth of the memory: for isolates of 128 MB. See `StoreOptions`. What waits in the queue
   * and for handlers is encoded too, and so is a list while it arrives, unless there is a `queue` of your own. Handlers,
   * observers and readers are handed objects as ever; who asks twice may get two that are equal.
   */
  readonly storage?: StoreOptions<T>["storage"];
  /**
   * For development: freezes every object (after the transform), so that code which changes what it was handed throws
   * where it does so. `false` by default.
   */
  readonly freezeObjects?: boolean;
  /** Where measurements go, the reflector's too; nowhere by default. */
  readonly metrics?: Metrics;
  /** Options of the reflector; its resync options are the informer's. */
  readonly reflector?: Omit<
    ReflectorOptions,
    "resyncPeriodMs" | "shouldResync" | "keyFunc" | "neverGoesBack" | "clock" | "logger"
  >;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * Options of `addEventHandler`.
 *
 * @example
 * ```ts
 * import type { HandlerOptions } from "@listwatch/cache";
 * const options: HandlerOptions = { name: "endpoints", resyncPeriodMs: 600_000, mailbox: { limit: 10_000 } };
 * ```
 */
export interface HandlerOptions {
  /** For log lines; `handler 1` for the first of an informer, and so on, by default. */
  readonly name?: string;
  /** This handler's own resync period, in milliseconds; 0 for none. The informer's by default. */
  readonly resyncPeriodMs?: number;
  /** How many notifications may wait for this handler, and what becomes of more; merged by object by default. */
  readonly mailbox?: MailboxOptions;
}

/**
 * A handler that was added; what takes it away again.
 *
 * Mirrors client-go's `ResourceEventHandlerRegistration`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * const registration = informer.addEventHandler({ onAdd: (pod) => console.log(pod.metadata?.name) });
 * console.log(registration.hasSynced()); // false: the informer has not run
 * informer.removeEventHandler(registration);
 * ```
 */
export interface HandlerRegistration {
  /** The handler's name, after that of its informer. */
  readonly name: string;
  /** Whether the informer has synced and this handler has handled every object of its initial list. */
  hasSynced(): boolean;
  /** Resolves when that becomes true. */
  readonly synced: Promise<void>;
  /** How many notifications wait for this handler. */
  readonly backlog: number;
  /** Whether the handler was taken away: on request, or because its mailbox overflowed. */
  readonly isRemoved: boolean;
}

/**
 * A running informer: what `start` returns.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const running = new SharedIndexInformer(pods).start();
 * await running.stop();
 * ```
 */
export interface Running extends AsyncDisposable {
  /** Resolves when nothing is left running. */
  readonly done: Promise<void>;
  /** Stops it, and resolves when nothing is left running. */
  stop(): Promise<void>;
}

/**
 * Keeps an indexed copy of a resource, and tells any number of handlers what changes in it.
 *
 * Objects in the store and in notifications are shared: read-only. The store is written before anyone is told, so a
 * handler that looks up what it was told of finds that, or something newer. Handlers are told of everything in order,
 * each in its own time.
 *
 * Mirrors client-go's `SharedIndexInformer`.
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
 * await informer.synced(AbortSignal.timeout(30_000)).catch(() => console.log(informer.status().lastError));
 * for (const node of informer.indexer.listIndexFuncValues("byNode")) {
 *   console.log(node, informer.indexer.byIndex("byNode", node).length);
 * }
 * ```
 */
export class SharedIndexInformer<T, I extends string = never> {
  readonly #source: ListerWatcher<T>;
  readonly #options: SharedIndexInformerOptions<T, I>;
  readonly #keyFunc: KeyFunc;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #name: string;
  readonly #processor: Processor<T>;
  readonly #registrations = new WeakMap<HandlerRegistration, ProcessorListener<T>>();
  readonly #observers = new Set<(event: StoreEvent<T>) => void>();
  readonly #statusListeners = new Set<(status: ReflectorStatus) => void>();
  readonly #synced = new Latch();
  readonly #waiters: FreshnessWaiters;
  /** The store as those see it who pass objects on without looking inside: as they are held. */
  readonly #held: Indexer<Held<T>, I>;
  /** Of objects that are held encoded. */
  readonly #codec: ObjectCodec<T> | undefined;
  readonly #metrics: InformerMetrics;
  readonly #stopped = new Latch();
  #transform: TransformFunc<T> | undefined;
  #watchErrorHandler: WatchErrorHandler | undefined;
  #controller: Controller<Held<T>> | undefined;

  /** The store, with its indices; for reading only. */
  readonly indexer: Indexer<T, I>;

  /** Makes an informer that has not started. */
  constructor(source: ListerWatcher<T>, options: SharedIndexInformerOptions<T, I> = {}) {
    this.#source = source;
    this.#options = options;
    const keyFunc = options.keyFunc ?? deletionHandlingMetaNamespaceKey;
    this.#clock = options.clock ?? realClock;
    this.#logger = options.logger ?? consoleLogger;
    this.#name = options.name ?? options.reflector?.name ?? source.description ?? "objects";
    this.#transform = options.transform;
    this.#watchErrorHandler = options.reflector?.watchErrorHandler;
    const indexers = options.indexers ?? ({} as Indexers<T, I>);
    if (options.storage === "encoded") {
      const onDecoded = options.freezeObjects ? { onDecoded: freezeObject } : {};
      const encoded = newEncodedIndexer<T, I>(keyFunc, indexers, onDecoded);
      this.indexer = encoded.indexer;
      this.#held = encoded.held;
      this.#codec = encoded.codec;
    } else {
      this.indexer = newIndexer<T, I>(keyFunc, indexers, { storage: options.storage ?? "objects" });
      this.#held = this.indexer as unknown as Indexer<Held<T>, I>;
    }
    this.#keyFunc = this.#codec?.keyFunc ?? keyFunc;
    this.#waiters = new FreshnessWaiters(this.#name, () => this.indexer.lastStoreSyncResourceVersion());
    this.#metrics = new InformerMetrics(options.metrics, this.#name, this.#clock);
    this.#processor = new Processor<T>({
      codec: this.#codec,
      metrics: this.#metrics,
      keyFunc: this.#keyFunc,
      resyncCheckPeriodMs: options.resyncPeriodMs ?? 0,
      clock: this.#clock,
      logger: this.#logger,
      name: this.#name,
    });
  }

  /** Its name in log lines. */
  get name(): string {
    return this.#name;
  }

  /**
   * Runs until the signal is aborted; resolves when the reflector, the queue and every handler's pump have stopped.
   * A call of a handler that is under way is awaited; what waited for it is dropped. It cannot be run again.
   *
   * @throws {InformerStateError} It was run before.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#controller !== undefined) {
      throw new InformerStateError(`Cannot run the informer of ${this.#name} again: it has been started`);
    }
    const intake = this.#makeIntake();
    const queue = this.#makeQueue(intake);
    const sink = this.#sink();
    this.#controller = new Controller({
      listerWatcher: this.#source,
      queue,
      process: (deltas, isInInitialList) => {
        const processed = this.#metrics.time("informer_processing_latency_seconds");
        processDeltas(this.#held, sink, deltas, isInInitialList, this.#keyFunc);
        if (deltas[0].type === "ReplacedAll") this.#codec?.stored();
        this.#written(processed);
      },
      processList: (delta, isInInitialList) => this.#listSteps(sink, delta, isInInitialList),
      reflector: {
        ...this.#options.reflector,
        neverGoesBack: this.#keepsOrder,
        name: this.#name,
        keyFunc: this.#keyFunc,
        knownObjects: intake === undefined ? this.indexer : this.#held,
        ...(intake === undefined ? {} : { intake: intake.list }),
        clock: this.#clock,
        logger: this.#logger,
        resyncPeriodMs: this.#processor.resyncCheckPeriodMs,
        shouldResync: () => this.#processor.shouldResync(),
        ...(this.#watchErrorHandler === undefined ? {} : { watchErrorHandler: this.#watchErrorHandler }),
        ...(this.#options.metrics === undefined ? {} : { metrics: this.#options.metrics }),
      },
    });
    const synced = this.#metrics.time("informer_sync_duration_seconds");
    this.#controller.onStatus((status) => {
      for (const listener of this.#statusListeners) {
        this.#guarded("a status listener", () => listener(status));
      }
    });
    queue.synced.then(() => {
      synced();
      this.#hasSynced();
    });
    try {
      await this.#controller.run(signal);
    } finally {
      this.#stopped.open();
      this.#waiters.stopped();
      await this.#processor.stop();
    }
  }

  /**
   * Runs it in the background, until `stop` is called, the optional signal is aborted, or the scope of an `await using`
   * ends.
   *
   * @throws {InformerStateError} It was run before.
   */
  start(signal?: AbortSignal): Running {
    if (this.#controller !== undefined) {
      throw new InformerStateError(`Cannot start the informer of ${this.#name} again: it has been started`);
    }
    const link = linkedAbort(signal);
    const done = this.run(link.signal).finally(() => link.unlink());
    const stop = () => {
      link.abort();
      return done;
    };
    return { done, stop, [Symbol.asyncDispose]: stop };
  }

  /**
   * Adds a handler; at any time before the informer has stopped. One that joins a running informer is first told of
   * everything in the store, with `isInInitialList` true. The same handler may be added several times.
   *
   * @throws {InformerStateError} The informer has stopped.
   */
  addEventHandler(handler: ResourceEventHandler<T>, options: HandlerOptions = {}): HandlerRegistration {
    if (this.isStopped()) {
      throw new InformerStateError(
        `Cannot add a handler to the informer of ${this.#name}: ` +
          "it was not added to shared informer because it has stopped already",
      );
    }
    const resyncPeriodMs = options.resyncPeriodMs ?? this.#options.resyncPeriodMs ?? 0;
    if (!(resyncPeriodMs >= 0)) {
      throw new RangeError(
        `Cannot add a handler with a resyncPeriodMs of ${resyncPeriodMs}: it must be 0 or more`,
      );
    }
    // No await from here to the end: what the store holds now, and every later change, reach the handler once.
    const listener = this.#processor.add(handler, resyncPeriodMs, {
      started: this.#controller !== undefined,
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(options.mailbox === undefined ? {} : { mailbox: options.mailbox }),
    });
    if (this.#controller !== undefined) {
      for (const object of this.#held.values()) {
        listener.add({ type: "add", object, isInInitialList: true });
      }
      if (this.#synced.isOpen) listener.upstreamHasSynced();
    }
    const isListening = () => this.#processor.listeners.has(listener);
    const registration: HandlerRegistration = {
      name: listener.name,
      hasSynced: () => listener.hasSynced,
      synced: listener.synced,
      get backlog() {
        return listener.backlog;
      },
      get isRemoved() {
        return !isListening();
      },
    };
    this.#registrations.set(registration, listener);
    return registration;
  }

  /**
   * Takes a handler away: it gets nothing any more, and what waited for it is dropped. A handler that is not there
   * (any more) is fine.
   *
   * @returns Resolves when a call that is under way has ended; do not await it inside that call.
   */
  async removeEventHandler(registration: HandlerRegistration): Promise<void> {
    const listener = this.#registrations.get(registration);
    if (listener !== undefined) await this.#processor.remove(listener);
  }

  /**
   * Calls `observer` with everything that happens to the store, within the turn that it happens, right after the write.
   * For those who must keep in step with the store; it must be quick and must not write. What it throws is logged.
   *
   * @returns A function that takes the observer away.
   */
  observe(observer: (event: StoreEvent<T>) => void): () => void {
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  /** Adds indices, at any time before the informer has stopped: what is stored already is indexed at once. */
  addIndexers<J extends string>(indexers: Indexers<T, J>): SharedIndexInformer<T, I | J> {
    if (this.isStopped()) {
      throw new InformerStateError(`Cannot add indexers to the informer of ${this.#name}: it has stopped`);
    }
    this.indexer.addIndexers(indexers);
    return this as unknown as SharedIndexInformer<T, I | J>;
  }

  /**
   * Sets what runs on every object before it is queued; the last one counts.
   *
   * @throws {InformerStateError} The informer has started.
   */
  setTransform(transform: TransformFunc<T>): void {
    this.#refuseStarted("set the transform");
    this.#transform = transform;
  }

  /**
   * Sets who is told when a list fails or a watch is refused; the last one counts.
   *
   * @throws {InformerStateError} The informer has started.
   */
  setWatchErrorHandler(handler: WatchErrorHandler): void {
    this.#refuseStarted("set the watch error handler");
    this.#watchErrorHandler = handler;
  }

  /** Whether the store holds the whole first list. Says nothing about the handlers: ask their registrations. */
  hasSynced(): boolean {
    return this.#synced.isOpen;
  }

  /**
   * Resolves when the store holds the whole first list.
   *
   * @throws {InformerStateError} It stopped before.
   * @throws The signal's reason, if it is aborted first.
   */
  async synced(signal?: AbortSignal): Promise<void> {
    if (this.#synced.isOpen) return;
    await abortable(Promise.race([this.#synced.opened, this.#stopped.opened]), signal);
    if (!this.#synced.isOpen) {
      throw new InformerStateError(
        `Cannot wait for the informer of ${this.#name}: it stopped before it had synced`,
      );
    }
  }

  /**
   * Resolves when the store has reached a resourceVersion: after it, a read sees the write that returned that version,
   * also if the object was deleted and created again since. A relist, an event of any object and a bookmark all count.
   *
   * Needs the default queue: with a `DeltaFIFO`, which mixes the order of objects, the store stands at no one version.
   *
   * @param options `signal` bounds the wait; without one it lasts as long as the informer runs.
   * @throws {NotFreshError} The signal was aborted, or the informer stopped, first.
   * @throws {TypeError} It is no resourceVersion that can be compared.
   */
  async waitFor(resourceVersion: string, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#waiters.wait(resourceVersion, options.signal);
  }

  /**
   * The object of a key, read when the store has reached `notOlderThan`, if that is given; `undefined` if there is none.
   *
   * @throws {NotFreshError} The signal was aborted before the store got there.
   * @throws {TypeError} `notOlderThan` is no resourceVersion that can be compared.
   */
  async get(
    key: string,
    options: { readonly notOlderThan?: string; readonly signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    if (options.notOlderThan !== undefined) await this.#waiters.wait(options.notOlderThan, options.signal);
    return this.indexer.getByKey(key);
  }

  /**
   * Whether the store has synced, and the server was heard of - a list, an event or a bookmark - at most so many
   * milliseconds ago: its status' `lagMs`. A quiet resource is heard of when its bookmarks come, about once a minute.
   */
  isFresh(maxAgeMs: number): boolean {
    const { lagMs } = this.status();
    return this.hasSynced() && lagMs !== undefined && lagMs <= maxAgeMs;
  }

  /** Whether it has run and stopped. */
  isStopped(): boolean {
    return this.#stopped.isOpen;
  }

  /** Whether it was run; stays true. */
  isStarted(): boolean {
    return this.#controller !== undefined;
  }

  /**
   * The last resourceVersion the reflector saw, also in an event that was sent again; `""` before the first list. Where
   * the store stands is `indexer.lastStoreSyncResourceVersion()`.
   */
  lastSyncResourceVersion(): string {
    return this.#controller?.lastSyncResourceVersion() ?? "";
  }

  /** What the reflector is at. */
  status(): ReflectorStatus {
    return this.#controller?.status() ?? { phase: "idle", resourceVersion: "", attempt: 0, quarantined: 0 };
  }

  /**
   * Calls `listener` whenever the reflector's phase changes or a list progresses, in the turn it happens.
   *
   * @returns A function that takes the listener away.
   */
  onStatus(listener: (status: ReflectorStatus) => void): () => void {
    this.#statusListeners.add(listener);
    return () => this.#statusListeners.delete(listener);
  }

  /** Whether the queue keeps the order of events across objects, so that one that is older was seen before. */
  get #keepsOrder(): boolean {
    return this.#options.queue === undefined;
  }

  /** What becomes of objects before they are queued; nothing for a queue of the user's own. */
  #makeIntake(): Intake<Held<T>> | undefined {
    if (this.#options.queue !== undefined) return undefined;
    const transform = this.#wholeTransform();
    if (this.#codec !== undefined) {
      return new EncodingIntake<T>({ codec: this.#codec, held: this.#held, transform });
    }
    return newPlainIntake<Held<T>>(
      this.#keyFunc,
      this.#held,
      transform as TransformFunc<Held<T>> | undefined,
    );
  }

  #makeQueue(intake: Intake<Held<T>> | undefined): Queue<Held<T>> {
    const report = (quarantined: Quarantined) => this.#controller?.setAside(quarantined);
    const common = { keyFunc: this.#keyFunc, clock: this.#clock, logger: this.#logger, name: this.#name };
    if (this.#options.queue !== undefined) {
      return this.#options.queue({
        ...common,
        knownObjects: this.indexer,
        transform: this.#wholeTransform(),
        onRejected: rejecter(this.#keyFunc, this.indexer, report),
      }) as Queue<Held<T>>;
    }
    return new RealFIFO<Held<T>>({
      ...common,
      ...(intake?.queue === undefined ? {} : { transform: intake.queue }),
      onRejected: rejecter(this.#keyFunc, this.#held, report),
      atomicEvents: true,
      emitDeltaTypeBookmark: true,
    });
  }

  /** What runs on every object before it is queued. */
  #wholeTransform(): TransformFunc<T> | undefined {
    const transform = this.#transform;
    if (!this.#options.freezeObjects) return transform;
    return (object) => freezeObject(transform === undefined ? object : transform(object));
  }

  #sink(): DeltaSink<Held<T>> {
    const observers = this.#observers;
    return {
      notify: (notification) => this.#processor.distribute(notification, { isSync: isSync(notification) }),
      get observes() {
        return observers.size > 0;
      },
      observe: (event) => {
        const opened = this.#codec === undefined ? event as StoreEvent<T> : openedEvent(event, this.#codec);
        for (const observer of observers) this.#guarded("an observer", () => observer(opened));
      },
      rejected: (error, object, isLost) =>
        this.#controller?.setAside(quarantinedBy(error, object), { isLost }),
      refused: new Set(),
      skipsUnchanged: this.#options.notifyUnchanged === false,
      ...(this.#keepsOrder && {
        order: new EventOrder(),
        repeated: (type) => this.#metrics.repeated(type),
      }),
    };
  }

  *#listSteps(
    sink: DeltaSink<Held<T>>,
    delta: Parameters<typeof listSteps<Held<T>>>[2],
    isInInitialList: boolean,
  ): Steps {
    const processed = this.#metrics.time("informer_processing_latency_seconds");
    yield* listSteps(this.#held, sink, delta, isInInitialList, this.#keyFunc);
    this.#codec?.stored();
    this.#written(processed);
  }

  #written(processed: () => void): void {
    this.#waiters.moved();
    processed();
    this.#metrics.stored(this.indexer.size, this.indexer.lastStoreSyncResourceVersion());
  }

  #hasSynced(): void {
    this.#synced.open();
    for (const listener of this.#processor.listeners) listener.upstreamHasSynced();
  }

  #refuseStarted(what: string): void {
    if (this.#controller === undefined) return;
    throw new InformerStateError(
      `Cannot ${what} of the informer of ${this.#name}: informer has already started`,
    );
  }

  #guarded(what: string, call: () => unknown): void {
    callGuarded(call, (error) => {
      this.#logger.error(`${this.#name}: ${what} threw: ${errorMessage(error)}`, { error });
    });
  }
}

/** An update that brings the version that is there says nothing new: a resync, or an unchanged object of a relist. */
function isSync(notification: Notification<unknown>): boolean {
  return notification.type === "update" && isSameResourceVersion(notification.oldObject, notification.object);
}
