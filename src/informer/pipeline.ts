/**
 * The machine behind a shared informer, wired: reflector, intake, queue, applier, store, observers, handlers.
 *
 * By default the queue is an {@linkcode AtomicFIFO}: it keeps the order of events across objects, so the
 * applier can detect events that were sent again, and the reflector never goes back. The items of lists are
 * taken in as they are decoded. A queue of the user's own gets a transform that runs as an object is queued.
 * @module
 */

import type { Queue } from "../queue/queue.ts";
import { AtomicFIFO } from "../queue/atomic_fifo.ts";
import { Reflector } from "../reflector/reflector.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import { Quarantine } from "../reflector/quarantine.ts";
import type { ReflectorWiring } from "../reflector/reflector_options.ts";
import type { Cache } from "../store/cache.ts";
import type { Held } from "../store/holding.ts";
import type { Indexer } from "../store/store.ts";
import { transformer, type TransformFunc, transformOnce } from "../store/transform.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import type { Listeners } from "../util/errors.ts";
import { freezeObject } from "../util/json.ts";
import type { Logger } from "../util/logger.ts";
import { type Pace, stepObjectsOf } from "../util/turns.ts";
import { DeltaApplier, quarantiner } from "./delta_applier.ts";
import type { StoreEvent } from "./events.ts";
import type { InformerWaits } from "./waits.ts";
import type { ListApplicationOptions } from "./list_application.ts";
import { QueueDrain } from "./queue_drain.ts";
import type { NamespaceLoops } from "./namespaces/namespace_loops.ts";
import type { FollowedNamespaces } from "./namespaces/namespace_part.ts";
import type { Processor } from "./processor.ts";
import type { SharedIndexInformerOptions } from "./shared_informer_options.ts";
import type { InformerStatus, SnapshotRun } from "./snapshot/storage.ts";
import type { HoldText } from "../text/object_text_reader.ts";
import { isSameState } from "../meta/object.ts";

export interface PipelineOptions<T, I extends string> {
  readonly source: ListerWatcher<T>;
  /** The namespaces of a source that has a set of them. */
  readonly namespaces: FollowedNamespaces<T> | undefined;
  readonly store: Cache<T, I>;
  readonly processor: Processor<T>;
  readonly observers: Listeners<StoreEvent<Held<T>>>;
  readonly statusListeners: Listeners<InformerStatus>;
  readonly waits: InformerWaits;
  /** The informer's own options. */
  readonly informer: Pick<
    SharedIndexInformerOptions<T, I>,
    "queue" | "transform" | "freezeObjects" | "notifyUnchanged" | "metrics" | "reflector" | "snapshot"
  >;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly name: string;
}

export interface Pipeline<T> {
  /** Runs it until the signal is aborted; resolves when nothing is left running. */
  run(signal: AbortSignal): Promise<void>;
  /** The loops that list and watch: one of the source, or one of each of its namespaces. */
  readonly reflector: Reflector<Held<T>> | NamespaceLoops<Held<T>>;
  readonly snapshot: SnapshotRun<T> | undefined;
}

export function newPipeline<T, I extends string>(options: PipelineOptions<T, I>): Pipeline<T> {
  const { source, store, processor, informer, waits, pace, clock, logger, name } = options;
  const { metrics } = informer;
  const { holding } = store;
  const reflector = {
    ...informer.reflector,
    name,
    keyFunc: holding.keyFunc,
    clock,
    logger,
    resyncPeriodMs: processor.resyncCheckPeriodMs,
    shouldResync: () => processor.shouldResync(),
    metrics,
  };
  const listed = source as ListerWatcher<Held<T>>;
  const loops = options.namespaces?.begin(listed, reflector);
  const quarantine = loops?.quarantine ?? new Quarantine(reflector);
  const accepted = new WeakSet<WeakKey>();
  const { queue, intake, takeIn } = newQueue(options, quarantine, accepted);
  const hasSynced = () => {
    waits.synced.open();
    waits.restored.open();
    processor.upstreamHasSynced();
  };
  const snapshot = informer.snapshot?.begin<T>({
    ...options,
    accepted,
    quarantine,
    metrics,
    reflector: () => loop,
    onConfirmed: hasSynced,
  });
  const keepsOrder = informer.queue === undefined;
  const applier = new DeltaApplier<Held<T>>({
    store,
    receiver: processor,
    skipsUnchanged: informer.notifyUnchanged === false,
    takeIn,
    stepObjects: stepObjectsOf(pace),
    quarantine,
    onUnordered: keepsOrder
      ? () =>
        logger.warn(
          `${name}: the server sends changes under older versions than before; from now on every event is applied`,
        )
      : undefined,
    observers: options.observers,
    waiters: waits.versions,
    measurement: metrics && { metrics, name, clock },
  });
  // A loop gets the intake of its source's lists, or, with a queue of the user's, the store.
  const wiring: ReflectorWiring = intake === undefined
    ? { knownObjects: store }
    : { neverGoesBack: true, intake: intake.list, holdText: intake.holdText };
  const loop: Pipeline<T>["reflector"] = loops?.fill(queue as AtomicFIFO<Held<T>>, wiring) ??
    new Reflector<Held<T>>(listed, queue, reflector, {
      quarantine,
      ...wiring,
      snapshot,
    });
  const drain = new QueueDrain<Held<T>>({
    queue,
    process: applier.apply,
    processList: (delta, isInInitialList) => applier.applyList(delta, isInInitialList),
    applied: applier,
    pace,
    clock,
    logger,
    name,
  });
  queue.synced().then(() => {
    if (!snapshot?.isPending) hasSynced();
  }, () => {}); // it stopped before: callers that wait receive that from `synced`
  loop.onStatus((reflected) => {
    snapshot?.entered(reflected.phase);
    options.statusListeners.call({ ...reflected, ...snapshot?.status() });
  });
  const startMs = monotonicNow(clock);
  waits.synced.opened.then(() => {
    metrics?.observe("informer_sync_duration_seconds", (monotonicNow(clock) - startMs) / 1_000, { name });
  });
  return { run: (signal) => drain.run(loop, signal), reflector: loop, snapshot };
}

