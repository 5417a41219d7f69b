/** A reflector that fills a queue, and the loop that drains it. */

import { deletionHandlingMetaNamespaceKey } from "../meta/object.ts";
import type { Deltas, Queue } from "../queue/queue.ts";
import { DeltaFIFO } from "../queue/delta_fifo.ts";
import { Reflector } from "../reflector/reflector.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import { Quarantine } from "../reflector/quarantine.ts";
import type { ReflectorOptions, ReflectorWiring } from "../reflector/reflector_options.ts";
import type { FailedTry } from "../reflector/failures.ts";
import type { ReflectorStatus } from "../reflector/state.ts";
import { newCache } from "../store/cache.ts";
import type { Held } from "../store/holding.ts";
import type { Indexers, NoIndexNames } from "../store/index_func.ts";
import type { Indexer } from "../store/store.ts";
import { transformOnce } from "../store/transform.ts";
import { abortable } from "../util/abort.ts";
import { realClock } from "../util/clock.ts";
import { Latch, type SyncedMethod } from "../util/deferred.ts";
import { callGuarded, Listeners } from "../util/errors.ts";
import { guardedLogger, logsThrown } from "../util/logger.ts";
import { STEP_OBJECTS, type Steps } from "../util/turns.ts";
import { DeltaApplier, quarantiner } from "./delta_applier.ts";
import { InformerStateError } from "./errors.ts";
import type { Notification, ResourceEventHandler } from "./events.ts";
import type { ListNotifications, NotificationReceiver } from "./list_application.ts";
import { newCaller } from "./processor.ts";
import { type ListDelta, paceOf, QueueDrain } from "./queue_drain.ts";
import type { QueueContext, SharedIndexInformerOptions } from "./shared_informer_options.ts";

/** The parts of a {@linkcode Controller}. */
export interface ControllerConfig<T> {
  /** The source of the objects. */
  readonly listerWatcher: ListerWatcher<T>;
  /** The reflector fills it and `process` drains it. */
  readonly queue: Queue<T>;
  /**
   * Called with what is popped, in order, within the turn it is popped. Errors that it throws are logged; the
   * item is lost unless {@linkcode ControllerConfig.retryOnError} is set.
   */
  readonly process: (deltas: Deltas<T>, isInInitialList: boolean) => void;
  /**
   * Takes the place of `process` for a list of many objects in an atomic `RealFIFO`, and for its resyncs, if
   * given: the steps of long work, between which other tasks get a turn.
   */
  readonly processList?: (delta: ListDelta<T>, isInInitialList: boolean) => Steps;
  /**
   * At most so many objects of a list, or other changes, are processed before other tasks get a turn; 1,000
   * by default. It is less where they take longer than 4 ms.
   */
  readonly turnObjects?: number;
  /**
   * Whether an item whose processing threw is put back, if nothing newer is queued for its key: with queues
   * that have `addIfNotPresent`. As client-go's `RetryOnError` of the 1.24 generation; `false` by default.
   */
  readonly retryOnError?: boolean;
  /** Options of the reflector. */
  readonly reflector?: ReflectorOptions;
}

/**
 * Runs a reflector into a queue, and drains the queue. Mirrors client-go's `Controller`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { Controller, newInformer } from "@listwatch/cache/informer";
 * import { RealFIFO } from "@listwatch/cache/queue";
 * const listerWatcher = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const controller = new Controller<KubernetesObject>({
 *   listerWatcher,
 *   queue: new RealFIFO<KubernetesObject>({ atomicEvents: true }),
 *   process: (deltas) => console.log(deltas[0].type),
 * });
 * await controller.run(AbortSignal.abort());
 * const handler = { onAdd: (pod: KubernetesObject) => console.log(pod.metadata?.name) };
 * const [store, ofStore] = newInformer<KubernetesObject>({ listerWatcher, handler });
 * await ofStore.run(AbortSignal.abort());
 * console.log(store.size); // 0
 * ```
 */
export class Controller<T> {
  readonly #queue: Queue<T>;
  readonly #reflector: Reflector<T>;
  readonly #drain: QueueDrain<T>;
  readonly #stopped = new Latch();
  #started = false;

