import { compareResourceVersions, type KubernetesObject } from "../../meta/object.ts";
import { hasReached } from "../../meta/merged_version.ts";
import { isExpired, statusErrorOf } from "../../meta/status.ts";
import type { VersionWaitOptions } from "../../meta/version_waiters.ts";
import { type LinkedAbort, linkedAbort, sleep, sleepUnlessAborted, withTimeLimit } from "../../util/abort.ts";
import { type Clock, type Moment, momentOf, monotonicNow } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import { type Held, heldStoreOf } from "../../store/holding.ts";
import {
  changesSince,
  type CurrentState,
  currentState,
  currentVersion,
  isEqualTo,
  type MetadataSource,
} from "../../informer/snapshot/progress.ts";
import type { ServedInformer, ServedStore } from "./served_informer.ts";

export interface FreshReadsOptions {
  readonly freshnessTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The content of an informer, for reads that wait. */
export interface FollowedContent {
  readonly resourceVersion: string;
  /** Whether the content reaches a resourceVersion in time; at once if it has, or never will. */
  reaches(resourceVersion: string, options: VersionWaitOptions): Promise<boolean>;
}

/** Whether a read is fresh: `unknown` if the API server did not answer, `behind` if the cache was late. */
export type FreshnessOutcome = "fresh" | "behind" | "unknown";

/** An API server's version, and what the content had reached at the time of the question. */
interface Answer {
  readonly version: string;
  readonly position: string;
}

// The event may be on its way.
const GRACE_MS = 10;
// kube-apiserver asks etcd for progress as often:
// https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/storage/cacher/progress/watch_progress.go
const ASK_MS = 100;
// An event is on its way for less, and a read waits for more.
const OVERDUE_MS = 2_000;
// After a question without an answer.
const RETRY_MS = 1_000;
// The content mostly lags behind a reader from the future, and kube-apiserver keeps it waiting in silence.
const LOST_AFTER_MS = 5_000;
// A reader from the future waits in any case.
const LOST_RETRY_MS = 30_000;
// Readers open their watches again within a minute.
const AWAITED_MS = 60_000;
const MOST_AWAITED = 64;
// The longest Retry-After that is respected: the server may be wrong by days.
const LONGEST_ASKED_MS = 600_000;
// A list of more objects costs more than it saves.
const MAX_STATE_OBJECTS = 100;
// How long a resource with more objects counts as large.
const LARGE_MS = 60_000;

/**
 * Brings one resource up to its API server's resourceVersion, as kube-apiserver does for its own cache with
 * etcd: one question for the version now, shared by all reads that came before it was sent, then a wait for
 * the content.
 *
 * All resources of a cluster share one counter, so that a quiet resource is rarely at the server's version.
 * Then no event is missing, but the proof that there is none. Small resources get it by a list of versions
 * that equals the content; others by a short second watch, up to its bookmark, which takes 1 to 2 s.
 *
 * While no read waits, it asks nothing and no timer runs.
 */
export class FreshReads {
  readonly #content: FollowedContent;
  readonly #informer: ServedInformer;
  readonly #source: MetadataSource;
  readonly #options: FreshReadsOptions;
  readonly #stop = new AbortController();
  readonly #wanted = new Map<symbol, string>();
  #asked: Promise<Answer> | undefined;
  #next: Promise<Answer> | undefined;
  /** The latest version that the server is known to have. */
  #serverVersion = "";
  /** When the last question failed, if no later one was answered. */
  #failedMs: number | undefined;
  #largeUntilMs = -Infinity;
  /** When the content was first seen to lack what the server had. */
  #lacking: Moment | undefined;
  /** Since when readers from the future wait, by their resourceVersions. */
  readonly #awaitedMs = new Map<string, number>();
  /** After a failure, or as long as the server demands, no question is sent. */
  #quietUntilMs = -Infinity;
  #proving: LinkedAbort | undefined;

  constructor(
    content: FollowedContent,
    of: { readonly informer: ServedInformer; readonly source: MetadataSource },
    options: FreshReadsOptions,
  ) {
    this.#content = content;
    this.#informer = of.informer;
    this.#source = of.source;
    this.#options = options;
  }

  close(): void {
    this.#stop.abort();
  }

