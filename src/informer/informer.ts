/**
 * The plain informer: one handler, one store.
 * @module
 */

import { deletionHandlingMetaNamespaceKey, type KeyFunc } from "../meta/keys.ts";
import { DeltaFIFO } from "../queue/delta_fifo.ts";
import type { Queue } from "../queue/queue.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import { Quarantine } from "../reflector/quarantine.ts";
import type { ReflectorOptions } from "../reflector/reflector_options.ts";
import type { Indexers, IndexersOption, NoIndexNames } from "../store/index_func.ts";
import { newCache } from "../store/cache.ts";
import type { Held } from "../store/holding.ts";
import type { Indexer } from "../store/indexer.ts";
import { type TransformFunc, transformOnce } from "../store/transform.ts";
import { realClock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { callGuarded } from "../util/guarded.ts";
import { consoleLogger } from "../util/logger.ts";
import { STEP_OBJECTS, type Steps } from "../util/turns.ts";
import { type Controller, newWiredController } from "./controller.ts";
import { DeltaApplier, quarantiner } from "./delta_applier.ts";
import type { Notification, ResourceEventHandler } from "./event_handler.ts";
import type { ListNotifications, NotificationReceiver } from "./list_notifications.ts";
import { newCaller } from "./processor_listener.ts";
import { isSameState } from "./same_state.ts";
import type { QueueContext } from "./shared_informer_options.ts";

/**
 * Options of {@linkcode newInformer}.
 *
 * @category Informers
 */
export interface InformerOptions<T, I extends string = NoIndexNames> {
  readonly listerWatcher: ListerWatcher<T>;
  /** Called in the turn of each store write; its promises are not awaited. What it throws is logged. */
  readonly handler: ResourceEventHandler<T>;
  /** How often everything is handed out again, in milliseconds; 0, the default, is never. */
  readonly resyncPeriodMs?: number;
  /** Indices of the store. */
  readonly indexers?: IndexersOption<T, I>;
  /** Runs once on every object before it is queued, and may change it. */
  readonly transform?: TransformFunc<T>;
  /** Keys; `deletionHandlingMetaNamespaceKey` by default. */
  readonly keyFunc?: KeyFunc;
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
 *
 * Mirrors client-go's `NewInformer` and `NewIndexerInformer`, over a `DeltaFIFO` as in its 1.24 generation.
 * There a handler that panics ends the program; here an error is logged, and the informer continues.
 *
 * @returns The store, for reading only, and the controller, to be run.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { newInformer } from "@listwatch/cache/informer";
 * const [store, controller] = newInformer<KubernetesObject>({
 *   listerWatcher: newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods"),
 *   handler: { onDelete: (deleted) => console.log(deleted.key) },
 * });
 * await controller.run(AbortSignal.abort());
 * console.log(store.size);
 * ```
 *
 * @category Informers
 */
export function newInformer<T, I extends string = NoIndexNames>(
  options: InformerOptions<T, I>,
): [store: Indexer<T, I>, controller: Controller<T>] {
  const { listerWatcher, handler, keyFunc = deletionHandlingMetaNamespaceKey } = options;
  const clock = options.reflector?.clock ?? realClock;
  const logger = options.reflector?.logger ?? consoleLogger;
  const name = options.reflector?.name ?? listerWatcher.description ?? "objects";
  const store = newCache<T, I>(keyFunc, (options.indexers ?? {}) as Indexers<T, I>, {});
  const quarantine = new Quarantine({ ...options.reflector, name, clock, logger });
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
    store: store.held,
    keyFunc,
    isSame: isSameState,
    receiver: new OneHandler(
      newCaller(handler, store.holding),
      (error) => logger.error(`${name}: the handler threw: ${errorMessage(error)}`, { error }),
    ),
    skipsUnchanged: false,
    stepObjects: STEP_OBJECTS,
    quarantine,
  });
  const controller = newWiredController<T>({
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

/** The one handler of a plain informer: called in the turn of the store write. */
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
