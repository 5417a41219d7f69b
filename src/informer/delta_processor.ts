/**
 * What a shared informer does with the deltas of its queue.
 * @module
 */

import type { Delta, Deltas } from "../queue/delta.ts";
import type { Quarantine } from "../reflector/quarantine.ts";
import type { Held } from "../store/holding.ts";
import type { Steps } from "../util/steps.ts";
import type { Notification } from "./event_handler.ts";
import { EventOrder } from "./event_order.ts";
import type { InformerMetrics } from "./informer_metrics.ts";
import type { InformerStorage } from "./informer_storage.ts";
import { type DeltaSink, listSteps, processDeltas } from "./process_deltas.ts";
import type { Processor } from "./processor.ts";
import type { IsSameState } from "./same_state.ts";
import type { StoreEvent } from "./store_event.ts";

/** What a {@linkcode DeltaProcessor} needs. */
export interface DeltaProcessorOptions<T, I extends string> {
  readonly storage: InformerStorage<T, I>;
  readonly processor: Processor<T>;
  readonly metrics: InformerMetrics;
  /** Whether the queue keeps the order of events across objects. */
  readonly keepsOrder: boolean;
  /** Whether handlers are not told of a state that is stored already. */
  readonly skipsUnchanged: boolean;
  /** Those who are told within the turn of each write: read at every write. */
  readonly observers: ReadonlySet<(event: StoreEvent<Held<T>>) => void>;
  /** Calls an observer; never throws. */
  readonly guarded: (call: () => unknown) => void;
  /** Receives what could not be stored, and changes that may have been lost. */
  readonly quarantine: Quarantine;
  /** Told once, when it turns out that the server's versions do not ascend. */
  readonly onUnordered: () => void;
  /** What becomes of an object of a list before it is stored, as in {@linkcode DeltaSink}. */
  readonly takeIn: DeltaSink<Held<T>>["takeIn"];
  /** How many objects there are to a step of a list. */
  readonly stepObjects: number;
  /** Told that the store stands at another version, after everyone else. */
  readonly moved: () => void;
}

/** Writes deltas into the store and, in the same turn, tells observers and handlers. */
export class DeltaProcessor<T, I extends string> {
  readonly #options: DeltaProcessorOptions<T, I>;
  readonly #sink: DeltaSink<Held<T>>;

  constructor(options: DeltaProcessorOptions<T, I>) {
    this.#options = options;
    this.#sink = newSink(options);
  }

  /** Applies deltas of the queue. */
  process(deltas: Deltas<Held<T>>, isInInitialList: boolean): void {
    const { storage: { held, holding }, metrics } = this.#options;
    const processed = metrics.time("informer_processing_latency_seconds");
    processDeltas(held, this.#sink, deltas, isInInitialList, holding.keyFunc);
    if (deltas[0].type === "ReplacedAll") holding.listStored();
    this.#written(processed);
  }

  /** Applies a list, or hands everything out again, in steps, as one. */
  *processList(
    delta: Extract<Delta<Held<T>>, { type: "ReplacedAll" | "SyncAll" }>,
    isInInitialList: boolean,
  ): Steps {
    const { storage: { held, holding }, metrics } = this.#options;
    const processed = metrics.time("informer_processing_latency_seconds");
    yield* listSteps(held, this.#sink, delta, isInInitialList, holding.keyFunc);
    if (delta.type === "ReplacedAll") holding.listStored();
    this.#written(processed);
  }

  #written(processed: () => void): void {
    const { storage: { indexer }, metrics, moved } = this.#options;
    moved();
    processed();
    metrics.stored(indexer.size, indexer.lastStoreSyncResourceVersion());
  }
}

function newSink<T, I extends string>(options: DeltaProcessorOptions<T, I>): DeltaSink<Held<T>> {
  const { storage: { holding: { keyFunc }, isSame }, processor, metrics, observers, guarded } = options;
  return {
    isSame,
    notify: (notification) => processor.distribute(notification, { isSync: isSync(notification, isSame) }),
    notifyList: (list) => processor.distributeList(list),
    prepareList: (list, stepObjects) => processor.prepareList(list, stepObjects),
    dropPrepared: () => processor.dropPrepared(),
    takeIn: options.takeIn,
    stepObjects: options.stepObjects,
    get observes() {
      return observers.size > 0;
    },
    observe: (event) => {
      for (const observer of observers) guarded(() => observer(event));
    },
    quarantine: options.quarantine,
    skipsUnchanged: options.skipsUnchanged,
    ...(options.keepsOrder && {
      order: new EventOrder<Held<T>>({ keyFunc, isSame, onUnordered: options.onUnordered }),
      steppedOver: (type, isDoubtful) => {
        metrics.repeated(type);
        if (isDoubtful) options.quarantine.lost();
      },
    }),
  };
}

/** An update that brings the state that is there says nothing new: a resync, or an unchanged object of a relist. */
function isSync<T>(notification: Notification<T>, isSame: IsSameState<T>): boolean {
  return notification.type === "update" && isSame(notification.oldObject, notification.object);
}
