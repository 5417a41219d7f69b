import type { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { UsedInformer } from "../../informer/shared_informer_factory.ts";
import { type KubernetesObject, metaNamespaceKey, metaOf } from "../../meta/object.ts";
import { networkErrorOf } from "../../meta/request.ts";
import { onAbort } from "../../util/abort.ts";
import { type Clock, realClock, type TimerHandle } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";
import { itemExponentialFailureRateLimiter, type RateLimiter } from "../../workqueue/rate_limiters.ts";
import { GuardedEmitter } from "../../node/guarded_emitter.ts";

/**
 * The callback of a watcher: called for one change at a time, and awaited. Errors that it throws or rejects
 * with are reported as `data_error`, and it is called again for the object's state then.
 */
export type WatchAction<K> = (update: K, phase: WatchPhase) => Promise<void> | void;

/** Options of a watcher. All may be left out. */
export interface WatchCfg {
  /** How many tries in a row may fail before the watcher gives up; no limit by default. */
  readonly resyncFailureMax?: number;
  /** No effect: a failed try is repeated after 0.8 s at first, and after 30 s at most. */
  readonly resyncDelaySec?: number;
  /** No effect: no change is missed, so there is no list on a period. */
  readonly relistIntervalSec?: number;
  /** No effect: a watch on which bookmarks come is taken for dead after 90 s of silence. */
  readonly lastSeenLimitSeconds?: number;
  /** How many times a callback that fails is called again for a change; no limit by default. Not upstream. */
  readonly callbackRetryMax?: number;
  /**
   * Seconds before the first of these calls; 1 by default, doubled
   * for each further one, up to 300. Not upstream.
   */
  readonly callbackRetryDelaySec?: number;
}

const FIRST_RETRY_SEC = 1;
/** The value that wins a race against a promise that is not settled. */
const PENDING = Symbol("pending");
const LAST_RETRY_MS = 300_000;

export interface WatcherContext {
  readonly path: string;
  /** Gives it a running informer, which it shares with others. */
  readonly use: () => Promise<UsedInformer<KubernetesObject>>;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/**
 * Calls a callback for every object of a selection that is there, and for each change. Watchers of the same
 * selection share one list, one watch and one store.
 *
 * @example
 * ```ts
 * import { K8s, type Watcher } from "@listwatch/cache/compat/fluent";
 * import { V1Pod } from "@kubernetes/client-node";
 * async function follow(save: (pod: V1Pod) => Promise<void>): Promise<Watcher<V1Pod>> {
 *   const watcher = K8s(V1Pod).InNamespace("shop").Watch(async (pod, phase) => {
 *     if (phase !== "DELETED") await save(pod); // awaited, and called again when it fails
 *   });
 *   await watcher.start();
 *   return watcher;
 * }
 * ```
 */
export class Watcher<K extends object> implements AsyncDisposable {
  /** The watcher's events: a connection, failed tries, failed callbacks. */
  readonly events: WatcherEvents;
  readonly #context: WatcherContext;
  readonly #cfg: WatchCfg;
  readonly #deliveries: Deliveries<K>;
  readonly #controller = new AbortController();
  readonly #waits = Promise.withResolvers<void>();
  #starting: Promise<AbortController> | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  /**
   * Made by `K8s(model).Watch(callback, cfg)`.
   *
   * @internal
   */
  constructor(context: WatcherContext, callback: WatchAction<K>, cfg: WatchCfg) {
    const logger = guardedLogger(context.logger);
    const { callbackRetryMax, callbackRetryDelaySec = FIRST_RETRY_SEC } = cfg;
    this.#context = context;
    this.#cfg = cfg;
    this.events = new WatcherEvents(logger);
    this.#deliveries = new Deliveries<K>({
      call: async (object, phase) => {
        const called = callback(object, phase);
        if (await Promise.race([called, PENDING]) === PENDING) this.#waits.resolve();
        await called;
      },
      onError: (error) => {
        logger.warn(`the callback of a watcher of ${context.path} failed: ${errorMessage(error)}`, { error });
        this.events.emit(WatcherEvent.DATA_ERROR, error);
      },
      limiter: itemExponentialFailureRateLimiter({
        baseDelayMs: callbackRetryDelaySec * 1_000,
        maxDelayMs: LAST_RETRY_MS,
      }),
      ...(callbackRetryMax !== undefined && { maxRetries: callbackRetryMax }),
      clock: context.clock ?? realClock,
    });
    onAbort(this.#controller.signal, () => this.#deliveries.close());
  }

  /** Whether the watcher was closed. */
  get isClosed(): boolean {
    return this.#controller.signal.aborted;
  }

  /**
   * Starts it; once, also when called again.
   *
   * @returns Resolves when the callback was called for all objects of the first list, or waits for something
   * itself, or when the first try to list has failed; with the controller whose `abort` closes the watcher.
   *
   * @throws {KubeconfigError} There is no cluster to connect to.
   */
  start(): Promise<AbortController> {
    return this.#starting ??= this.#start();
  }

  /** Closes it: the callback is not called again. Its running call is not interrupted. */
  close(): void {
    this.#controller.abort();
  }

  /** Closes it, and waits until its informer is released: stopped, if no other watcher uses it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await this.#starting?.catch(() => {});
    await this.#ended;
  }

  async #start(): Promise<AbortController> {
    const { signal } = this.#controller;
    const used = await this.#context.use();
    const { informer } = used;
    if (signal.aborted) {
      await used.release();
      return this.#controller;
    }
    const answered = Promise.withResolvers<void>();
    const registration = informer.addEventHandler({
      onAdd: (object) => this.#deliver(metaNamespaceKey(object), object, "ADDED"),
      onUpdate: (before, object) => this.#updated(before, object),
      // A shared informer knows the last state of each object that it had.
      onDelete: ({ key, object }) => object && this.#deliver(key, object, "DELETED"),
    });
    let unlisten = () => {};
    onAbort(signal, () => {
      unlisten();
      this.#ended = Promise.all([informer.removeEventHandler(registration), used.release()]);
      answered.resolve();
      this.events.emit(WatcherEvent.ABORT, signal.reason);
    });
    unlisten = this.#listen(informer, answered.resolve);
    if (signal.aborted) unlisten();
    informer.synced(signal)
      .then(() => Promise.race([registration.synced(signal), this.#waits.promise]))
      .then(() => answered.resolve(), () => {});
    await answered.promise;
    return this.#controller;
  }

  #listen(informer: SharedIndexInformer<KubernetesObject, string>, onFailure: () => void): () => void {
    let wasOpen = false;
    // Tries that failed before are not the watcher's own.
    let failures = informer.failure()?.failedTries ?? 0;
    const note = (phase: string) => {
      const isOpen = phase === "watching";
      if (isOpen && !wasOpen) {
        this.events.emit(WatcherEvent.CONNECT, this.#context.path);
        this.events.emit(WatcherEvent.INC_RESYNC_FAILURE_COUNT, 0);
      }
      wasOpen = isOpen;
      const { error, failedTries = 0 } = informer.failure() ?? {};
      if (error !== undefined && failedTries > failures) {
        onFailure();
        this.#hasFailed(informer.name, error, failedTries);
      }
      failures = failedTries;
    };
    note(informer.status().phase);
    return informer.onStatus(({ phase }) => note(phase));
  }

  #hasFailed(name: string, error: Error, failedTries: number): void {
    const { resyncFailureMax = Infinity } = this.#cfg;
    this.events.emit(networkErrorOf(error) ? WatcherEvent.NETWORK_ERROR : WatcherEvent.WATCH_ERROR, error);
    if (failedTries <= resyncFailureMax) {
      this.events.emit(WatcherEvent.INC_RESYNC_FAILURE_COUNT, failedTries);
      this.events.emit(WatcherEvent.RECONNECT, failedTries);
      return;
    }
    const text =
      `Cannot watch ${name}: ${failedTries} tries have failed, and the limit is ${resyncFailureMax}`;
    this.events.emit(WatcherEvent.GIVE_UP, new Error(text, { cause: error }));
    this.close();
  }

  /** Another object of the same name is a delete and an add. */
  async #updated(before: KubernetesObject, object: KubernetesObject): Promise<void> {
    const key = metaNamespaceKey(object);
    if (metaOf(before)?.uid === metaOf(object)?.uid) return await this.#deliver(key, object, "MODIFIED");
    await this.#deliver(key, before, "DELETED");
    await this.#deliver(key, object, "ADDED");
  }

  async #deliver(key: string, object: KubernetesObject, phase: WatchPhase): Promise<void> {
    if (this.isClosed) return;
    const change = { object: object as unknown as K, phase } satisfies Change<K>;
    this.events.emit(WatcherEvent.DATA, change.object, phase);
    await this.#deliveries.deliver(key, change);
  }
}

