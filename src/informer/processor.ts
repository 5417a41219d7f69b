/** The handlers of an informer. */

import type { FailedTry } from "../reflector/failures.ts";
import type { Held } from "../store/holding.ts";
import { monotonicNow } from "../util/clock.ts";
import type { SyncedMethod } from "../util/deferred.ts";
import { type Steps, TurnQueue } from "../util/turns.ts";
import type { Notification, ResourceEventHandler } from "./events.ts";
import { ProcessorListener, type ProcessorOptions } from "./processor_listener.ts";
import { ListNotifications, type NotificationReceiver } from "./list_application.ts";
import type { MailboxOptions } from "./mailbox.ts";

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

/** A handler's options, and its resync period. */
type ListenerOptions = HandlerOptions & { readonly resyncPeriodMs: number };

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

const MINIMUM_RESYNC_PERIOD_MS = 1_000;

/** Hands each notification to all listeners, or to those whose resync is due. */
export class Processor<T> implements NotificationReceiver<Held<T>> {
  readonly #options: ProcessorOptions<T>;
  readonly #listeners = new Set<ProcessorListener<T>>();
  readonly #byRegistration = new WeakMap<HandlerRegistration, ProcessorListener<T>>();
  // Removed, and in the middle of a call.
  readonly #leaving = new Map<ProcessorListener<T>, Promise<void>>();
  readonly #turns = new TurnQueue();
  #count = 0;
  #hasSynced = false;
  #resyncCheckPeriodMs: number;

  constructor(options: ProcessorOptions<T>) {
    this.#options = options;
    this.#resyncCheckPeriodMs = options.resyncCheckPeriodMs;
  }

  /**
   * How often the informer looks whether a resync is due: the shortest period that was requested before it
   * started.
   */
  get resyncCheckPeriodMs(): number {
    return this.#resyncCheckPeriodMs;
  }

  add(
    handler: ResourceEventHandler<T>,
    options: ListenerOptions,
    present?: Held<T>[],
  ): HandlerRegistration {
    const listener = this.#newListener(handler, options, { started: present !== undefined });
    if (present !== undefined) {
      listener.addList(new ListNotifications({ isInInitialList: true }, present));
      if (this.#hasSynced) listener.upstreamHasSynced();
    }
    const registration = this.#newRegistration(listener);
    this.#byRegistration.set(registration, listener);
    return registration;
  }

  /** The informer has synced: the whole initial list was distributed. */
  upstreamHasSynced(): void {
    this.#hasSynced = true;
    for (const listener of this.#listeners) listener.upstreamHasSynced();
  }

  #newRegistration(listener: ProcessorListener<T>): HandlerRegistration {
    const isRemoved = () => !this.#listeners.has(listener);
    return {
      name: listener.name,
      hasSynced: () => listener.hasSynced(),
      synced: (signal) => listener.synced(signal),
      failure: () => this.#options.failure?.(),
      get backlog() {
        return listener.backlog;
      },
      get isRemoved() {
        return isRemoved();
      },
    };
  }

  #newListener(
    handler: ResourceEventHandler<T>,
    { resyncPeriodMs, name: own, mailbox = {} }: ListenerOptions,
    { started }: { readonly started: boolean },
  ): ProcessorListener<T> {
    const { logger, name } = this.#options;
    const listener: ProcessorListener<T> = new ProcessorListener<T>(this.#options, {
      handler,
      mailbox,
      onOverflow: () => {
        logger.error(
          `${listener.name} was removed: more than ${listener.backlog - 1} notifications wait for it, ` +
            "and it wants every one of them",
        );
        this.#remove(listener);
      },
      resyncPeriodMs: this.#resyncPeriodOf(resyncPeriodMs, started),
      turns: this.#turns,
      name: `${name}: ${own ?? `handler ${++this.#count}`}`,
    });
    this.#listeners.add(listener);
    return listener;
  }

  /** The period of a handler that wants this one; it may shorten the informer's before that has started. */
  #resyncPeriodOf(wantedMs: number, started: boolean): number {
    const { logger, name } = this.#options;
    const checkMs = this.#resyncCheckPeriodMs;
    if (wantedMs > 0 && wantedMs < MINIMUM_RESYNC_PERIOD_MS) {
      logger.warn(
        `${name}: a resync period of ${wantedMs} ms is too short; it is ${MINIMUM_RESYNC_PERIOD_MS} ms instead`,
      );
    }
    const periodMs = wantedMs > 0 ? Math.max(wantedMs, MINIMUM_RESYNC_PERIOD_MS) : 0;
    if (periodMs === 0 || periodMs >= checkMs) return periodMs;
    if (!started) return this.#resyncCheckPeriodMs = periodMs;
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
    const listener = this.#byRegistration.get(registration);
    if (listener !== undefined) await this.#remove(listener);
  }

  async #remove(listener: ProcessorListener<T>): Promise<void> {
    if (this.#listeners.delete(listener)) this.#leaving.set(listener, listener.stop());
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
