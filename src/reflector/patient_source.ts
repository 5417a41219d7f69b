/**
 * Requests that do not wait for ever.
 * @module
 */

import type { ListOptions, ListPage, WatchStream } from "../meta/list_watch.ts";
import { NetworkError } from "../meta/status.ts";
import { abortable, type LinkedAbort, linkedAbort } from "../util/abort.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import type { ListerWatcher } from "./lister_watcher.ts";
import { OpenWatch } from "./open_watch.ts";
import type { ReflectorMetrics } from "./reflector_metrics.ts";
import type { ReflectorOptions } from "./reflector_options.ts";
import { Watchdog } from "./watchdog.ts";

/** What a {@linkcode PatientSource} needs. */
export interface PatientSourceOptions
  extends Pick<ReflectorOptions, "openTimeoutMs" | "listTimeoutMs" | "intake"> {
  readonly name: string;
  readonly clock: Clock;
  readonly metrics: ReflectorMetrics;
}

const DEFAULT_OPEN_TIMEOUT_MS = 30_000;
const DEFAULT_LIST_TIMEOUT_MS = 90_000;
// How much later than it was asked to a server may end a watch.
const DEADLINE_GRACE_MS = 5_000;

/** A source whose answers must begin, or come whole, within a time: a dead connection shows no other sign. */
export class PatientSource<T> {
  readonly #source: ListerWatcher<T>;
  readonly #options: PatientSourceOptions;

  constructor(source: ListerWatcher<T>, options: PatientSourceOptions) {
    this.#source = source;
    this.#options = options;
  }

  /**
   * Opens a watch.
   *
   * @throws {NetworkError} The server did not begin to answer in time.
   * @throws Whatever the source throws.
   */
  async watch(
    options: ListOptions & { readonly timeoutSeconds: number },
    signal: AbortSignal,
  ): Promise<OpenWatch<T>> {
    const { clock, name, metrics, openTimeoutMs = DEFAULT_OPEN_TIMEOUT_MS } = this.#options;
    const link = linkedAbort(signal);
    const deadlineMs = monotonicNow(clock) + options.timeoutSeconds * 1_000 + DEADLINE_GRACE_MS;
    const text = `Cannot watch ${name}: no answer within ${openTimeoutMs} ms`;
    let answer: Promise<WatchStream<T>> | undefined;
    const received = { bytes: 0, lastMs: 0 };
    const onBytes = (bytes: number) => {
      received.bytes += bytes;
      received.lastMs = monotonicNow(clock);
      metrics.onWatchBytes?.(bytes);
    };
    try {
      answer = this.#source.watch(options, { signal: link.signal, onBytes });
      const stream = await within(openTimeoutMs, text, clock, link, answer);
      return new OpenWatch(stream, link, { deadlineMs, received });
    } catch (error) {
      link.unlink();
      // A source that does not heed the signal may still answer, and nobody will read what it opens.
      answer?.then((late) => new OpenWatch(late, link, { deadlineMs, received }).close()).catch(() => {});
      throw error;
    }
  }

  /**
   * One page of a list.
   *
   * @throws {NetworkError} The page did not come whole in time.
   * @throws Whatever the source throws.
   */
  async list(options: ListOptions, signal: AbortSignal): Promise<ListPage<T>> {
    const { clock, name, metrics, intake, listTimeoutMs = DEFAULT_LIST_TIMEOUT_MS } = this.#options;
    const link = linkedAbort(signal);
    const text = `Cannot list ${name}: no whole page within ${listTimeoutMs} ms`;
    try {
      const context = {
        signal: link.signal,
        ...(metrics.onListBytes && { onBytes: metrics.onListBytes }),
        ...(intake && { intake }),
      };
      return await within(listTimeoutMs, text, clock, link, this.#source.list(options, context));
    } finally {
      link.unlink();
    }
  }
}

async function within<R>(
  ms: number,
  text: string,
  clock: Clock,
  link: LinkedAbort,
  answer: Promise<R>,
): Promise<R> {
  const watchdog = new Watchdog(clock, ms, () => link.abort(new NetworkError("Unreachable", text)));
  try {
    return await abortable(answer, link.signal);
  } finally {
    watchdog.stop();
  }
}
