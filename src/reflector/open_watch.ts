/**
 * A watch that is open, and timeouts, in programs that may be suspended: a frozen isolate, a suspended
 * computer, a stopped process.
 *
 * Two clocks show it, and neither is enough. If the monotonic clock continues meanwhile, timers fire long
 * after they were due. If it stops (a suspended computer with Linux or macOS), timers notice nothing, but the
 * wall clock has leapt forward against it; one that is set forward looks the same.
 *
 * So an age (`ageMs`) is the larger of what both say; a silence ({@linkcode Watchdog}) that is found too long
 * after it was due starts again; and an open watch, whose connection has probably died, is opened again.
 */

import type { ListOptions, WatchItem, WatchStream } from "../meta/list_watch.ts";
import { NetworkError } from "../meta/request.ts";
import { abortable, type LinkedAbort, linkedAbort } from "../util/abort.ts";
import { type Clock, type Moment, momentOf, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { RelistDue, SuspendedError } from "./failures.ts";
import type { ListerWatcher } from "./lister_watcher.ts";
import type { ReflectorSettings } from "./reflector_options.ts";

/** How much later than its timeout a server may end a watch. */
const DEADLINE_GRACE_MS = 5_000;
/** How often an open watch looks whether the program was suspended. */
const LOOK_MS = 15_000;

/** Writes the batches of a watch; an error that it throws ends the watch. */
interface WatchWriter<T> {
  write(batch: readonly WatchItem<T>[], watch: OpenWatch<T>): void;
}

interface FollowOptions {
  /** How long a watch on which bookmarks come may be silent, in milliseconds. */
  readonly bookmarkSilenceMs: number;
  /** Whether bookmarks are expected before the first one has come. */
  readonly expectsBookmarks: boolean;
  /** When the watch ends for a relist, in the clock's milliseconds. */
  readonly relistDueMs: number | undefined;
}

/**
 * Opens a watch, with a timeout for the server: a random one, between `minWatchTimeoutMs` and twice that, so
 * that the watches of many informers do not end together.
 */
export async function openWatch<T>(
  source: ListerWatcher<T>,
  request: Omit<ListOptions, "timeoutSeconds"> & { readonly signal: AbortSignal },
  settings: Pick<
    ReflectorSettings,
    "name" | "clock" | "random" | "openTimeoutMs" | "minWatchTimeoutMs" | "holdText"
  >,
  onBytes?: (bytes: number) => void,
): Promise<OpenWatch<T>> {
  const { name, clock, random, openTimeoutMs, minWatchTimeoutMs, holdText } = settings;
  const { signal, ...listOptions } = request;
  const timeoutSeconds = Math.floor((minWatchTimeoutMs / 1000) * (1 + random()));
  const link = linkedAbort(signal);
  const watch = new OpenWatch<T>(clock, link, timeoutSeconds * 1_000 + DEADLINE_GRACE_MS);
  const context = {
    signal: link.signal,
    holdText,
    onBytes: (bytes: number) => {
      watch.receivedBytes += bytes;
      if (bytes > 0) watch.received = momentOf(clock);
      onBytes?.(bytes);
    },
  };
  const late = () => `Cannot watch ${name}: no answer within ${openTimeoutMs} ms`;
  const limit = newTimeLimit(link, { clock, ms: openTimeoutMs, late });
  let answer: Promise<WatchStream<T>> | undefined;
  try {
    answer = source.watch({ ...listOptions, timeoutSeconds }, context);
    watch.begin(await abortable(answer, link.signal));
    // The initial events of a streamed list are kept after a suspension, as a list's items are.
    if (!listOptions.sendInitialEvents) watch.checkSuspension(openTimeoutMs);
    return watch;
  } catch (error) {
    link.unlink();
    // A source that ignores the signal may still answer: the stream that it opens is closed unread.
    answer?.then((late) => (watch.begin(late), watch.close())).catch(() => {});
    throw error;
  } finally {
    limit.stop();
  }
}

/**
 * An open watch, read batch by batch. The streamed list reads it up to the end bookmark and puts the rest of
 * that batch back; then it is followed: one connection serves both. Followed, it ends itself where its peer
 * is dead, as a connection that was cut half-open shows no other sign: past the timeout by which the server
 * should have ended it, where nothing comes for longer than bookmarks are apart, or after a suspension.
 */
export class OpenWatch<T> {
  readonly #clock: Clock;
  readonly #link: LinkedAbort;
  /** When the server must have ended the watch, in the clock's milliseconds. */
  readonly deadlineMs: number;
  /** How many bytes have arrived; 0 where the source does not count them. */
  receivedBytes = 0;
  /** When the last bytes arrived. */
  received: Moment | undefined;
  #iterator: AsyncIterator<readonly WatchItem<T>[]> | undefined;
  #unread: readonly WatchItem<T>[] | undefined;
  #isClosed = false;
  /** Both clocks when the program was last seen to run. */
  #looked: Moment;
  #bookmarkSilenceMs = Infinity;
  #batchMs = 0;
  #silence: Watchdog | undefined;
  #lookTimer: TimerHandle;
  #deadlineTimer: TimerHandle;
  #relistTimer: TimerHandle;

  constructor(clock: Clock, link: LinkedAbort, longestMs: number) {
    this.#clock = clock;
    this.#link = link;
    this.#looked = momentOf(clock);
    this.deadlineMs = this.#looked.monotonicMs + longestMs;
  }

  begin(stream: WatchStream<T>): void {
    this.#iterator = stream[Symbol.asyncIterator]();
  }

  async next(): Promise<readonly WatchItem<T>[] | undefined> {
    if (this.#unread !== undefined) {
      const batch = this.#unread;
      this.#unread = undefined;
      return batch;
    }
    const result = await abortable(this.#iterator!.next(), this.#link.signal);
    return result.done ? undefined : result.value;
  }

  /** Puts items back: the next call of {@linkcode OpenWatch.next} returns them. */
  unread(items: readonly WatchItem<T>[]): void {
    if (items.length > 0) this.#unread = items;
  }

  /** Ends the watch with a reason, which the reader receives. */
  end(reason: unknown): void {
    this.#link.abort(reason);
  }

  /** What the server had at a time has not come: the watch is dead if it has brought nothing since. */
  overdue(since: Moment): void {
    const lastMs = Math.max(this.#batchMs, this.received?.monotonicMs ?? 0);
    if (lastMs < since.monotonicMs) this.#drop("what the server has does not come");
  }

  /** Hands each batch to the writer, within the turn it arrives, until the watch ends; then it is closed. */
  async follow(writer: WatchWriter<T>, options: FollowOptions): Promise<unknown> {
    this.#guard(options);
    try {
      for (let batch = await this.next(); batch !== undefined; batch = await this.next()) {
        this.#batchMs = monotonicNow(this.#clock);
        // Items that the connection held back while the program was suspended are older than the stall, and
        // would look like news.
        if (this.checkSuspension()) throw this.#link.signal.reason;
        writer.write(batch, this);
      }
      return undefined;
    } catch (error) {
      return error;
    } finally {
      this.close();
    }
  }

  #guard({ bookmarkSilenceMs, expectsBookmarks, relistDueMs }: FollowOptions): void {
    const clock = this.#clock;
    this.#bookmarkSilenceMs = bookmarkSilenceMs;
    this.#deadlineTimer = clock.setTimeout(
      () => this.#drop("the server did not end it by its timeout"),
      this.deadlineMs - monotonicNow(clock),
    );
    this.#looked = momentOf(clock);
    this.#batchMs = this.#looked.monotonicMs;
    this.#look();
    if (expectsBookmarks) this.expectBookmarks();
    this.relistAt(relistDueMs);
  }

  /** Makes a watch without bookmarks count as dead: this server sends them. */
  expectBookmarks(): void {
    const ms = this.#bookmarkSilenceMs;
    this.#silence ??= new Watchdog(
      this.#clock,
      ms,
      () => this.#drop(`nothing came for ${ms} ms, no bookmark either`),
      () => this.#batchMs,
    );
  }

  /** Ends the watch at that time, in the clock's milliseconds, for a relist; never if it is `undefined`. */
  relistAt(dueMs: number | undefined): void {
    if (this.#isClosed || dueMs === undefined) return;
    this.#clock.clearTimeout(this.#relistTimer);
    this.#relistTimer = this.#clock.setTimeout(
      () => this.end(new RelistDue("a change was lost: list again")),
      dueMs - monotonicNow(this.#clock),
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#clock.clearTimeout(this.#deadlineTimer);
    this.#clock.clearTimeout(this.#relistTimer);
    this.#clock.clearTimeout(this.#lookTimer);
    this.#silence?.stop();
    this.end(new DOMException("the watch is no longer needed", "AbortError"));
    this.#link.unlink();
    // return() may wait for a read that never ends: it is not awaited.
    try {
      this.#iterator?.return?.()?.catch(() => {});
    } catch {
      // a source whose return() throws has nothing left to close
    }
  }

  #drop(why: string): void {
    if (this.checkSuspension()) return; // that is why
    this.end(new NetworkError("DeadPeer", `the watch is taken for dead: ${why}`));
  }

  #look(): void {
    this.#lookTimer = this.#clock.setTimeout(() => {
      if (!this.checkSuspension()) this.#look();
    }, LOOK_MS);
  }

  /** Looks whether the program was suspended since the last look, and ends the watch if so. */
  checkSuspension(longestMs: number = LOOK_MS): boolean {
    const { wallMs, monotonicMs } = this.#looked;
    const now = this.#looked = momentOf(this.#clock);
    const passedMs = now.monotonicMs - monotonicMs;
    const leapMs = now.wallMs - wallMs - passedMs;
    const stalledMs = Math.max(passedMs - longestMs, leapMs);
    if (stalledMs < STALL_MS) return false;
    this.end(new SuspendedError(stalledMs));
    return true;
  }
}