  /** Makes a controller that has not started; `wiring` is what its reflector shares with an informer. */
  constructor(config: ControllerConfig<T>, wiring: ReflectorWiring = {}) {
    const { listerWatcher, queue, process, reflector = {}, retryOnError } = config;
    this.#queue = queue;
    this.#reflector = new Reflector(listerWatcher, queue, reflector, wiring);
    this.#drain = new QueueDrain<T>({
      queue,
      process: retryOnError ? puttingBack(queue, process) : process,
      processList: config.processList,
      pace: paceOf(config.turnObjects),
      clock: reflector.clock ?? realClock,
      logger: guardedLogger(reflector.logger),
      name: this.#reflector.name,
    });
  }

  /**
   * Runs until the signal is aborted, then closes the queue; resolves when nothing is left running.
   * @throws {InformerStateError} The controller was run before.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (this.#started) {
      throw new InformerStateError(
        `Cannot run the controller of ${this.#reflector.name} again: it has been started`,
      );
    }
    this.#started = true;
    await this.#drain.run(this.#reflector, signal).finally(() => this.#stopped.open());
  }

  /** The controller's name in log lines. */
  get name(): string {
    return this.#reflector.name;
  }

  /** Whether the whole first list has been processed. */
  hasSynced(): boolean {
    return this.#queue.hasSynced();
  }

  /**
   * Resolves when {@linkcode Controller.hasSynced} becomes true; rejects with the signal's reason.
   * @throws {InformerStateError} The controller stopped before.
   */
  readonly synced: SyncedMethod = async (signal) => {
    if (this.hasSynced()) return;
    const synced = this.#queue.synced().catch(() => this.#stopped.opened); // the stop has closed the queue
    await abortable(Promise.race([synced, this.#stopped.opened]), signal);
    if (this.hasSynced()) return;
    throw new InformerStateError(
      `Cannot wait for the controller of ${this.name}: it stopped before it had synced`,
    );
  };

  /** The last resourceVersion the reflector saw; `""` before the first list. */
  lastSyncResourceVersion(): string {
    return this.#reflector.lastSyncResourceVersion();
  }

  /** As `Reflector.failure`. */
  failure(): FailedTry | undefined {
    return this.#reflector.failure();
  }

  /** The reflector's status. */
  status(): ReflectorStatus {
    return this.#reflector.status();
  }

  /** As `Reflector.onStatus`. */
  onStatus(listener: (status: ReflectorStatus) => void): () => void {
    return this.#reflector.onStatus(listener);
  }
}

/** Puts an item back whose processing threw, where the queue can do that. */
function puttingBack<T>(
  queue: Queue<T> & { addIfNotPresent?(deltas: Deltas<T>): void },
  process: ControllerConfig<T>["process"],
): ControllerConfig<T>["process"] {
  return (deltas, isInInitialList) => {
    try {
      process(deltas, isInInitialList);
    } catch (error) {
      queue.addIfNotPresent?.(deltas);
      throw error;
    }
  };
}

/** Options of {@linkcode newInformer}. */
export interface InformerOptions<T, I extends string = NoIndexNames>
  extends Pick<SharedIndexInformerOptions<T, I>, "indexers" | "transform" | "keyFunc"> {
  readonly listerWatcher: ListerWatcher<T>;
  /** Called in the turn of each store write; its promises are not awaited. Its errors are logged. */
  readonly handler: ResourceEventHandler<T>;
  /** How often everything is handed out again, in milliseconds; 0, the default, is never. */
  readonly resyncPeriodMs?: number;
  /** Makes the queue; a `DeltaFIFO` over the store by default. */
  readonly queue?: (context: QueueContext<T>) => Queue<T>;
  /** Options of the reflector. */
  readonly reflector?: Omit<ReflectorOptions, "resyncPeriodMs" | "keyFunc">;
}

/**
 * Makes a store that follows a resource, and the controller that keeps it so.
 *
 * The handler is called synchronously, right after each store write. For several handlers, or slow ones, take
 * a `SharedIndexInformer`.
 * Mirrors client-go's `NewInformer` and `NewIndexerInformer`, over a `DeltaFIFO` as in its 1.24 generation.
 * There a handler that panics ends the program; here an error is logged, and the informer continues.
 * @returns The store, for reading only, and the controller, to be run.
 */
export function newInformer<T, I extends string = NoIndexNames>(
  options: InformerOptions<T, I>,
): [store: Indexer<T, I>, controller: Controller<T>] {
  const { listerWatcher, handler, keyFunc = deletionHandlingMetaNamespaceKey } = options;
  const clock = options.reflector?.clock ?? realClock;
  const logger = guardedLogger(options.reflector?.logger);
  const name = options.reflector?.name ?? listerWatcher.description ?? "objects";
  const store = newCache<T, I>(keyFunc, (options.indexers ?? {}) as Indexers<T, I>, {});
  const quarantine = new Quarantine({ ...options.reflector, name, logger });
  const makeQueue = options.queue ?? newDeltaFIFO<T>;
  const knownObjects = store as unknown as Indexer<T>;
  const queue = makeQueue({
    keyFunc,
    knownObjects,
    transform: options.transform && transformOnce(options.transform),
    onTransformFailure: quarantiner(keyFunc, knownObjects, quarantine),
    clock,
    logger,
    name,
  });
  const applier = new DeltaApplier<Held<T>>({
    store,
    receiver: new OneHandler(
      newCaller(handler, store.holding),
      logsThrown({ logger, name }, "the handler"),
    ),
    skipsUnchanged: false,
    stepObjects: STEP_OBJECTS,
    quarantine,
    observers: new Listeners(() => {}),
  });
  const controller = new Controller<T>({
    listerWatcher,
    queue,
    process: applier.apply,
    reflector: {
      ...options.reflector,
      name,
      keyFunc,
      clock,
      logger,
      resyncPeriodMs: options.resyncPeriodMs ?? 0,
    },
  }, { quarantine, knownObjects: store });
  return [store, controller];
}

function newDeltaFIFO<T>(context: QueueContext<T>): Queue<T> {
  const { transform, ...rest } = context;
  return new DeltaFIFO<T>({
    ...rest,
    emitDeltaTypeReplaced: true,
    ...(transform === undefined ? {} : { transform }),
  });
}

/** The one handler of a plain informer: it is called in the turn of the store write. */
class OneHandler<T> implements NotificationReceiver<T> {
  readonly #call: (notification: Notification<T>) => unknown;
  readonly #onError: (error: unknown) => void;

  constructor(call: (notification: Notification<T>) => unknown, onError: (error: unknown) => void) {
    this.#call = call;
    this.#onError = onError;
  }

  distribute(notification: Notification<T>): void {
    callGuarded(() => this.#call(notification), this.#onError);
  }

  distributeList(list: ListNotifications<T>): void {
    const cursor = list.cursor(true);
    for (let next = cursor.shift(); next !== undefined; next = cursor.shift()) this.distribute(next);
  }

  /** Nothing can be prepared: each notification is a call. */
  *prepareList(): Steps {}

  dropPrepared(): void {}
}
