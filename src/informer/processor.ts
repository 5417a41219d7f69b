/** The handlers of an informer. */

import { DeletedFinalStateUnknown, type DeletedObject } from "../meta/object.ts";
import type { FailedTry } from "../reflector/failures.ts";
import type { Held, Holding } from "../store/holding.ts";
import { abortable, sleepUnlessAborted, withTimeLimit } from "../util/abort.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import { InitialItems, Latch, type SyncedMethod } from "../util/deferred.ts";
import { errorMessage, isThenable } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import type { MetricLabels, Metrics } from "../util/metrics.ts";
import { Pacer, type Steps, TurnQueue, type Turns } from "../util/turns.ts";
import { InformerStateError } from "./errors.ts";
import type { Notification, ResourceEventHandler } from "./events.ts";
import { type ListCursor, ListNotifications, type NotificationReceiver } from "./list_application.ts";
import { isInitial, Mailbox, type MailboxOptions } from "./mailbox.ts";
import type { HandlerOptions, HandlerRegistration } from "./shared_informer_options.ts";

export interface ProcessorOptions<T> {
  /** Opens the objects of notifications; its keys are those by which they are merged. */
  readonly holding: Pick<Holding<T>, "open" | "keyFunc">;
  /** How often the informer looks whether a resync is due, in milliseconds; 0 for never. */
  readonly resyncCheckPeriodMs: number;
  /** Receives measurements; there are none by default. */
  readonly metrics?: Metrics | undefined;
  /** The error of the informer's last request, while the server cannot be read. */
  readonly failure?: () => FailedTry | undefined;
  /** How long a stop waits for a call of a handler, in milliseconds; 10,000 by default. */
  readonly stopTimeoutMs?: number | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The name in log lines. */
  readonly name: string;
}

/** A handler's options, and its resync period. */
type HandlerWishes = HandlerOptions & { readonly resyncPeriodMs: number };

/** Hands each notification to all listeners, or to those whose resync is due. */
export class Processor<T> implements NotificationReceiver<Held<T>> {
  readonly #options: ProcessorOptions<T>;
  readonly #listeners = new Set<ProcessorListener<T>>();
  // Removed, and in the middle of a call.
  readonly #leaving = new Map<HandlerRegistration, Promise<void>>();
  readonly #turns = new TurnQueue();
  #count = 0;
  #hasSynced = false;
  /**
   * How often the informer looks whether a resync is due: the shortest period that was requested before it
   * started.
   */
  resyncCheckPeriodMs: number;

  constructor(options: ProcessorOptions<T>) {
    this.#options = options;
    this.resyncCheckPeriodMs = options.resyncCheckPeriodMs;
  }