/** A queue, and what takes in the objects of lists for it; nothing does for a queue of the user's own. */
interface WiredQueue<T> {
  readonly queue: Queue<Held<T>>;
  readonly intake: Intake<T> | undefined;
  readonly takeIn: ListApplicationOptions<Held<T>>["takeIn"];
}

function newQueue<T, I extends string>(
  { store, informer, clock, logger, name }: PipelineOptions<T, I>,
  quarantine: Quarantine,
  /** Objects that were transformed. */
  accepted: WeakSet<WeakKey>,
): WiredQueue<T> {
  const { held, holding } = store;
  const { keyFunc } = holding;
  const common = { keyFunc, clock, logger, name };
  const whole = wholeTransform(informer);
  const once = whole && transformOnce(whole, accepted);
  if (informer.queue !== undefined) {
    const knownObjects: Indexer<T, I> = store;
    const onTransformFailure = quarantiner(keyFunc, store, quarantine);
    const queue = informer.queue({ ...common, knownObjects, transform: once, onTransformFailure });
    const take = holding.heldTransform(undefined);
    const takeIn = take && ((object: Held<T>) => ({ object: take(object) }));
    return { queue: queue as Queue<Held<T>>, intake: undefined, takeIn };
  }
  const intake = new Intake<T>(store, once);
  const queue = new AtomicFIFO<Held<T>>({
    ...common,
    transform: intake.queue,
    emitDeltaTypeBookmark: true,
  });
  const takeIn = intake.queue && transformer(intake.queue, quarantiner(keyFunc, held, quarantine));
  return { queue, intake, takeIn };
}

/** The function that runs on every object before it is queued. */
function wholeTransform<T>(
  { transform, freezeObjects }: { readonly transform?: TransformFunc<T>; readonly freezeObjects?: boolean },
): TransformFunc<T> | undefined {
  if (!freezeObjects) return transform;
  return (object) => freezeObject(transform === undefined ? object : transform(object));
}

/**
 * Takes objects in before they are queued: transforms and holds each once. An object of a list that has the
 * content of the stored one becomes the stored one, so that a list of known objects needs no memory.
 *
 * Objects in a form of their own are held as they arrive, so that never more than one of a list is in memory
 * as an object; objects held as they are, when they are queued.
 */
export class Intake<T> {
  readonly #store: Pick<Cache<T, never>, "held" | "holding">;
  readonly #transform: TransformFunc<T> | undefined;
  /** How texts of the source are held: absent with a transform, which needs objects. */
  readonly holdText: HoldText | undefined;
  /** The queue's transform, if it has anything to do. */
  readonly queue: TransformFunc<Held<T>> | undefined;
  /**
   * @param transform Runs on every object that is new, or may have changed, before it is held; returns what
   * it has returned before as it is.
   */
  constructor(store: Pick<Cache<T, never>, "held" | "holding">, transform: TransformFunc<T> | undefined) {
    this.#store = store;
    this.#transform = transform;
    const { holding } = store;
    this.holdText = transform === undefined ? holding.holdText : undefined;
    const take = holding.heldTransform(transform);
    if (take === undefined) return;
    this.queue = transform === undefined
      ? take
      : (object) => this.#stored(object) === object ? object : take(object);
  }

  /** Takes in an object of a list, as it was decoded. */
  readonly list = (item: unknown): Held<T> => {
    const { holding } = this.#store;
    const transform = this.#transform;
    const object = item as T;
    const known = this.#stored(object);
    if (known === object) return object;
    if (holding.isHeld(object)) {
      return known !== undefined && isSameState(holding, known, object) ? known : holding.holdEarly(object);
    }
    try {
      const taken = transform === undefined ? object : transform(object);
      if (known !== undefined && isSameState(holding, known, taken)) return known;
      const held = holding.holdEarly(taken);
      if (typeof held === "object" && held !== null) return held;
    } catch {
      // The object is transformed again when it is queued, and a failure is reported then.
    }
    return object;
  };

  #stored(object: Held<T>): Held<T> | undefined {
    try {
      return this.#store.held.getByKey(this.#store.holding.keyFunc(object));
    } catch {
      return undefined; // It has no key: the store reports that.
    }
  }
}
