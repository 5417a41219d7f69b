/**
 * The reflector, which keeps a store equal to what a server holds; the owner of its state and its I/O.
 * `transition` decides on each step (the chart is in state.ts); the reflector does it, and passes the outcome
 * back.
 */

import type { ListOptions, VersionProof } from "../meta/list_watch.ts";
import { networkErrorOf } from "../meta/request.ts";
import { compareResourceVersions, isOlder } from "../meta/object.ts";
import type { ReflectorStore } from "../queue/queue.ts";
import { sleepUnlessAborted } from "../util/abort.ts";
import { LONGEST_DELAY_MS } from "../util/backoff.ts";
import { ageMs, type Clock, type Moment, momentOf, monotonicNow } from "../util/clock.ts";
import { atOnce } from "../util/errors.ts";
import { requireNumbers } from "../util/require_number.ts";
import {
  delayAfter,
  type FailedTry,
  lastTryOf,
  VERY_SHORT_WATCH_MS,
  VeryShortWatchError,
} from "./failures.ts";
import { type ListerWatcher, refuseNamespaces } from "./lister_watcher.ts";
import { listAttempt, readInitialEvents, requestList } from "./lists.ts";
import { every, type OpenWatch, openWatch } from "./open_watch.ts";
import {
  type ReflectorOptions,
  type ReflectorSettings,
  type ReflectorWiring,
  settingsOf,
} from "./reflector_options.ts";
import { afterLoss } from "./relists.ts";
import { ReflectorMetrics, ReflectorReports } from "./reports.ts";
import {
  type Change,
  confirmed,
  entered,
  initialState,
  opened,
  type Outcome,
  proven,
  type ReflectorPhase,
  type ReflectorState,
  type ReflectorStatus,
  rewatched,
  statusOf,
  type Step,
  waiting,
} from "./state.ts";
import { hasReceived, StoreWriter, watchVersion } from "./store_writer.ts";
import { transition } from "./transition.ts";

/**
 * Lists a resource into a store, then watches it until its signal is aborted. After a failure it waits, and
 * continues from the last resourceVersion. The store is written to synchronously, in the order of the
 * server's events.
 *
 * Mirrors client-go's
 * [`Reflector`](https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go), but does not
 * hang or run hot where streamed lists do not come to their end.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, metaNamespaceKey, newCluster } from "@listwatch/cache";
 * import { Reflector } from "@listwatch/cache/reflector";
 * import { newStore } from "@listwatch/cache/store";
 * const source = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const store = newStore<KubernetesObject>(metaNamespaceKey);
 * const stop = new AbortController();
 * const done = new Reflector(source, store).run(stop.signal);
 * stop.abort();
 * await done;
 * ```
 */
export class Reflector<T> {
  /** The reflector's name in log lines. */
  readonly name: string;
  readonly #source: ListerWatcher<T>;
  readonly #store: ReflectorStore<T>;
  readonly #settings: ReflectorSettings;
  readonly #clock: Clock;
  readonly #reports: ReflectorReports;
  readonly #metrics: ReflectorMetrics | undefined;
  readonly #writer: StoreWriter<T>;
  readonly #record: { state: ReflectorState };
  /** The watch that a streamed list has opened, until it is followed. */
  #streamed: OpenWatch<T> | undefined;
  /** The watch that is read at present. */
  #followed: OpenWatch<T> | undefined;
  #running = false;
  #consistentMs: number | undefined;