  add(
    handler: ResourceEventHandler<T>,
    { resyncPeriodMs, name: own, mailbox = {} }: HandlerWishes,
    present?: Held<T>[],
  ): HandlerRegistration {
    const { logger, name } = this.#options;
    const listener: ProcessorListener<T> = new ProcessorListener<T>(this.#options, {
      handler,
      mailbox,
      onOverflow: () => {
        logger.error(
          `${listener.name} was removed: more than ${listener.backlog - 1} notifications wait for it, ` +
            "and it wants every one of them",
        );
        this.remove(listener);
      },
      resyncPeriodMs: this.#resyncPeriodOf(resyncPeriodMs, present !== undefined),
      turns: this.#turns,
      name: `${name}: ${own ?? `handler ${++this.#count}`}`,
    });
    this.#listeners.add(listener);
    if (present !== undefined) {
      listener.addList(new ListNotifications({ isInInitialList: true }, present));
      if (this.#hasSynced) listener.upstreamHasSynced();
    }
    return listener;
  }

  /** The informer has synced: the whole initial list was distributed. */
  upstreamHasSynced(): void {
    this.#hasSynced = true;
    for (const listener of this.#listeners) listener.upstreamHasSynced();
  }

  /** The period of a handler that wants this one; it may shorten the informer's before that has started. */
  #resyncPeriodOf(wantedMs: number, started: boolean): number {
    const { logger, name } = this.#options;
    const checkMs = this.resyncCheckPeriodMs;
    if (wantedMs > 0 && wantedMs < MINIMUM_RESYNC_PERIOD_MS) {
      logger.warn(
        `${name}: a resync period of ${wantedMs} ms is too short; it is ${MINIMUM_RESYNC_PERIOD_MS} ms instead`,
      );
    }
    const periodMs = wantedMs > 0 ? Math.max(wantedMs, MINIMUM_RESYNC_PERIOD_MS) : 0;
    if (periodMs === 0 || periodMs >= checkMs) return periodMs;
    if (!started) return this.resyncCheckPeriodMs = periodMs;
    logger.warn(
      `${name}: a resync period of ${periodMs} ms is shorter than the running informer's ${checkMs} ms`,
    );
    return checkMs;
  }

  /**
   * Removes a listener, and drops what waits for it; one that is not there (any more) is fine.
   * @returns Resolves when its running call has ended, unless it is that call which removes it.
   */
  async remove(registration: HandlerRegistration): Promise<void> {
    const listener = registration as ProcessorListener<T>;
    if (this.#listeners.delete(listener)) {
      listener.isRemoved = true;
      this.#leaving.set(listener, listener.stop());
    }
    await this.#leaving.get(listener);
    this.#leaving.delete(listener);
  }

  /** The informer is being stopped: by a handler, it may be. */
  stopping(): void {
    for (const listener of this.#listeners) listener.stopping();
  }

  /** Stops every listener; resolves when all running calls have ended, of removed ones too. */
  async stop(): Promise<void> {
    const stopping = [...this.#leaving.values()];
    for (const listener of this.#listeners) stopping.push(listener.stop());
    await Promise.all(stopping);
  }

  /**
   * Queues a notification for every listener; an update whose two states are the same, for those that are
   * syncing.
   */
  distribute(notification: Notification<Held<T>>, isUnchanged: boolean): void {
    for (const listener of this.#listeners) {
      if (!isUnchanged || listener.isSyncing) listener.add(notification);
    }
  }

  /**
   * Does in steps what a list costs for each object, for listeners that something waits for: it is merged
   * with that. To be followed by {@linkcode Processor.distributeList} within the turn of the last step, or by
   * {@linkcode Processor.dropPrepared}.
   */
  *prepareList(list: ListNotifications<Held<T>>, stepObjects: number): Steps {
    let objects = 0;
    const unprepared = () => [...this.#listeners].find((listener) => listener.needsPreparation(list));
    for (let listener = unprepared(); listener !== undefined; listener = unprepared()) {
      for (const _ of listener.prepareList(list)) if (++objects % stepObjects === 0) yield;
    }
  }

  /** Hands out what waits as it is, where a list was prepared and is not distributed. */
  dropPrepared(): void {
    for (const listener of this.#listeners) listener.dropPrepared();
  }

  /** Queues what a list says for every listener; updates of unchanged objects, for those that are syncing. */
  distributeList(list: ListNotifications<Held<T>>): void {
    for (const listener of this.#listeners) listener.addList(list);
  }

  /**
   * Whether a resync is due for any listener; from now on updates of unchanged objects are for those only.
   */
  shouldResync(): boolean {
    const nowMs = monotonicNow(this.#options.clock);
    let due = false;
    for (const listener of this.#listeners) due = listener.beginsResync(nowMs) || due;
    return due;
  }
}

interface ListenerOptions<T> {
  readonly handler: ResourceEventHandler<T>;
  /** The handler's name in log lines. */
  readonly name: string;
  readonly mailbox: MailboxOptions;
  /** Called when too many notifications wait, and the handler is to be removed. */
  readonly onOverflow: () => void;
  /** The handler's resync period, in milliseconds; 0 for none. */
  readonly resyncPeriodMs: number;
  /** The turns for which pumps wait after they have called handlers for a while. */
  readonly turns: Turns;
}

const MINIMUM_RESYNC_PERIOD_MS = 1_000;
const DEFAULT_STOP_TIMEOUT_MS = 10_000;
// A pause after a handler throws, so that it does not flood the log: `processorListener.run` of
// https://github.com/kubernetes/client-go/blob/master/tools/cache/shared_informer.go
const PAUSE_AFTER_ERROR_MS = 1_000;
// Longer than the queue's, so that handlers keep up with it, and receive objects that are still decoded.
const TURN_MS = 8;
const TURN_CALLS = 1_000;

const IN_WORDS = { add: "an add", update: "an update", delete: "a delete" } as const;

/**
 * One handler, the notifications that wait for it, and the one pump that delivers them: strictly in order,
 * one at a time, awaiting the handler's promises. Handlers do not wait for each other.
 */
class ProcessorListener<T> implements HandlerRegistration {
  readonly #informer: ProcessorOptions<T>;
  readonly #turns: Turns;
  readonly #callHandler: (notification: Notification<Held<T>>) => unknown;
  readonly #pending: Mailbox<Held<T>>;
  readonly #stop = new AbortController();
  readonly #stopped = new Latch();
  /** The objects of the initial list that the handler has not handled. */
  readonly #initial = new InitialItems();
  readonly #labels: MetricLabels;
  readonly name: string;
  isRemoved = false;
  readonly #resyncPeriodMs: number;
  /** Whether the next resync's updates are for this listener. */
  isSyncing = true;
  #nextResyncMs: number;
  #pump: Promise<void> | undefined;
  /** Whether the handler's own code is on the stack: up to its first `await`. */
  #isInHandler = false;
  /** The running call has requested the stop itself: it may be the one that waits for its end. */
  #stopsItself = false;
  /** The list that was prepared last. */
  #prepared: ListCursor<Held<T>> | undefined;

  constructor(informer: ProcessorOptions<T>, own: ListenerOptions<T>) {
    this.#informer = informer;
    this.#turns = own.turns;
    this.#callHandler = newCaller(own.handler, informer.holding);
    this.#pending = new Mailbox<Held<T>>(own.mailbox, informer.holding.keyFunc, {
      onInitialMerged: () => this.#initial.popped(1),
      onRemove: own.onOverflow,
    });
    this.name = own.name;
    this.#labels = { name: informer.name, handler: own.name };
    this.#resyncPeriodMs = own.resyncPeriodMs;
    this.#nextResyncMs = monotonicNow(informer.clock) + own.resyncPeriodMs;
  }

  get backlog(): number {
    return this.#pending.length;
  }

  failure(): FailedTry | undefined {
    return this.#informer.failure?.();
  }

  hasSynced(): boolean {
    return this.#initial.latch.isOpen;
  }

  readonly synced: SyncedMethod = async (signal) => {
    if (this.hasSynced()) return;
    await abortable(Promise.race([this.#initial.latch.opened, this.#stopped.opened]), signal);
    if (this.hasSynced()) return;
    throw new InformerStateError(`Cannot wait for ${this.name}: it was stopped before it had synced`);
  };

  /** Queues a notification; it is delivered in a later microtask, never in this turn of the caller. */
  add(notification: Notification<Held<T>>): void {
    if (this.#stop.signal.aborted) return;
    if (isInitial(notification)) this.#initial.remaining++;
    this.#pending.push(notification);
    this.#queued();
  }

  /**
   * Whether a list is to be merged with the waiting notifications, in steps: see {@linkcode
   * ProcessorListener.prepareList}.
   */
  needsPreparation(list: ListNotifications<Held<T>>): boolean {
    if (this.#stop.signal.aborted || this.#prepared?.list === list) return false;
    return this.#pending.mergesWith(list.cursor(this.isSyncing));
  }

  /** Does most of the work of {@linkcode ProcessorListener.addList} before, in steps of one object. */
  *prepareList(list: ListNotifications<Held<T>>): Steps {
    const cursor = list.cursor(this.isSyncing);
    yield* this.#pending.prepareList(cursor);
    this.#prepared = cursor;
  }

  /** Drops the prepared list: waiting notifications are delivered as they are. */
  dropPrepared(): void {
    this.#prepared = undefined;
    this.#pending.resume();
    this.#queued();
  }

  /** Queues what a list says; updates of unchanged objects only if it is syncing. */
  addList(list: ListNotifications<Held<T>>): void {
    if (this.#stop.signal.aborted) return;
    const cursor = this.#prepared?.list === list ? this.#prepared : list.cursor(this.isSyncing);
    this.#prepared = undefined;
    this.#initial.remaining += list.initialAdds;
    this.#pending.pushList(cursor);
    this.#queued();
  }

  /** The informer has synced: all of the initial list has been queued here. */
  upstreamHasSynced(): void {
    this.#initial.populate(this.#initial.remaining);
  }

  /** The listener or its informer is being stopped: records whether the handler's running call does it. */
  stopping(): void {
    this.#stopsItself ||= this.#isInHandler;
  }

  /**
   * Drops what waits, and resolves when a running call has ended. Not if that call itself requested the stop:
   * it would wait for its own end. A request after the call's first `await` cannot be distinguished from any
   * other; so no call is awaited longer than `stopTimeoutMs`, and the log names one that was not.
   */
  stop(): Promise<void> {
    this.stopping();
    this.#stop.abort();
    this.#stopped.open();
    this.#pending.clear();
    return this.#pump === undefined || this.#stopsItself ? Promise.resolve() : this.#ended(this.#pump);
  }

  /** Whether its resync is due; if so, the period counts from now. */
  beginsResync(nowMs: number): boolean {
    this.isSyncing = this.#resyncPeriodMs > 0 && nowMs >= this.#nextResyncMs;
    if (this.isSyncing) this.#nextResyncMs = nowMs + this.#resyncPeriodMs;
    return this.isSyncing;
  }

  #queued(): void {
    this.#measureBacklog();
    this.#pump ??= this.#run();
  }

  #measureBacklog(): void {
    this.#informer.metrics?.gauge("informer_handler_backlog", this.#pending.length, this.#labels);
  }

  async #ended(pump: Promise<void>): Promise<void> {
    const { clock, logger, stopTimeoutMs = DEFAULT_STOP_TIMEOUT_MS } = this.#informer;
    const newError = () => new Error("it has not ended");
    await withTimeLimit(() => pump, { ms: stopTimeoutMs, newError, clock }).catch(() =>
      logger.warn(
        `${this.name}: a call has not ended ${stopTimeoutMs} ms after the stop, and is no longer awaited ` +
          "(a call that awaits the stop of what called it waits for itself)",
      )
    );
  }

  async #run(): Promise<void> {
    await null; // out of the turn that wrote the store
    const { clock, metrics } = this.#informer;
    const { signal } = this.#stop;
    const pacer = new Pacer({ units: TURN_CALLS, ms: TURN_MS, clock, turns: this.#turns });
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) {
      this.#measureBacklog();
      const startMs = metrics === undefined ? 0 : monotonicNow(clock);
      const result = this.#call(next);
      const failed = typeof result === "boolean" ? result : await result; // only a promise costs a turn
      metrics?.observe(
        "informer_handler_duration_seconds",
        (monotonicNow(clock) - startMs) / 1_000,
        this.#labels,
      );
      if (isInitial(next)) this.#initial.popped(1);
      if (failed) await sleepUnlessAborted(PAUSE_AFTER_ERROR_MS, { clock, signal });
      if (pacer.spend()) await pacer.rest();
    }
    this.#pump = undefined;
  }

  #call(notification: Notification<Held<T>>): boolean | Promise<boolean> {
    try {
      this.#isInHandler = true;
      const result = this.#callHandler(notification);
      if (!isThenable(result)) return false;
      return Promise.resolve(result).then(() => false, (error) => this.#report(notification, error));
    } catch (error) {
      return this.#report(notification, error);
    } finally {
      this.#isInHandler = false;
    }
  }

  #report({ type }: Notification<Held<T>>, error: unknown): true {
    this.#informer.logger.error(
      `${this.name} threw when notified of ${IN_WORDS[type]}: ${errorMessage(error)}`,
      { error },
    );
    return true;
  }
}

/** Makes what calls a handler's method for a notification, if it has one, with the objects opened. */
export function newCaller<T>(
  handler: ResourceEventHandler<T>,
  holding: Pick<Holding<T>, "open">,
): (notification: Notification<Held<T>>) => unknown {
  const open = (held: Held<T>) => holding.open(held);
  return (notification) => {
    switch (notification.type) {
      case "add":
        return handler.onAdd?.(open(notification.object), notification.isInInitialList);
      case "update": {
        if (handler.onUpdate === undefined) return;
        const { oldObject, object } = notification;
        const old = open(oldObject);
        // A resync has the same state twice: the handler receives one object.
        return handler.onUpdate(old, object === oldObject ? old : open(object));
      }
      case "delete":
        return handler.onDelete?.(openDeleted(notification.deleted, open));
    }
  };
}

function openDeleted<T>(
  deleted: DeletedObject<Held<T>>,
  open: (held: Held<T>) => T,
): DeletedObject<T> {
  const { key, object: held } = deleted;
  const object = held === undefined ? held : open(held);
  if (object === undefined || object === held) return deleted as DeletedObject<T>;
  return deleted.finalStateUnknown
    ? new DeletedFinalStateUnknown(key, object)
    : { finalStateUnknown: false, key, object };
}
