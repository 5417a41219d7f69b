/** Options of a shared informer, and of its handlers. */

import type { KeyFunc } from "../meta/object.ts";
import type { NamespaceNames } from "../meta/list_watch.ts";
import type { Queue } from "../queue/queue.ts";
import type { FailedTry } from "../reflector/failures.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import { checkReflectorOptions, type ReflectorOptions } from "../reflector/reflector_options.ts";
import type { IndexersOption, NoIndexNames } from "../store/index_func.ts";
import type { StoreOptions } from "../store/cache.ts";
import type { Indexer } from "../store/store.ts";
import type { OnTransformFailure, TransformFunc } from "../store/transform.ts";
import type { Clock } from "../util/clock.ts";
import type { SyncedMethod } from "../util/deferred.ts";
import type { Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { MailboxOptions } from "./mailbox.ts";
import type { NamespaceSet } from "./namespaces/namespace_set.ts";
import type { InformerSnapshot } from "./snapshot/informer_snapshot.ts";

/** The objects from which an informer's queue is made. */
export interface QueueContext<T> {
  readonly keyFunc: KeyFunc;
  /** The informer's store: what the consumer knows. */
  readonly knownObjects: Indexer<T>;
  readonly transform: TransformFunc<T> | undefined;
  /**
   * Reports an object of a list that the transform throws for, and replaces it by its last accepted state.
   */
  readonly onTransformFailure: OnTransformFailure<T>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly name: string;
}

/**
 * Options of {@linkcode SharedIndexInformer}. All may be left out.
 *
 * @category Informers
 */
export interface SharedIndexInformerOptions<T, I extends string = NoIndexNames> {
  /** The informer's name in log lines and errors; the source's description by default. */
  readonly name?: string;
  /** Indices that are there from the start. Their names are the ones that lookups accept. */
  readonly indexers?: IndexersOption<T, I>;
  /**
   * The resync period of handlers that do not ask for their own, in milliseconds; 0, the default, is none.
   */
  readonly resyncPeriodMs?: number;
  /**
   * How long a stop, and the removal of a handler, wait for a running call of a handler, in milliseconds;
   * 10,000 by default, `Infinity` for as long as it takes. The log names a call that is no longer awaited.
   */
  readonly handlerStopTimeoutMs?: number;
  /** Runs once on every object before it is queued, and may change it. */
  readonly transform?: TransformFunc<T>;
  /** Keys; `deletionHandlingMetaNamespaceKey` by default. */
  readonly keyFunc?: KeyFunc;
  /**
   * Makes the queue; an atomic `RealFIFO` by default, which keeps the order of events across objects. With
   * that one, events that are sent again (an older resourceVersion than the store has reached) are skipped;
   * with any other they are applied, as client-go does.
   */
  readonly queue?: (context: QueueContext<T>) => Queue<T>;
  /**
   * Whether handlers receive an update, whose old and new object are the same state, for objects that a
   * relist brings unchanged or that are sent again as they are stored. `true` by default, as client-go does;
   * with `false` an update that is no resync is always a change.
   */
  readonly notifyUnchanged?: boolean;
  /**
   * How objects are held in the store, in the queue and for handlers: as they are by default; as short texts,
   * for a quarter of the memory, with `shortTexts()`. Handlers, observers and readers receive objects in
   * either case.
   */
  readonly storage?: StoreOptions<T>["storage"];
  /**
   * Loads the content before the first request, from where it was saved as it changed, and continues by a
   * watch instead of a list. Until the server has confirmed it, the informer is not synced: see
   * `SharedIndexInformer.isRestored`. Needs the default queue; beside a transform, the snapshot's option
   * `identity`; and a source that has an `identity`, as those of a `Cluster` have.
   */
  readonly snapshot?: InformerSnapshot;
  /**
   * For development: freezes every object (after the transform), so that code which changes what it was
   * handed throws where it does so. `false` by default.
   */
  readonly freezeObjects?: boolean;
  /**
   * At most so many objects of a list, a resync or an index, or so many changes, are processed before other
   * tasks get a turn of the event loop; 1,000 by default, and fewer where they take longer than 4 ms. For
   * runtimes whose clock does not advance while code runs, as deployed Workers do, and for tests. Readers,
   * observers and handlers see all of a list as one step, however many turns it took.
   */
  readonly turnObjects?: number;
  /** Receives measurements, the reflector's too; there are none by default. */
  readonly metrics?: Metrics;
  /** Options of the reflector; its resync options are the informer's. */
  readonly reflector?: Omit<
    ReflectorOptions,
    "resyncPeriodMs" | "shouldResync" | "keyFunc" | "clock" | "logger"
  >;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * Options of `addEventHandler`.
 *
 * @category Informers
 */
export interface HandlerOptions {
  /** The handler's name in log lines; by default `handler 1` for the first of an informer, and so on. */
  readonly name?: string;
  /** This handler's own resync period, in milliseconds; 0 for none. The informer's by default. */
  readonly resyncPeriodMs?: number;
  /**
   * How many notifications may wait for this handler, and what happens when more do; merged by object by
   * default.
   */
  readonly mailbox?: MailboxOptions;
}

/**
 * A handler that was added; pass it to `removeEventHandler`.
 * Mirrors client-go's `ResourceEventHandlerRegistration`.
 *
 * @category Informers
 */
export interface HandlerRegistration {
  /** The handler's name, after that of its informer. */
  readonly name: string;
  /** Whether the informer has synced and this handler has handled every object of its initial list. */
  hasSynced(): boolean;
  /**
   * Resolves when that becomes true; rejects with the signal's reason, or with an `InformerStateError` when
   * the handler is removed or the informer stops before.
   */
  readonly synced: SyncedMethod;
  /** The error of the informer's last request, while the server cannot be read: why it has not synced. */
  failure(): FailedTry | undefined;
  /** How many notifications wait for this handler. */
  readonly backlog: number;
  /** Whether the handler was removed: on request, or because its mailbox overflowed. */
  readonly isRemoved: boolean;
}

/**
 * The set of namespaces of a source that has one.
 * @throws {TypeError} The source's namespaces are not valid ones.
 */
export function namespaceSetOf(
  { namespaces, description }: ListerWatcher<unknown>,
): NamespaceSet | undefined {
  if (namespaces === undefined || isNamespaceSet(namespaces)) return namespaces;
  throw new TypeError(`Cannot make an informer of ${description}: its \`namespaces\` must be a NamespaceSet`);
}

function isNamespaceSet(namespaces: NamespaceNames): namespaces is NamespaceSet {
  return "follow" in namespaces;
}

/** Refuses what no informer could work with, before anything is made of it. */
export function checkInformerOptions<T, I extends string>(
  name: string,
  options: SharedIndexInformerOptions<T, I>,
): void {
  const { resyncPeriodMs = 0, handlerStopTimeoutMs, reflector } = options;
  requireNumbers(`make an informer of ${name}`, { handlerStopTimeoutMs }, { mayBeInfinite: true });
  checkReflectorOptions(name, { ...reflector, resyncPeriodMs });
}