/**
 * The names of the events: the values of upstream's enum `WatchEvent`, which can be used as well. Events for
 * which a watcher here has no reason are never emitted; they are marked.
 */
export const WatcherEvent = {
  /** A watch is open; with its path. */
  CONNECT: "connect",
  /** No answer came; with the error. It is tried again. */
  NETWORK_ERROR: "network_error",
  /** The callback threw or rejected; with the error. It is called again. */
  DATA_ERROR: "data_error",
  /** A try has failed, and another follows; with the number of failed tries. */
  RECONNECT: "reconnect",
  /** More tries have failed than `resyncFailureMax` allows; with an error. The watcher is closed. */
  GIVE_UP: "give_up",
  /** The watcher was closed. */
  ABORT: "abort",
  /** A change is about to be handed to the callback; with the object and the phase. */
  DATA: "data",
  /** Never emitted: a version that is too old leads to a list silently. */
  OLD_RESOURCE_VERSION: "old_resource_version",
  /** Never emitted: there is one try at a time. */
  RECONNECT_PENDING: "reconnect_pending",
  /** Never emitted: a list is delivered object by object. */
  LIST: "list",
  /** Never emitted: `watch_error` is for lists, too. */
  LIST_ERROR: "list_error",
  /** Never emitted: no change is missed that a list must repair. */
  CACHE_MISS: "cache_miss",
  /** The number of failed tries has changed; with the number, 0 when a watch is open. */
  INC_RESYNC_FAILURE_COUNT: "inc_resync_failure_count",
  /** Never emitted: there are no lists on a period. */
  INIT_CACHE_MISS: "init_cache_miss",
  /** The server refused a list or a watch; with the error. It is tried again. */
  WATCH_ERROR: "watch_error",
} as const;

