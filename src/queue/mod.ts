/**
 * The queues between a reflector and a consumer: `RealFIFO` keeps the order of all events, `DeltaFIFO`
 * gathers the deltas of each object, `FIFO` keeps the newest state of each.
 *
 * @module
 */

export {
  type BookmarkInfo,
  type Delta,
  type Deltas,
  type DeltaType,
  newest,
  type ObjectDelta,
  oldest,
  type ReplacedAllInfo,
  type SyncAllInfo,
} from "./queue.ts";
export { DeltaFIFO, type DeltaFIFOOptions, type ObjectDeltas } from "./delta_fifo.ts";
export { FIFOClosedError, NotDeltasError, ZeroLengthDeltasError } from "./errors.ts";
export { FIFO } from "./fifo.ts";
export type { QueueOptions, SlowTraceOptions } from "./atomic_fifo.ts";
export type {
  KeyListerGetter,
  PopOptions,
  PopProcessFunc,
  Queue,
  Queued,
  ReflectorStore,
  SyncProcessFunc,
} from "./queue.ts";
export { RealFIFO, type RealFIFOOptions } from "./real_fifo.ts";