  /**
   * Makes a reflector. In a `Store`, a quarantined object of a list leaves the state before it; in a queue it
   * is a delete.
   * @param wiring The parts that it shares with an informer.
   * @throws {RangeError} A number of the options is negative, `NaN`, or infinite where it must not be.
   * @throws {TypeError} The source has a set of namespaces.
   */
  constructor(
    source: ListerWatcher<T>,
    store: ReflectorStore<T>,
    options: ReflectorOptions = {},
    wiring: ReflectorWiring = {},
  ) {
    refuseNamespaces(source);
    this.#source = source;
    this.#store = store;
    const name = this.name = options.name ?? source.description ?? "objects";
    const settings = this.#settings = settingsOf(name, options, wiring);
    const { clock, quarantine } = settings;
    this.#clock = clock;
    const reports = this.#reports = new ReflectorReports(settings);
    const metrics = this.#metrics = settings.metrics &&
      new ReflectorMetrics(settings.metrics, settings);
    const record = this.#record = { state: initialState(settings) };
    this.#writer = new StoreWriter(store, {
      ...settings,
      measured: metrics,
      record,
      warn: (text) => reports.log({ level: "warn", text }),
    });
    quarantine.onLoss(({ isIncomplete }) => {
      const { losses: before } = this.#state;
      const losses = afterLoss(before, monotonicNow(clock), isIncomplete);
      this.#set({ ...this.#state, losses });
      if (losses.relistDueMs !== before.relistDueMs) this.#followed?.relistAt(losses.relistDueMs);
    });
  }

  /**
   * Runs until the signal is aborted; resolves when everything it started has stopped. A failure of the
   * server never rejects the promise.
   * @throws {TypeError} The reflector is running already.
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#start();
    try {
      await this.#restore(signal);
      while (!signal.aborted) {
        await this.#cycle(signal);
        if (!signal.aborted) await this.#sleep(signal);
      }
    } finally {
      this.#stop();
    }
  }

  /**
   * Runs one cycle: streams or lists, then watches until something ends the watch. For callers with a loop of
   * their own.
   * @returns When the cycle is over; at once if the signal is aborted.
   * @throws The error that ended the cycle, if it was a failed list or a refused watch.
   */
  async listAndWatch(signal: AbortSignal): Promise<void> {
    this.#start();
    try {
      const error = await this.#cycle(signal);
      if (signal.aborted) return;
      this.#change(waiting(this.#state, undefined, momentOf(this.#clock)));
      if (error !== undefined) throw error;
    } finally {
      this.#stop();
    }
  }

  /** The last resourceVersion seen, in a list, an event or a bookmark; `""` before the first list. */
  lastSyncResourceVersion(): string {
    const { olderVersion, resourceVersion } = this.#state.position;
    return olderVersion ?? resourceVersion;
  }

  /** Whether the server last refused that resourceVersion, as too old or not reached yet. */
  isLastSyncResourceVersionUnavailable(): boolean {
    return this.#state.isResourceVersionUnavailable;
  }

  /** The reflector's present state. */
  status(): ReflectorStatus {
    return statusOf(this.#state, this.#settings.quarantine.count, this.#clock);
  }

  /**
   * The status' `lagMs`, and nothing else of it.
   * @internal
   */
  lagMs(): number | undefined {
    const { contact } = this.#state.position;
    return contact && ageMs(contact, this.#clock);
  }

  /**
   * When the last list was requested that had everything which was written before the request, by the
   * monotonic clock; `undefined` if there was none: a list may be answered from an older state.
   * @internal
   */
  consistentMs(): number | undefined {
    return this.#consistentMs;
  }

  /** The last failed request of the present outage; `undefined` unless it runs and there is one. */
  failure(): FailedTry | undefined {
    return this.#running ? lastTryOf(this.#state.failures) : undefined;
  }

  /**
   * Calls `listener` whenever the phase changes or a list progresses, within that turn; not for single
   * events.
   * @returns A function that removes the listener.
   */
  onStatus(listener: (status: ReflectorStatus) => void): () => void {
    return this.#reports.listeners.add(listener);
  }

  /**
   * Moves the position to a version up to which nothing is missing, as a bookmark would. With a proof by
   * state the next watch begins where it would have, and so brings every event. A server that is before the
   * version it had reached at the time of the question has lost its history: everything is listed.
   * @returns Whether it is there: not between two watches, as a list may have started at an earlier version.
   * @internal
   */
  proven({ after, through, asked, byState: isState = false }: VersionProof): boolean {
    const { position } = this.#state;
    if (position.resourceVersion === "" || !hasReceived(position, after)) return false;
    if (isOlder(through, after)) {
      if (this.#followed !== undefined) this.#settings.quarantine.lost();
      return false;
    }
    if (compareResourceVersions(position.resourceVersion, through) >= 0) return true;
    if (this.#followed === undefined) return false;
    // A proof that follows one by state proves no more than the state.
    const byState = isState || position.watchedVersion !== "";
    this.#store.bookmark?.(through, byState ? { byState } : undefined);
    const now = momentOf(this.#clock);
    this.#set(proven(this.#state, { through, ageMs: ageMs(asked, this.#clock), byState }, now));
    return true;
  }

  /** What the server had at a time has not come: a silent watch is opened again. @internal */
  overdue(since: Moment): void {
    this.#followed?.overdue(since);
  }

  /**
   * The server has confirmed the content of the snapshot.
   * @param options `isComplete`: bookmarks are not needed as a proof that the server has reached its version.
   * @internal
   */
  confirmed({ isComplete }: { readonly isComplete: boolean }): void {
    this.#set(confirmed(this.#state, isComplete, this.#followed?.received ?? momentOf(this.#clock)));
  }

  get #state(): ReflectorState {
    return this.#record.state;
  }

  #next(outcome: Outcome): Step {
    const next = transition(this.#state, outcome, momentOf(this.#clock));
    this.#change(next);
    return next.step;
  }

  /** Has another state from now on. */
  #set(state: ReflectorState): void {
    const { contact: before } = this.#state.position;
    this.#record.state = state;
    const { contact, isConfirmed } = state.position;
    if (contact !== undefined && contact !== before && isConfirmed) this.#metrics?.contact(contact.wallMs);
  }

  #change({ state, effects }: Change): void {
    this.#set(state);
    for (const effect of effects) {
      if (effect.do === "log") this.#reports.log(effect);
      else if (effect.do === "report") this.#reports.report(effect.error);
      else if (effect.do === "measureWatch") this.#metrics?.watchEnds(effect);
      else {
        this.#reports.forgetWarnings();
        this.#settings.quarantine.watchWasWell();
      }
    }
  }

  #enter(phase: ReflectorPhase, progress?: ReflectorStatus["progress"]): void {
    this.#set(entered(this.#state, phase, progress));
    this.#notify();
  }

  #notify(): void {
    this.#reports.listeners.call(this.status());
  }

  #start(): void {
    if (this.#running) throw new TypeError(`Cannot run the reflector of ${this.name} twice at the same time`);
    this.#running = true;
  }

  #stop(): void {
    this.#running = false;
    this.#enter("stopped");
  }

  /** Puts the content of a snapshot into the store, if there is one. */
  async #restore(signal: AbortSignal): Promise<void> {
    const { snapshot } = this.#settings;
    if (snapshot === undefined || signal.aborted) return;
    this.#enter("resuming");
    const content = await snapshot.load(signal);
    if (content === undefined || signal.aborted) return;
    const { items, resourceVersion, watchedVersion = resourceVersion } = content;
    this.#writer.replace(items as T[], [], watchedVersion);
    if (watchedVersion !== resourceVersion) this.#store.bookmark?.(resourceVersion, { byState: true });
    this.#set(snapshot.resuming.restored(this.#state, content, momentOf(this.#clock)));
  }

  /** Runs from one "start" to the next. Returns the error that ended the cycle, if it is to be reported. */
  async #cycle(signal: AbortSignal): Promise<Error | undefined> {
    let stopResyncs: (() => void) | undefined;
    this.#metrics?.cycleBegins(this.#state.failures.lastEnd);
    let step = this.#next({ of: "start" });
    try {
      while (!signal.aborted) {
        switch (step.do) {
          case "probe":
            step = await this.#probe(signal, step);
            break;
          case "stream":
            step = await this.#stream(signal, step);
            break;
          case "list":
            step = await this.#list(signal, step);
            break;
          case "watch":
            stopResyncs ??= every(this.#settings.resyncPeriodMs, this.#clock, () => this.#resync());
            step = await this.#watch(signal, step);
            break;
          case "backOff":
            if (step.then === "start") return step.error;
            await this.#sleep(signal);
            step = { do: step.then };
        }
      }
      return undefined;
    } finally {
      this.#streamed?.close();
      this.#streamed = undefined;
      stopResyncs?.();
    }
  }

  async #probe(signal: AbortSignal, step: Step): Promise<Step> {
    this.#enter("resuming");
    try {
      return this.#next({ of: "probe", ...await this.#settings.snapshot!.probe(signal) });
    } catch (error) {
      // A request that the caller aborted has not failed.
      return signal.aborted ? step : this.#next({ of: "probe", error });
    }
  }

  async #stream(signal: AbortSignal, step: Step): Promise<Step> {
    this.#enter("streaming", { items: 0 });
    const { isResourceVersionUnavailable, position } = this.#state;
    const from = isResourceVersionUnavailable ? "" : position.resourceVersion;
    const startMs = monotonicNow(this.#clock);
    let watch: OpenWatch<T> | undefined;
    let isProgressing = false;
    let cause: unknown;
    const lastedMs = () => monotonicNow(this.#clock) - startMs;
    const stored = this.#metrics?.listBegins();
    try {
      watch = await this.#openWatch({
        resourceVersion: from,
        allowWatchBookmarks: true,
        sendInitialEvents: true,
        resourceVersionMatch: "NotOlderThan",
        signal,
      });
      const initial = await readInitialEvents(watch, this.#settings, (items) => {
        isProgressing = true;
        this.#enter("streaming", { items });
      }).catch((error) => {
        // A connection that broke is a watch that ended.
        if (networkErrorOf(error) === undefined) throw error;
        cause = error;
      });
      if (initial === undefined) {
        if (!isProgressing && lastedMs() < VERY_SHORT_WATCH_MS) throw new VeryShortWatchError(this.name);
        return this.#next({ of: "stream", cause, lastedMs: lastedMs() });
      }
      const { items, quarantined, resourceVersion, received } = initial;
      this.#writer.replace(items, quarantined, resourceVersion);
      stored?.(items.length);
      this.#wasConsistent(from, startMs, received);
      this.#streamed = watch;
      watch = undefined;
      return this.#next({ of: "stream", resourceVersion, received });
    } catch (error) {
      return signal.aborted ? step : this.#next({ of: "stream", error, lastedMs: lastedMs() });
    } finally {
      watch?.close();
    }
  }

  async #list(signal: AbortSignal, step: Extract<Step, { do: "list" }>): Promise<Step> {
    const attempt = step.again ?? listAttempt(this.#state, this.#settings.watchListPageSize);
    const again = step.again !== undefined;
    const options = again ? { resourceVersion: "", limit: attempt.limit } : attempt;
    this.#enter("listing", { items: 0 });
    const startMs = monotonicNow(this.#clock);
    const stored = this.#metrics?.listBegins();
    try {
      const list = await requestList(this.#source, options, this.#settings, {
        signal,
        onBytes: this.#metrics?.onListBytes,
        onPage: (items, remaining) =>
          this.#enter("listing", remaining === undefined ? { items } : { items, remaining }),
      });
      const { items, quarantined, paginated, received, metadata: { resourceVersion = "" } } = list;
      for (const one of quarantined) this.#settings.quarantine.add(one);
      this.#writer.replace(items, quarantined, resourceVersion);
      stored?.(items.length);
      this.#wasConsistent(options.resourceVersion, startMs, received);
      return this.#next({ of: "list", resourceVersion, received, paginated, attempt });
    } catch (error) {
      return signal.aborted ? step : this.#next({ of: "list", error, attempt, again });
    }
  }

  /**
   * A list was written that was requested from this version then. Without one the server reads its storage,
   * or a cache that has caught up with it; what a cache between answers may be older, and says so.
   */
  #wasConsistent(resourceVersion: string, requestedMs: number, received: Moment): void {
    if (resourceVersion === "" && received.monotonicMs >= requestedMs) this.#consistentMs = requestedMs;
  }

  /** Follows a watch, opened by a streamed list or here. */
  async #watch(signal: AbortSignal, step: Step): Promise<Step> {
    const startMs = monotonicNow(this.#clock);
    let watch = this.#streamed;
    this.#streamed = undefined;
    const isFollowing = watch !== undefined;
    if (watch === undefined) {
      const { watchesSinceList, failures, position } = this.#state;
      if (watchesSinceList > 0) this.#metrics?.reconnects(failures.lastEnd);
      this.#set(rewatched(this.#state));
      try {
        const resourceVersion = watchVersion(position);
        watch = await this.#openWatch({ resourceVersion, allowWatchBookmarks: true, signal });
      } catch (error) {
        return signal.aborted ? step : this.#next({ of: "watch", error });
      }
    }
    this.#metrics?.watchBegins();
    this.#change(opened(this.#state, isFollowing, momentOf(this.#clock)));
    this.#notify();
    const { settings: { bookmarkSilenceMs }, rhythm, losses } = this.#state;
    this.#followed = watch;
    const ended = await watch.follow(this.#writer, {
      bookmarkSilenceMs,
      expectsBookmarks: rhythm.isExpected,
      relistDueMs: losses.relistDueMs,
    });
    this.#followed = undefined;
    if (signal.aborted) return step;
    return this.#next({ of: "watch", ended, lastedMs: monotonicNow(this.#clock) - startMs });
  }

  /** Resyncs if one is wanted. A failure ends the watch; without a watch, the next period repeats it. */
  #resync(): void {
    let isWanted = true;
    this.#reports.guarded("shouldResync", () => isWanted = atOnce(this.#settings.shouldResync()));
    try {
      if (isWanted) this.#store.resync();
    } catch (error) {
      this.#followed?.end(error);
    }
  }

  #openWatch(request: ListOptions & { readonly signal: AbortSignal }): Promise<OpenWatch<T>> {
    return openWatch(this.#source, request, this.#settings, this.#metrics?.onWatchBytes);
  }

  async #sleep(signal: AbortSignal): Promise<void> {
    let delayMs = LONGEST_DELAY_MS; // where a user's backoff gives none
    this.#reports.guarded("backoff", () => {
      const nowMs = monotonicNow(this.#clock);
      const { failures, delayMs: nextDelayMs } = delayAfter(this.#state.failures, nowMs, this.#settings);
      this.#record.state = { ...this.#state, failures };
      requireNumbers("wait", { nextDelayMs: atOnce(nextDelayMs) ?? NaN });
      delayMs = nextDelayMs;
    });
    this.#change(waiting(this.#state, delayMs, momentOf(this.#clock)));
    this.#notify();
    await sleepUnlessAborted(delayMs, { clock: this.#clock, signal });
  }
}