  /** Waits until the content is as fresh as the server is now. Never rejects. */
  async catchUp(
    wait: VersionWaitOptions,
    { staleIfError }: { readonly staleIfError: boolean },
  ): Promise<FreshnessOutcome> {
    const startMs = this.#nowMs();
    // During an outage one read tries, the others do not wait for it.
    if (staleIfError && this.#failedMs !== undefined && this.#asked !== undefined) return "unknown";
    let answer: Answer;
    try {
      answer = await this.#currentVersion();
    } catch {
      return "unknown";
    }
    const { version, position } = answer;
    // The server was restored from a backup, and the informer does not know yet.
    if (compareResourceVersions(version, position) < 0) return "behind";
    if (this.#isReached(version)) return "fresh";
    const { timeoutMs = Infinity } = wait;
    const leftMs = Math.max(0, timeoutMs - (this.#nowMs() - startMs));
    const options = {
      timeoutMs: leftMs,
      // Reading the signal of a request has a cost.
      get signal() {
        return wait.signal;
      },
    };
    return await this.reaches(version, options) ? "fresh" : "behind";
  }

  /** Whether the content reaches a resourceVersion within a time; asks for proof of it. */
  async reaches(resourceVersion: string, wait: VersionWaitOptions): Promise<boolean> {
    if (this.#isReached(resourceVersion)) return true;
    const waiter = Symbol();
    this.#wanted.set(waiter, resourceVersion);
    try {
      const reached = this.#content.reaches(resourceVersion, wait);
      this.#prove();
      return await reached;
    } finally {
      this.#wanted.delete(waiter);
      if (this.#wanted.size === 0) this.#proving?.abort();
    }
  }

  /**
   * Whether a resourceVersion that the content has not reached is of a lost history: the server, asked after
   * some seconds, is before it. Asks until it is answered; `false` if the signal is aborted first. The
   * seconds of readers that open their watches again count from their first watch.
   */
  async isLost(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    const waitedMs = monotonicNow(clock) - this.#firstAwaitedMs(resourceVersion);
    await sleepUnlessAborted(Math.max(0, LOST_AFTER_MS - waitedMs), { clock, signal });
    while (!signal.aborted && !this.#stop.signal.aborted && !this.#isReached(resourceVersion)) {
      try {
        const { version } = await this.#currentVersion();
        return !signal.aborted && compareResourceVersions(version, resourceVersion) < 0;
      } catch {
        await sleepUnlessAborted(LOST_RETRY_MS, { clock, signal });
      }
    }
    return false;
  }

  /** When a reader from the future was here for the first time, as far as that is remembered. */
  #firstAwaitedMs(resourceVersion: string): number {
    const nowMs = monotonicNow(this.#options.clock);
    const known = this.#awaitedMs.get(resourceVersion);
    if (known !== undefined) return known;
    for (const [other, atMs] of this.#awaitedMs) {
      const isOld = nowMs - atMs > AWAITED_MS || this.#awaitedMs.size >= MOST_AWAITED;
      if (isOld || this.#isReached(other)) this.#awaitedMs.delete(other);
    }
    this.#awaitedMs.set(resourceVersion, nowMs);
    return nowMs;
  }

  /** A question that is sent after this call. */
  #currentVersion(): Promise<Answer> {
    if (this.#asked === undefined) return this.#ask();
    return this.#next ??= this.#asked.catch(() => {}).then(() => this.#ask());
  }

  #ask(): Promise<Answer> {
    this.#next = undefined;
    const position = this.#content.resourceVersion;
    const asked = momentOf(this.#options.clock);
    const isPausing = this.#isPausing();
    const answer = this.#inTime((signal) => currentVersion(this.#source, signal), this.#stop.signal).then(
      (version) => {
        if (this.#failedMs !== undefined) this.#options.logger.info(`${this.#name}: reads are fresh again`);
        this.#failedMs = undefined;
        this.#sawVersion(version);
        if (compareResourceVersions(version, position) < 0) {
          this.#serverVersion = version;
          this.#informer.proven?.({ after: position, through: version, asked });
        }
        return { version, position };
      },
    ).catch((error) => {
      if (isPausing) throw error;
      if (this.#failedMs === undefined && !this.#stop.signal.aborted) {
        this.#options.logger.warn(
          `${this.#name}: cannot prove that reads are fresh, as the API server does not answer: ${
            errorMessage(error)
          }`,
          { error },
        );
      }
      this.#failedMs = this.#nowMs();
      throw error;
    }).finally(() => {
      if (this.#asked === answer) this.#asked = undefined;
    });
    return this.#asked = answer;
  }

  #isPausing(): boolean {
    return this.#nowMs() < this.#quietUntilMs;
  }

  /** Looks for proof of the versions that reads wait for, until none does. */
  async #prove(): Promise<void> {
    if (this.#proving !== undefined || this.#stop.signal.aborted) return;
    const link = this.#proving = linkedAbort(this.#stop.signal);
    const { clock } = this.#options;
    try {
      await sleep(GRACE_MS, { clock, signal: link.signal });
      for (;;) {
        const beginMs = this.#nowMs();
        await this.#proveOnce(link.signal).catch(() => {}); // the readers' time limit ends it
        const leftMs = beginMs + ASK_MS - this.#nowMs();
        await sleep(Math.max(leftMs, GRACE_MS), { clock, signal: link.signal });
      }
    } catch {
      // no read waits any more
    } finally {
      link.unlink();
      this.#proving = undefined;
      if (this.#wanted.size > 0) this.#prove();
    }
  }

  async #proveOnce(signal: AbortSignal): Promise<void> {
    const from = this.#content.resourceVersion;
    let asked = momentOf(this.#options.clock);
    if (this.#nowMs() >= this.#largeUntilMs) {
      const state = await this.#inTime(
        (signal) => currentState(this.#source, { maxObjects: MAX_STATE_OBJECTS, signal }),
        signal,
      );
      if (state === undefined) {
        this.#largeUntilMs = this.#nowMs() + LARGE_MS;
      } else {
        this.#sawVersion(state.resourceVersion);
        if (await this.#becomes(state, asked, signal)) return;
      }
    }
    // The server cannot prove a version that it has not reached.
    if (!this.#isKnownVersionWanted()) await this.#currentVersion();
    if (!this.#isKnownVersionWanted()) return;
    asked = momentOf(this.#options.clock);
    const changes = await this.#inTime(
      (signal) => changesSince(this.#source, { resourceVersion: from, signal }),
      signal,
    );
    if (changes === undefined) return;
    const { lastChange, through } = changes;
    const after = lastChange === "" ? from : lastChange;
    if (!await this.#content.reaches(after, { timeoutMs: ASK_MS, signal })) this.#lacks(asked);
    this.#informer.proven?.({ after, through, asked });
  }

  /** The content still lacks what the server had when it was asked: its watch may be dead. */
  #lacks(asked: Moment): void {
    const since = this.#lacking ??= asked;
    if (this.#nowMs() - since.monotonicMs < OVERDUE_MS) return;
    this.#lacking = undefined;
    this.#informer.overdue?.(since);
  }

  #isKnownVersionWanted(): boolean {
    return Array.from(this.#wanted.values()).some((wanted) => hasReached(this.#serverVersion, wanted));
  }

  /** Whether the content becomes equal to a state, which proves the state's version. */
  async #becomes(state: CurrentState, asked: Moment, signal: AbortSignal): Promise<boolean> {
    const untilMs = this.#nowMs() + ASK_MS;
    const { held } = heldStoreOf<KubernetesObject, ServedStore<Held<KubernetesObject>>>(
      this.#informer.indexer,
    );
    while (!this.#isReached(state.resourceVersion)) {
      if (isEqualTo(state, held)) {
        const after = this.#content.resourceVersion;
        const proof = { after, through: state.resourceVersion, asked, byState: true };
        return this.#informer.proven?.(proof) ?? false;
      }
      const leftMs = untilMs - this.#nowMs();
      if (leftMs <= 0) {
        this.#lacks(asked);
        return false;
      }
      await this.#changeWithin(leftMs, signal);
    }
    return true;
  }

  async #changeWithin(ms: number, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const changed = linkedAbort(signal);
    const done = () => changed.abort();
    const unobserve = this.#informer.observeHeld?.(done) ?? this.#informer.observe(done);
    await sleepUnlessAborted(ms, { clock, signal: changed.signal });
    unobserve();
    changed.unlink();
    signal.throwIfAborted();
  }

  #isReached(resourceVersion: string): boolean {
    return hasReached(this.#content.resourceVersion, resourceVersion);
  }

  #sawVersion(version: string): void {
    if (compareResourceVersions(version, this.#serverVersion) > 0) this.#serverVersion = version;
  }

  /** Asks the server, for a limited time, and not during a pause. */
  async #inTime<R>(ask: (signal: AbortSignal) => Promise<R>, signal: AbortSignal): Promise<R> {
    if (this.#isPausing()) throw new Error("the API server has just failed to answer");
    const { clock, freshnessTimeoutMs } = this.#options;
    try {
      return await withTimeLimit(ask, {
        ms: freshnessTimeoutMs,
        newError: () => new Error(`no answer within ${freshnessTimeoutMs} ms`),
        clock,
        signal,
      });
    } catch (error) {
      if (!signal.aborted && !isExpired(error)) {
        const askedMs = Math.min(statusErrorOf(error)?.retryAfterMs ?? 0, LONGEST_ASKED_MS);
        const pauseMs = Math.max(RETRY_MS, askedMs);
        this.#quietUntilMs = Math.max(this.#quietUntilMs, this.#nowMs() + pauseMs);
      }
      throw error;
    }
  }

  #nowMs(): number {
    return monotonicNow(this.#options.clock);
  }

  get #name(): string {
    return this.#informer.resource?.resource ?? "objects";
  }
}