/** A delay from this on has another cause than other work of the program. */
export const STALL_MS = 30_000;

/**
 * Calls back once when it has not been fed for a time. Feeding costs a look at the clock, not a timer. One
 * that fires long after it was due shows that the program was suspended: it starts again.
 */
export class Watchdog {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onExpired: () => void;
  readonly #alsoFedMs: (() => number) | undefined;
  #fedMs = 0;
  #dueMs = 0;
  #timer: TimerHandle;

  /** Starts watching. `alsoFedMs` returns when another source fed it, in the clock's milliseconds. */
  constructor(clock: Clock, limitMs: number, onExpired: () => void, alsoFedMs?: () => number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onExpired = onExpired;
    this.#alsoFedMs = alsoFedMs;
    this.#arm(limitMs);
  }

  feed(): void {
    this.#fedMs = monotonicNow(this.#clock);
  }

  stop(): void {
    this.#clock.clearTimeout(this.#timer);
  }

  #look(): void {
    const nowMs = monotonicNow(this.#clock);
    if (nowMs - this.#dueMs >= STALL_MS) this.#fedMs = nowMs;
    const fedMs = Math.max(this.#fedMs, this.#alsoFedMs?.() ?? 0);
    const restMs = fedMs + this.#limitMs - nowMs;
    if (restMs <= 0) this.#onExpired();
    else this.#arm(restMs);
  }

  #arm(ms: number): void {
    this.#dueMs = monotonicNow(this.#clock) + ms;
    this.#timer = this.#clock.setTimeout(() => this.#look(), ms);
  }
}

/** Aborts a request that is too slow; to be stopped at its end. */
export function newTimeLimit(
  link: LinkedAbort,
  { clock, ms, late }: { readonly clock: Clock; readonly ms: number; readonly late: () => string },
): Watchdog {
  return new Watchdog(clock, ms, () => link.abort(new NetworkError("Unreachable", late())));
}

/** Calls again and again until the function that it returns is called; never where `ms` is 0. */
export function every(ms: number, clock: Clock, call: () => void): () => void {
  let timer: TimerHandle;
  const arm = () => {
    if (ms > 0) timer = clock.setTimeout(() => (arm(), call()), ms);
  };
  arm();
  return () => clock.clearTimeout(timer);
}
