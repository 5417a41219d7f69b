/**
 * The loop of a reflector, and the owner of its I/O. `transition` (state.ts) decides on each step; the loop
 * does it, and passes the outcome back:
 *
 * - **stream** (watch_list.ts): a watch that begins with every present object. They are gathered until the
 *   end bookmark, then replace the store in one call; the same connection continues as the watch.
 * - **list** (pager.ts): page by page, then one `replace`.
 * - **watch** (open_watch.ts): each batch of events is written in one turn; the position moves after the
 *   write, never before (store_writer.ts). The resync timer runs only here.
 * - **back off**: jittered, abortable. Everything that ends a cycle leads here; only the signal ends the
 *   loop.
 *
 * Where a snapshot is there, its content comes first, as a list would, and the first cycle begins with a
 * watch (**probe**, then **watch**). Until the server has confirmed that content, nothing counts as a
 * contact.
 *
 * @module
 */

import { deletionHandlingMetaNamespaceKey } from "../meta/keys.ts";
import {
  ageMsOf,
  type ListOptions,
  type Quarantined,
  type VersionProof,
  type WatchItem,
} from "../meta/list_watch.ts";
import { networkErrorOf } from "../meta/request.ts";
import { compareResourceVersions, layoutOf } from "../meta/object.ts";
import type { ReflectorStore } from "../queue/queue.ts";
import { sleepUnlessAborted } from "../util/abort.ts";
import { newReflectorBackoff } from "../util/backoff.ts";
import { type Clock, monotonicNow, realClock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import type { ListerWatcher } from "./lister_watcher.ts";
import { requestList } from "./list_request.ts";
import { type OpenWatch, openWatch } from "./open_watch.ts";
import type { FailedTry } from "./outage.ts";
import { listAllPages, type PagerOptions } from "./pager.ts";
import { Quarantine } from "./quarantine.ts";
import { ReflectorMetrics } from "./reflector_metrics.ts";
import {
  checkReflectorOptions,
  DEFAULTS,
  type ReflectorOptions,
  VeryShortWatchError,
} from "./reflector_options.ts";
import { ReflectorReports } from "./reflector_reports.ts";
import type { ReflectorWiring } from "./reflector_wiring.ts";
import { ResyncTimer } from "./resync_timer.ts";
import { RetryPacing } from "./retry_pacing.ts";
import {
  failedTry,
  initialState,
  listAttempt,
  listOptions,
  type Outcome,
  type ReflectorState,
  restoredState,
  type Step,
  transition,
  withoutResumption,
} from "./state.ts";
import { type ReflectorStatus, StatusKeeper } from "./status.ts";
import { refuseTable, StoreWriter } from "./store_writer.ts";
import { BookmarkRhythm, VERY_SHORT_WATCH_MS, WatchEnds } from "./watch_end.ts";
import { readInitialEvents, StalledStreamError } from "./watch_list.ts";

/** What every reflector runs. `Reflector` is its public face; informers hand it a wiring. */
export class ListWatchLoop<T> {
  readonly #source: ListerWatcher<T>;
  readonly #store: ReflectorStore<T>;
  readonly #name: string;
  readonly #options: ReflectorOptions;
  readonly #wiring: ReflectorWiring;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #reports: ReflectorReports;
  readonly #pacing: RetryPacing;
  readonly #quarantine: Quarantine;
  readonly #metrics: ReflectorMetrics | undefined;
  readonly #ends: WatchEnds;
  readonly #status: StatusKeeper;
  readonly #rhythm: BookmarkRhythm;
  readonly #writer: StoreWriter<T>;
  #state: ReflectorState;
  /** What went wrong since the last delay: it may ask for a longer one. */
  #failure: unknown;
  /** What ended the last watch or try, if it was an error. */
  #lastEnd: unknown;
  #watchesSinceList = 0;
  /** The store has the content of a snapshot, and the server has not confirmed it. */
  #isUnconfirmed = false;
  /** The watch that is read at present. */
  #followed: OpenWatch<T> | undefined;
  /** When the last bytes of the present request arrived, where its source counts them. */
  #heard: { readonly wallMs: number; readonly monotonicMs: number } | undefined;
  #running = false;

  constructor(
    source: ListerWatcher<T>,
    store: ReflectorStore<T>,
    options: ReflectorOptions,
    wiring: ReflectorWiring = {},
  ) {
    this.#source = source;
    this.#store = store;
    this.#options = options;
    this.#wiring = wiring;
    this.#name = options.name ?? source.description ?? "objects";
    checkReflectorOptions(this.#name, options);
    this.#clock = options.clock ?? realClock;
    const random = this.#random = options.random ?? Math.random;
    this.#reports = new ReflectorReports(this.#name, { ...options, clock: this.#clock });
    const backoff = options.backoff ??
      newReflectorBackoff({ clock: this.#clock, random, resetMs: Infinity });
    this.#pacing = new RetryPacing(backoff, { clock: this.#clock, random });
    this.#quarantine = wiring.quarantine ??
      new Quarantine({ ...options, name: this.#name, clock: this.#clock });
    this.#quarantine.onRelistDue((dueMs) => this.#followed?.relistAt(dueMs));
    this.#metrics = options.metrics && new ReflectorMetrics(options.metrics, this.#name, this.#clock);
    this.#state = initialState(options.useWatchList ?? true);
    this.#rhythm = new BookmarkRhythm(options.bookmarkSilenceMs ?? DEFAULTS.bookmarkSilenceMs);
    this.#ends = new WatchEnds({
      name: this.#name,
      clock: this.#clock,
      metrics: this.#metrics,
      reports: this.#reports,
      quarantine: this.#quarantine,
      rhythm: this.#rhythm,
      maxInternalErrorRetryMs: options.maxInternalErrorRetryMs ?? 0,
    });
    this.#status = new StatusKeeper(this.#clock, {
      resourceVersion: () => this.#writer.resourceVersion,
      outage: () => this.#reports.outages.outage,
      hasNoBookmarks: () => !this.#rhythm.isExpected,
      quarantined: () => this.#quarantine.count,
      onListenerError: (error) => this.#reports.threw("a status listener", error),
    });
    this.#writer = new StoreWriter(store, {
      ...options,
      ...wiring,
      quarantine: this.#quarantine,
      contact: this.#status.contact,
      metrics: this.#metrics,
      reports: this.#reports,
    });
  }

  /** Its name in log lines. */
  get name(): string {
    return this.#name;
  }

  /** As `Reflector.run`. */
  async run(signal: AbortSignal): Promise<void> {
    this.#start();
    try {
      await this.#restore(signal);
      while (!signal.aborted) await this.#cycle(signal, { onEnd: "backOff" });
    } finally {
      this.#stop();
    }
  }

  /** As `Reflector.listAndWatch`. */
  async listAndWatch(signal: AbortSignal): Promise<void> {
    this.#start();
    try {
      const error = await this.#cycle(signal, { onEnd: "return" });
      if (error !== undefined) throw error;
    } finally {
      this.#stop();
    }
  }

  /** As `Reflector.lastSyncResourceVersion`. */
  lastSyncResourceVersion(): string {
    return this.#writer.lastSeen;
  }

  /** As `Reflector.isLastSyncResourceVersionUnavailable`. */
  isLastSyncResourceVersionUnavailable(): boolean {
    return this.#state.isResourceVersionUnavailable;
  }

  /** As `Reflector.status`. */
  status(): ReflectorStatus {
    return this.#status.snapshot();
  }

  /** As `Reflector.failure`. */
  failure(): FailedTry | undefined {
    return this.#running ? this.#reports.outages.lastTry : undefined;
  }

  /** As `Reflector.onStatus`. */
  onStatus(listener: (status: ReflectorStatus) => void): () => void {
    return this.#status.listen(listener);
  }

  /**
   * Moves the position to a version up to which nothing is missing, as a bookmark would.
   *
   * @returns Whether it is there. Between two watches nothing moves: a list that has started may have an earlier version.
   */
  proven({ after, through, ageMs = 0 }: VersionProof): boolean {
    const position = this.#writer.resourceVersion;
    if (position === "" || !this.#writer.hasReceived(after)) return false;
    if (compareResourceVersions(position, through) >= 0) return true;
    if (this.#followed === undefined) return false;
    this.#writer.progressed(through);
    this.#heard = this.#now(); // by another request
    this.#noteContact(ageMs);
    return true;
  }

  /**
   * The server has confirmed the content of the snapshot.
   *
   * @param options `isComplete`: bookmarks are not needed as a proof that the server has reached its version.
   */
  confirmed({ isComplete }: { readonly isComplete: boolean }): void {
    if (!this.#isUnconfirmed) return;
    this.#isUnconfirmed = false;
    this.#state = withoutResumption(this.#state);
    if (isComplete) this.#rhythm.proven();
    this.#noteContact();
  }

  #start(): void {
    if (this.#running) {
      throw new TypeError(`Cannot run the reflector of ${this.#name} twice at the same time`);
    }
    this.#running = true;
  }

  #stop(): void {
    this.#running = false;
    this.#status.enter("stopped");
  }

  /** Puts the content of a snapshot into the store, if there is one. */
  async #restore(signal: AbortSignal): Promise<void> {
    const { snapshot } = this.#wiring;
    if (snapshot === undefined || signal.aborted) return;
    this.#status.enter("resuming");
    const content = await snapshot.load(signal);
    if (content === undefined || signal.aborted) return;
    this.#writer.replace(content.items as T[], [], content.resourceVersion);
    this.#isUnconfirmed = true;
    this.#rhythm.resumed();
    this.#status.restored(content.savedAtMs);
    this.#state = restoredState(this.#state, content);
  }

  async #probe(signal: AbortSignal): Promise<Outcome> {
    this.#status.enter("resuming");
    try {
      return { of: "probe", ...await this.#wiring.snapshot!.probe(signal) };
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
      return { of: "probe", error };
    }
  }

  /** From one "start" to the next. Returns the error it ended with, if that is one to report. */
  async #cycle(
    signal: AbortSignal,
    { onEnd }: { readonly onEnd: "backOff" | "return" },
  ): Promise<Error | undefined> {
    let watch: OpenWatch<T> | undefined;
    let resync: ResyncTimer | undefined;
    this.#metrics?.cycleBegins(this.#lastEnd);
    let { step, error } = this.#next({ of: "start" }, signal);
    try {
      while (!signal.aborted) {
        switch (step.do) {
          case "probe":
            ({ step, error } = this.#next(await this.#probe(signal), signal));
            break;
          case "stream": {
            const streamed: Streamed<T> = await this.#stream(signal);
            watch = streamed.watch;
            ({ step, error } = this.#next(streamed.outcome, signal));
            break;
          }
          case "list":
            ({ step, error } = this.#next(await this.#list(signal, step), signal));
            break;
          case "watch": {
            resync ??= this.#newResyncTimer();
            const opened = watch;
            watch = undefined;
            const outcome = await this.#watch(signal, opened);
            if (outcome === undefined) return undefined;
            ({ step, error } = this.#next(outcome, signal));
            break;
          }
          case "backOff":
            if (step.then === "start") {
              resync?.stop();
              if (onEnd === "backOff") await this.#sleep(signal);
              else this.#reports.outages.waits(undefined);
              return error;
            }
            await this.#sleep(signal);
            step = { do: step.then };
        }
      }
      return undefined;
    } finally {
      watch?.close();
      resync?.stop();
    }
  }

  /** Asks the state machine, and reports the error that ended a cycle. */
  #next(outcome: Outcome, signal: AbortSignal): { step: Step; error: Error | undefined } {
    const { resourceVersion } = this.#writer;
    const nowMs = monotonicNow(this.#clock);
    const { state, step, report, pause } = transition({ ...this.#state, resourceVersion }, outcome, nowMs);
    this.#state = state;
    if (pause !== undefined) {
      this.#status.streamsPaused(pause);
      this.#reports.streamsPaused(pause);
    }
    if (signal.aborted) return { step, error: undefined }; // a request that the caller aborted has not failed
    const failed = report ?? failedTry(outcome, step);
    if (failed === undefined) return { step, error: undefined };
    // client-go keeps requests to itself that it repeats: a server that is lost should be noticed.
    const error = this.#reports.tryFailed(failed, { endsCycle: report !== undefined });
    return { step, error: report === undefined ? undefined : error };
  }

  async #stream(signal: AbortSignal): Promise<Streamed<T>> {
    this.#status.enter("streaming", { progress: { items: 0 } });
    const resourceVersion = this.#state.isResourceVersionUnavailable ? "" : this.#state.resourceVersion;
    const startMs = monotonicNow(this.#clock);
    let watch: OpenWatch<T> | undefined;
    let keep = false;
    let received = false;
    let closed = "it was closed before its end bookmark";
    const lastedMs = () => monotonicNow(this.#clock) - startMs;
    const listed = this.#metrics?.listBegins();
    try {
      watch = await this.#openWatch({
        resourceVersion,
        allowWatchBookmarks: true,
        sendInitialEvents: true,
        resourceVersionMatch: "NotOlderThan",
        signal,
      });
      const initial = await readInitialEvents({
        watch,
        intake: this.#wiring.intake,
        clock: this.#clock,
        keyFunc: this.#options.keyFunc ?? deletionHandlingMetaNamespaceKey,
        expectedKind: this.#options.expectedKind,
        silenceMs: this.#options.watchListSilenceMs ?? DEFAULTS.watchListSilenceMs,
        endMs: this.#options.watchListEndMs ?? DEFAULTS.watchListEndMs,
        onProgress: (items) => {
          received = true;
          this.#status.enter("streaming", { progress: { items } });
        },
        quarantine: this.#quarantine,
      }).catch((error) => {
        // A connection that broke is a watch that ended.
        if (networkErrorOf(error) === undefined) throw error;
        this.#fail(error);
        closed = errorMessage(error);
      });
      if (initial === undefined) {
        if (!received && lastedMs() < VERY_SHORT_WATCH_MS) throw new VeryShortWatchError(this.#name);
        return { outcome: { of: "stream", closed, lastedMs: lastedMs() } };
      }
      if (!this.#acceptsIntake(initial.resourceVersion)) {
        return { outcome: { of: "stream", unproven: true } };
      }
      this.#replace(initial.items, initial.quarantined, initial.resourceVersion, { byBookmark: true });
      this.#status.streamFinished();
      listed?.(initial.items.length);
      keep = true;
      return { outcome: { of: "stream", resourceVersion: initial.resourceVersion }, watch };
    } catch (error) {
      if (error instanceof StalledStreamError) {
        this.#fail(error);
        return { outcome: { of: "stream", stalled: error.message } };
      }
      if (!signal.aborted) this.#fail(error);
      return { outcome: { of: "stream", error, lastedMs: lastedMs() } };
    } finally {
      if (!keep) watch?.close();
    }
  }

  async #list(signal: AbortSignal, step: Extract<Step, { do: "list" }>): Promise<Outcome> {
    const attempt = step.again ?? listAttempt(this.#state, this.#options.watchListPageSize ?? 0);
    const options = listOptions(attempt, { again: step.again !== undefined });
    this.#status.enter("listing", { progress: { items: 0 } });
    this.#heard = undefined;
    const stored = this.#metrics?.listBegins();
    try {
      const { listTimeoutMs = DEFAULTS.listTimeoutMs } = this.#options;
      const request = {
        name: this.#name,
        clock: this.#clock,
        listTimeoutMs,
        intake: this.#wiring.intake,
        holdText: this.#wiring.holdText,
        onBytes: this.#onBytes(this.#metrics?.onListBytes),
      };
      const pages = {
        list: (page: ListOptions) => requestList(this.#source, { ...page, signal }, request),
      };
      const pager: PagerOptions<T> = {
        signal,
        checkPage: refuseTable,
        onPage: (items, remaining) =>
          this.#status.enter("listing", {
            progress: remaining === undefined ? { items } : { items, remaining },
          }),
      };
      let list = await listAllPages(pages, options, pager);
      if (!this.#acceptsIntake(list.metadata.resourceVersion)) {
        list = await listAllPages(pages, options, pager);
      }
      for (const quarantined of list.quarantined) this.#quarantine.add(quarantined);
      const listed = list.metadata.resourceVersion ?? "";
      this.#replace(list.items, list.quarantined, listed, { byBookmark: false });
      stored?.(list.items.length);
      return { of: "list", resourceVersion: listed, paginated: list.paginated, attempt };
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
      return { of: "list", error, attempt, again: step.again !== undefined };
    }
  }

  /** Whether what the intake made of the objects of a list is valid, now that its version is known. */
  #acceptsIntake(resourceVersion = ""): boolean {
    const { acceptIntake } = this.#wiring;
    return acceptIntake?.({ hasAdvanced: this.#writer.isAdvance(resourceVersion) }) ?? true;
  }

  /** Hands a whole list to the store: with that, all is well. */
  #replace(
    items: T[],
    quarantined: readonly Quarantined[],
    resourceVersion: string,
    { byBookmark }: { readonly byBookmark: boolean },
  ): void {
    this.#writer.replace(items, quarantined, resourceVersion);
    if (this.#isUnconfirmed) this.#rhythm.proven();
    this.#isUnconfirmed = false;
    this.#state = withoutResumption(this.#state);
    this.#quarantine.recovered();
    this.#rhythm.listed({ byBookmark });
    this.#watchesSinceList = 0;
    this.#failure = undefined;
    this.#status.attempt = 0;
    this.#noteContact();
  }

  /**
   * Follows a watch, opened by a streamed list or here. Returns `undefined` if the signal was aborted
   * meanwhile.
   */
  async #watch(signal: AbortSignal, opened: OpenWatch<T> | undefined): Promise<Outcome | undefined> {
    const startMs = monotonicNow(this.#clock);
    let watch = opened;
    if (watch === undefined) {
      if (this.#watchesSinceList++ > 0) this.#metrics?.reconnects(this.#lastEnd);
      this.#lastEnd = undefined;
      try {
        watch = await this.#openWatch({
          resourceVersion: this.#writer.resourceVersion,
          allowWatchBookmarks: true,
          signal,
        });
      } catch (error) {
        if (!signal.aborted) this.#fail(error);
        return { of: "watch", refused: error };
      }
    }
    this.#pacing.healthy();
    this.#failure = undefined;
    if (opened !== undefined) this.#watchesSinceList++;
    this.#metrics?.watchBegins();
    this.#status.attempt = 0;
    this.#reports.outages.over();
    this.#status.enter("watching");
    this.#writer.watchBegins({ isFollowing: opened !== undefined });
    const followed = this.#followed = watch;
    const error = await followed.follow((batch) => this.#write(batch, followed), {
      bookmarkSilenceMs: this.#rhythm.silenceMs,
      expectsBookmarks: this.#rhythm.isExpected,
      relistDueMs: this.#quarantine.relistDueMs,
    });
    this.#followed = undefined;
    if (signal.aborted) return undefined;
    const { events, bookmarks } = watch;
    const lastedMs = monotonicNow(this.#clock) - startMs;
    const end = this.#ends.classify({ events, bookmarks, lastedMs, error });
    if (end.error !== undefined) this.#fail(end.error);
    return end.outcome;
  }

  #write(batch: readonly WatchItem<T>[], watch: OpenWatch<T>): void {
    this.#noteContact(oldestNewsOf(batch));
    this.#status.contact.lastEventTimeMs = this.#clock.now();
    this.#writer.write(batch, watch);
  }

  /** What a resync throws ends the watch; between two watches, the next period has to do. */
  #newResyncTimer(): ResyncTimer {
    const { resyncPeriodMs = 0, shouldResync } = this.#options;
    return new ResyncTimer({
      clock: this.#clock,
      periodMs: resyncPeriodMs,
      shouldResync,
      resync: () => this.#store.resync(),
      onError: (error) => this.#followed?.end(error),
    });
  }

  #openWatch(request: ListOptions & { readonly signal: AbortSignal }): Promise<OpenWatch<T>> {
    const { openTimeoutMs = DEFAULTS.openTimeoutMs, minWatchTimeoutMs = 0 } = this.#options;
    this.#heard = undefined;
    return openWatch(this.#source, request, {
      name: this.#name,
      clock: this.#clock,
      random: this.#random,
      openTimeoutMs,
      minWatchTimeoutMs: Math.max(minWatchTimeoutMs, DEFAULTS.minWatchTimeoutMs),
      onBytes: this.#onBytes(this.#metrics?.onWatchBytes),
      holdText: this.#wiring.holdText,
    });
  }

  #onBytes(count: ((bytes: number) => void) | undefined): (bytes: number) => void {
    return (bytes) => {
      if (bytes > 0) this.#heard = this.#now();
      count?.(bytes);
    };
  }

  /**
   * Something came from the server that shows how far it is: a list, an event, a bookmark. It is as old as
   * its last bytes are. A watch that is opened shows nothing: the server may not follow its own storage any
   * more.
   */
  #noteContact(ageMs = 0): void {
    if (this.#isUnconfirmed) return;
    const { wallMs, monotonicMs } = this.#heard ?? this.#now();
    const { contact } = this.#status;
    // What a cache says of its own contact may be less than what was known before.
    if (ageMs > 0 && contact.wallMs !== undefined && monotonicMs - ageMs <= contact.monotonicMs) return;
    contact.wallMs = wallMs - ageMs;
    contact.monotonicMs = monotonicMs - ageMs;
    this.#metrics?.contact(contact.wallMs);
  }

  #now(): { readonly wallMs: number; readonly monotonicMs: number } {
    return { wallMs: this.#clock.now(), monotonicMs: monotonicNow(this.#clock) };
  }

  async #sleep(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const delayMs = this.#pacing.delayAfter(this.#failure);
    this.#failure = undefined;
    this.#reports.outages.waits(delayMs);
    this.#status.backOff(delayMs);
    await sleepUnlessAborted(delayMs, { clock: this.#clock, signal });
  }

  #fail(error: unknown): void {
    this.#failure = error;
    this.#lastEnd = error;
    this.#status.fail(error);
  }
}

/** The outcome of a streamed list, and its connection if it continues as the watch. */
interface Streamed<T> {
  readonly outcome: Outcome;
  readonly watch?: OpenWatch<T>;
}

/**
 * How old the news of a batch are: bookmarks of a cache say when it had the last contact with its own server.
 * Events are news, but of one of several servers only where the resource is merged.
 */
function oldestNewsOf(batch: readonly WatchItem<unknown>[]): number {
  const last = batch.at(-1);
  if (last?.type !== "BOOKMARK") return 0;
  const isMerged = layoutOf(last.object.metadata.resourceVersion ?? "") !== "";
  return isMerged || batch.every(({ type }) => type === "BOOKMARK") ? ageMsOf(last.object) : 0;
}
