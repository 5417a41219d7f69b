/**
 * The queue of an informer, and what becomes of objects on their way into it.
 * @module
 */

import type { Queue } from "../queue/queue.ts";
import { RealFIFO } from "../queue/real_fifo.ts";
import type { Quarantine } from "../reflector/quarantine.ts";
import type { Held } from "../store/holding.ts";
import { type Taken, transformer, type TransformFunc, transformOnce } from "../store/transform.ts";
import { freezeObject } from "./freeze_object.ts";
import type { InformerStorage } from "./informer_storage.ts";
import { quarantiner } from "./delta_applier.ts";
import { Intake } from "./intake.ts";
import type { QueueContext, SharedIndexInformerOptions } from "./shared_informer_options.ts";

/** What the queue of an informer is made from. */
export interface InformerQueueOptions<T, I extends string>
  extends
    Pick<SharedIndexInformerOptions<T, I>, "queue" | "freezeObjects">,
    Pick<QueueContext<T>, "transform" | "clock" | "logger" | "name"> {
  readonly storage: InformerStorage<T, I>;
  /** Receives what could not be queued. */
  readonly quarantine: Quarantine;
}

/** A queue, and what takes the objects of lists in for it; none for a queue of the user's own. */
export interface InformerQueue<T> {
  readonly queue: Queue<Held<T>>;
  readonly intake: Intake<T> | undefined;
  /** Transforms an object of a list when it is stored, if anything does; `undefined` where nothing of it is to be stored. */
  readonly takeIn: ((object: Held<T>) => Taken<Held<T>> | undefined) | undefined;
}

/** Makes the queue that the options ask for: an atomic `RealFIFO` unless there is one of the user's own. */
export function newInformerQueue<T, I extends string>(options: InformerQueueOptions<T, I>): InformerQueue<T> {
  const { storage, clock, logger, name, quarantine } = options;
  const { indexer, held, holding: { keyFunc } } = storage;
  const common = { keyFunc, clock, logger, name };
  const whole = wholeTransform(options);
  const transform = whole && transformOnce(whole);
  if (options.queue !== undefined) {
    const onRejected = quarantiner(keyFunc, indexer, quarantine);
    const queue = options.queue({ ...common, knownObjects: indexer, transform, onRejected });
    return { queue: queue as Queue<Held<T>>, intake: undefined, takeIn: undefined };
  }
  const intake = new Intake<T>({ ...storage, transform });
  const queue = new RealFIFO<Held<T>>({
    ...common,
    ...(intake.queue === undefined ? {} : { transform: intake.queue }),
    transformsLists: false,
    atomicEvents: true,
    emitDeltaTypeBookmark: true,
  });
  return {
    queue,
    intake,
    takeIn: intake.queue && transformer(intake.queue, quarantiner(keyFunc, held, quarantine)),
  };
}

/** What runs on every object before it is queued. */
function wholeTransform<T, I extends string>(
  { transform, freezeObjects }: InformerQueueOptions<T, I>,
): TransformFunc<T> | undefined {
  if (!freezeObjects) return transform;
  return (object) => freezeObject(transform === undefined ? object : transform(object));
}
