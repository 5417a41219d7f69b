/**
 * Requests that do not wait for ever.
 * @module
 */

import type { ListOptions, ListPage, ListWatchContext, WatchStream } from "../meta/list_watch.ts";
import { NetworkError } from "../meta/status.ts";
import { abortable, type LinkedAbort, linkedAbort } from "../util/abort.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import type { ListerWatcher } from "./lister_watcher.ts";
import { OpenWatch } from "./open_watch.ts";
import type { ReflectorMetrics } from "./reflector_metrics.ts";
import type { ReflectorOptions } from "./reflector_options.ts";
import type { ReflectorWiring } from "./reflector_wiring.ts";
import { Watchdog } from "./watchdog.ts";

/** What a {@linkcode PatientSource} needs. */
export interface PatientSourceOptions
  extends Pick<ReflectorOptions, "openTimeoutMs" | "listTimeoutMs" | "minWatchTimeoutMs"> {
  readonly intake: ReflectorWiring["intake"];
  readonly name: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: ReflectorMetrics;
}

const DEFAULT_MIN_WATCH_TIMEOUT_MS = 300_000;
const DEFAULT_OPEN_TIMEOUT_MS = 30_000;
const DEFAULT_LIST_TIMEOUT_MS = 90_000;
/** How many times longer than it may stand still a page may take as a whole. */
const LONGEST_LIST = 10;
// How much later than it was asked to a server may end a watch.
const DEADLINE_GRACE_MS = 5_000;

/** A source whose answers must begin, or go on, within a time: a dead connection shows no other sign. */
export class PatientSource<T> {
  readonly #source: ListerWatcher<T>;
  readonly #options: PatientSourceOptions;

  constructor(source: ListerWatcher<T>, options: PatientSourceOptions) {
    this.#source = source;
    this.#options = options;
  }

  /**
   * Opens a watch, which the server is asked to end after a time.
   *
   * @throws {NetworkError} The server did not begin to answer in time.
   * @throws Whatever the source throws.
   */
  async watch(
    options: Omit<ListOptions, "timeoutSeconds">,
    signal: AbortSignal,
  ): Promise<OpenWatch<T>> {
    const { clock, name, metrics, openTimeoutMs = DEFAULT_OPEN_TIMEOUT_MS } = this.#options;
    const link = linkedAbort(signal);
    const timeoutSeconds = this.#timeoutSeconds();
    const deadlineMs = monotonicNow(clock) + timeoutSeconds * 1_000 + DEADLINE_GRACE_MS;
    const giveUp = () =>
      link.abort(
        new NetworkError("Unreachable", `Cannot watch ${name}: no answer within ${openTimeoutMs} ms`),
      );
    let answer: Promise<WatchStream<T>> | undefined;
    const received = { bytes: 0, lastMs: 0 };
    const onBytes = (bytes: number) => {
      received.bytes += bytes;
      received.lastMs = monotonicNow(clock);
      metrics.onWatchBytes?.(bytes);
    };
    try {
      const stream = await within(
        openTimeoutMs,
        giveUp,
        clock,
        link,
        () => answer = this.#source.watch({ ...options, timeoutSeconds }, { signal: link.signal, onBytes }),
      );
      return new OpenWatch(stream, link, { deadlineMs, received });
    } catch (error) {
      link.unlink();
      // A source that does not heed the signal may still answer, and nobody will read what it opens.
      answer?.then((late) => new OpenWatch(late, link, { deadlineMs, received }).close()).catch(() => {});
      throw error;
    }
  }

  /** Spread, so that the watches of many informers do not end together. */
  #timeoutSeconds(): number {
    const { random, minWatchTimeoutMs = 0 } = this.#options;
    const minMs = Math.max(minWatchTimeoutMs, DEFAULT_MIN_WATCH_TIMEOUT_MS);
    return Math.floor((minMs / 1000) * (1 + random()));
  }

  /**
   * One page of a list. It may take long as long as it goes on: what arrives of it, bytes or items, is progress.
   *
   * @throws {NetworkError} The page did not go on, or did not come to its end.
   * @throws Whatever the source throws.
   */
  async list(options: ListOptions, signal: AbortSignal): Promise<ListPage<T>> {
    const { clock, name, metrics, intake, listTimeoutMs = DEFAULT_LIST_TIMEOUT_MS } = this.#options;
    const link = linkedAbort(signal);
    let bytes = 0;
    const giveUp = (why: string) =>
      link.abort(new NetworkError("Unreachable", `Cannot list ${name}: ${why} ms`));
    const silence = new Watchdog(clock, listTimeoutMs, () => {
      const what = bytes > 0 ? `nothing more than ${bytes} bytes of a page came for` : "no whole page within";
      giveUp(`${what} ${listTimeoutMs}`);
    });
    const context: ListWatchContext = {
      signal: link.signal,
      onBytes: (more) => {
        bytes += more;
        if (more > 0) silence.feed();
        metrics.onListBytes?.(more);
      },
      ...(intake && {
        intake: (item) => {
          if (bytes === 0) silence.feed(); // a source that does not tell of bytes
          return intake(item);
        },
      }),
    };
    try {
      const longestMs = listTimeoutMs * LONGEST_LIST;
      return await within(
        longestMs,
        () => giveUp(`no whole page within ${longestMs}`),
        clock,
        link,
        () => this.#source.list(options, context),
      );
    } finally {
      silence.stop();
      link.unlink();
    }
  }
}

async function within<R>(
  ms: number,
  onTimeout: () => void,
  clock: Clock,
  link: LinkedAbort,
  ask: () => Promise<R>,
): Promise<R> {
  const watchdog = new Watchdog(clock, ms, onTimeout);
  try {
    return await abortable(ask(), link.signal);
  } finally {
    watchdog.stop();
  }
}