/** The name of an event. */
export type WatcherEvent = (typeof WatcherEvent)[keyof typeof WatcherEvent];

/**
 * Node's event emitter, in which a listener that throws ends nothing: errors that it throws are logged.
 *
 * @example
 * ```ts
 * import { WatcherEvent, type WatcherEvents } from "@listwatch/cache/compat/fluent";
 * function warn(events: WatcherEvents) {
 *   events.on(WatcherEvent.GIVE_UP, (error) => console.warn(error.message));
 * }
 * ```
 */
export class WatcherEvents extends GuardedEmitter {}

/** The kinds of change of an object. */
export const WatchPhase = {
  /** The object appeared, or was there at the start. */
  Added: "ADDED",
  /** The object changed. */
  Modified: "MODIFIED",
  /** The object was deleted. */
  Deleted: "DELETED",
  /** Never handed over: bookmarks are no changes. */
  Bookmark: "BOOKMARK",
  /** Never handed over: after an error, the watch is opened again. */
  Error: "ERROR",
} as const;

/** A kind of change of an object. */
export type WatchPhase = (typeof WatchPhase)[keyof typeof WatchPhase];

export interface Change<K> {
  readonly object: K;
  readonly phase: WatchPhase;
}

export interface DeliveryOptions<K> {
  readonly call: (object: K, phase: WatchPhase) => Promise<void> | void;
  readonly onError: (error: unknown) => void;
  readonly limiter: RateLimiter<string>;
  readonly maxRetries?: number;
  readonly clock: Clock;
}

/**
 * The calls of one watcher's callback: one at a time, each awaited, and made again after a failure.
 *
 * What a key's callback has yet to see is a short list of changes, merged: an object that appeared and has
 * changed since appeared as it is now. The first try of a change is awaited by its informer's handler, so
 * that changes come in their order. A failed one waits for its time, which grows with each failure of its
 * key; changes of other keys pass it, and a newer one of the same key is merged with it and tried at once.
 */
export class Deliveries<K> {
  readonly #options: DeliveryOptions<K>;
  /** The changes that the callback has yet to see, by key. */
  readonly #waiting = new Map<string, Change<K>[]>();
  readonly #timers = new Map<string, TimerHandle>();
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: DeliveryOptions<K>) {
    this.#options = options;
  }

  /** Hands over a change; resolves when the callback has been called for it once, whatever came of that. */
  deliver(key: string, change: Change<K>): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#waiting.set(key, merged(this.#waiting.get(key) ?? [], change));
    return this.#tryNow(key);
  }

  /** Drops what waits. A running call is not interrupted. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) this.#options.clock.clearTimeout(timer);
    this.#timers.clear();
    this.#waiting.clear();
  }

  #tryNow(key: string): Promise<void> {
    this.#options.clock.clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
    return this.#last = this.#last.then(() => this.#drain(key));
  }

  /** Calls the callback for what waits of a key, until it fails. */
  async #drain(key: string): Promise<void> {
    const { call, onError, limiter, maxRetries = Infinity } = this.#options;
    for (;;) {
      const [change, ...rest] = this.#waiting.get(key) ?? [];
      if (change === undefined || this.#timers.has(key)) return;
      // Out of the list while it runs: changes that come meanwhile are merged with waiting ones.
      this.#set(key, rest);
      try {
        await call(change.object, change.phase);
        limiter.forget(key);
        continue;
      } catch (error) {
        onError(error);
      }
      if (this.#isClosed) return;
      if (limiter.numRequeues(key) >= maxRetries) {
        limiter.forget(key);
        continue;
      }
      this.#set(key, (this.#waiting.get(key) ?? []).reduce(merged, [change]));
      const retry = () => void this.#tryNow(key);
      this.#timers.set(key, this.#options.clock.setTimeout(retry, limiter.when(key)));
      return;
    }
  }

  #set(key: string, waiting: Change<K>[]): void {
    if (waiting.length === 0) this.#waiting.delete(key);
    else this.#waiting.set(key, waiting);
  }
}

/**
 * Merges a further change into the waiting ones: at most one change of each object that had this name, and a
 * delete.
 */
function merged<K>(waiting: Change<K>[], next: Change<K>): Change<K>[] {
  const last = waiting.at(-1);
  if (last === undefined || (last.phase === "DELETED" && next.phase !== "DELETED")) return [...waiting, next];
  // A delete replaces an add that failed: part of it may have been done.
  const phase = next.phase === "DELETED" ? "DELETED" : last.phase;
  return [...waiting.slice(0, -1), { object: next.object, phase }];
}
