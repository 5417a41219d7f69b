/**
 * All handlers of an informer.
 * @module
 */

import { deletionHandlingMetaNamespaceKey, type KeyFunc } from "../meta/keys.ts";
import type { Held, Holding } from "../store/holding.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import type { Steps } from "../util/steps.ts";
import { TurnQueue } from "../util/turn_queue.ts";
import type { Notification, ResourceEventHandler } from "./event_handler.ts";
import type { ListNotifications, NotificationReceiver } from "./list_notifications.ts";
import type { MailboxOptions } from "./mailbox.ts";
import { ProcessorListener } from "./processor_listener.ts";

/** What a processor is made of. */
export interface ProcessorOptions<T> {
  /** Opens the objects of notifications. */
  readonly holding: Pick<Holding<T>, "open">;
  /** How often the informer looks whether a resync is due, in milliseconds; 0 for never. */
  readonly resyncCheckPeriodMs: number;
  /** Keys of objects, where notifications are merged; `deletionHandlingMetaNamespaceKey` by default. */
  readonly keyFunc?: KeyFunc;
  /** Where measurements go; nowhere by default. */
  readonly metrics?: Metrics | undefined;
  /** How long a stop waits for a call of a handler, in milliseconds; 10,000 by default. */
  readonly stopTimeoutMs?: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** For log lines. */
  readonly name: string;
}

const MINIMUM_RESYNC_PERIOD_MS = 1_000;
const DEFAULT_STOP_TIMEOUT_MS = 10_000;

/** Hands each notification to all listeners, or to those whose resync is due. */
export class Processor<T> implements NotificationReceiver<Held<T>> {
  readonly #options: ProcessorOptions<T>;
  readonly #listeners = new Set<ProcessorListener<T>>();
  // Removed, and in the middle of a call.
  readonly #leaving = new Map<ProcessorListener<T>, Promise<void>>();
  readonly #turns = new TurnQueue();
  #count = 0;
  #resyncCheckPeriodMs: number;

  constructor(options: ProcessorOptions<T>) {
    this.#options = options;
    this.#resyncCheckPeriodMs = options.resyncCheckPeriodMs;
  }

  /** How often the informer looks whether a resync is due: the shortest period that was asked for before it started. */
  get resyncCheckPeriodMs(): number {
    return this.#resyncCheckPeriodMs;
  }

  /** The listeners: do not change. */
  get listeners(): ReadonlySet<ProcessorListener<T>> {
    return this.#listeners;
  }

  /**
   * Adds a listener. A resync period shorter than the informer's makes the informer look more often, unless it has
   * started: then the period is lengthened to what it is.
   */
  add(
    handler: ResourceEventHandler<T>,
    requestedMs: number,
    { started, name: own, mailbox = {} }: {
      readonly started: boolean;
      readonly name?: string;
      readonly mailbox?: MailboxOptions;
    },
  ): ProcessorListener<T> {
    const { clock, holding, logger, name, keyFunc = deletionHandlingMetaNamespaceKey } = this.#options;
    let periodMs = requestedMs;
    if (periodMs > 0) {
      if (periodMs < MINIMUM_RESYNC_PERIOD_MS) {
        logger.warn(
          `${name}: a resync period of ${periodMs} ms is too short; it is ${MINIMUM_RESYNC_PERIOD_MS} ms instead`,
        );
        periodMs = MINIMUM_RESYNC_PERIOD_MS;
      }
      if (periodMs < this.#resyncCheckPeriodMs) {
        if (started) {
          const checkMs = this.#resyncCheckPeriodMs;
          logger.warn(
            `${name}: a resync period of ${periodMs} ms is shorter than the running informer's ${checkMs} ms`,
          );
          periodMs = checkMs;
        } else {
          this.#resyncCheckPeriodMs = periodMs;
          for (const listener of this.#listeners) {
            listener.resyncPeriodMs = determineResyncPeriod(listener.requestedResyncPeriodMs, periodMs);
          }
        }
      }
    }
    const listener: ProcessorListener<T> = new ProcessorListener<T>({
      handler,
      stopTimeoutMs: this.#options.stopTimeoutMs ?? DEFAULT_STOP_TIMEOUT_MS,
      mailbox,
      holding,
      keyFunc,
      metrics: this.#options.metrics,
      informerName: name,
      onOverflow: () => {
        logger.error(
          `${listener.name} was removed: more than ${listener.backlog - 1} notifications wait for it, ` +
            "and it wants every one of them",
        );
        this.remove(listener);
      },
      requestedResyncPeriodMs: periodMs,
      resyncPeriodMs: determineResyncPeriod(periodMs, this.#resyncCheckPeriodMs),
      clock,
      turns: this.#turns,
      logger,
      name: `${name}: ${own ?? `handler ${++this.#count}`}`,
    });
    this.#listeners.add(listener);
    return listener;
  }

  /**
   * Takes a listener away, and drops what waits for it; one that is not among these (any more) is fine.
   *
   * @returns Resolves when its call that is under way has ended, unless that is who asks.
   */
  async remove(listener: ProcessorListener<T>): Promise<void> {
    if (this.#listeners.delete(listener)) this.#leaving.set(listener, listener.stop());
    await this.#leaving.get(listener);
    this.#leaving.delete(listener);
  }

  /** The informer is being stopped: by a handler, it may be. */
  stopping(): void {
    for (const listener of this.#listeners) listener.stopping();
  }

  /** Stops every listener; resolves when all calls that are under way have ended, of removed ones too. */
  async stop(): Promise<void> {
    const stopping = [...this.#leaving.values()];
    for (const listener of this.#listeners) stopping.push(listener.stop());
    await Promise.all(stopping);
  }

  /** Queues a notification for every listener; an update whose two states are the same, for those that are syncing. */
  distribute(notification: Notification<Held<T>>, isUnchanged: boolean): void {
    for (const listener of this.#listeners) {
      if (!isUnchanged || listener.isSyncing) listener.add(notification);
    }
  }

  /**
   * Does in steps what a list costs for each object, for listeners that something waits for: it is merged with that.
   * To be followed by {@linkcode Processor.distributeList} within the turn of the last step, or by
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

  /** Queues what a list says for every listener; updates that say nothing new, for those that are syncing. */
  distributeList(list: ListNotifications<Held<T>>): void {
    for (const listener of this.#listeners) listener.addList(list);
  }

  /** Whether a resync is due for anyone; from now on updates that say nothing new go to those only. */
  shouldResync(): boolean {
    const nowMs = monotonicNow(this.#options.clock);
    let due = false;
    for (const listener of this.#listeners) {
      listener.isSyncing = listener.shouldResync(nowMs);
      if (!listener.isSyncing) continue;
      due = true;
      listener.determineNextResync(nowMs);
    }
    return due;
  }
}

/** The period a listener gets: none if it or the informer wants none, and never less than the informer's. */
function determineResyncPeriod(desiredMs: number, checkMs: number): number {
  return desiredMs === 0 || checkMs === 0 ? 0 : Math.max(desiredMs, checkMs);
}
