/** The reports of a reflector to callbacks and to the log. */

import { isExpired, isTooManyRequests } from "../meta/status.ts";
import { callGuarded, errorMessage, toError } from "../util/errors.ts";
import type { Clock } from "../util/clock.ts";
import { consoleLogger, type LogFields, type Logger } from "../util/logger.ts";
import { OutageReporter } from "./outage.ts";
import type { ReflectorOptions } from "./reflector_options.ts";
import type { StreamPauseBegin } from "./stream_trial.ts";

/** For so long, requests for patience (429) appear only in the log. */
const PATIENCE_MS = 30_000;

/** The most causes of failed watches that are distinguished: more than one server has. */
const MOST_CAUSES = 100;

const PAUSE_IN_WORDS: Readonly<Record<StreamPauseBegin["cause"], string>> = {
  stalled: "the streamed list stalled",
  unfinished: "streamed lists do not come to their end",
  refused: "streamed lists are refused, and lists are not",
};

/** Calls the user's callbacks, or logs where there are none. What callbacks throw is logged. */
export class ReflectorReports {
  readonly #name: string;
  readonly #options: Pick<ReflectorOptions, "watchErrorHandler">;
  readonly #logger: Logger;
  /** What the log was warned of since a watch was well. */
  readonly #warned = new Set<string>();
  /** Logs that a server is lost, and its return. */
  readonly outages: OutageReporter;

  constructor(
    name: string,
    options: Pick<ReflectorOptions, "watchErrorHandler" | "logger"> & {
      readonly clock: Clock;
    },
  ) {
    this.#name = name;
    this.#options = options;
    this.#logger = options.logger ?? consoleLogger;
    this.outages = new OutageReporter(options.clock, (text) => this.log("warn", text, { isOutage: true }));
  }

  /**
   * A try failed: the user's callback receives the error; one of a server that asks for patience (429) only
   * where that continues, or where it ended a cycle: client-go does not report what a repeated request
   * repairs.
   */
  tryFailed(cause: unknown, { endsCycle }: { readonly endsCycle: boolean }): Error {
    const error = toError(cause);
    const { watchErrorHandler } = this.#options;
    this.outages.failed(error);
    this.log("debug", error.message);
    const isReported = endsCycle || !isTooManyRequests(error) || this.outages.lastedMs >= PATIENCE_MS;
    if (isReported && watchErrorHandler !== undefined) {
      this.#guarded("watchErrorHandler", () => watchErrorHandler(error));
    }
    return error;
  }

  /** Lists take the place of streams; said once, until a stream finishes. */
  streamsPaused({ cause, message, ms, isRepeated }: StreamPauseBegin): void {
    const what = PAUSE_IN_WORDS[cause];
    this.log(
      isRepeated ? "debug" : "warn",
      `${what}; listing instead for the next ${ms / 3_600_000} h: ${message}`,
    );
  }

  /** A watch ended with an error; the log has one warning for each cause, until a watch is well again. */
  watchFailed(error: unknown): void {
    const text = `watch ended: ${errorMessage(error)}`;
    if (isExpired(error)) this.log("debug", text);
    else this.#warnOnce(text, text);
  }

  /** A watch was well. */
  watchWasWell(): void {
    this.#warned.clear();
  }

  #warnOnce(cause: string, text: string): void {
    const isNews = !this.#warned.has(cause);
    if (isNews && this.#warned.size < MOST_CAUSES) this.#warned.add(cause);
    this.log(isNews ? "warn" : "debug", text);
  }

  /** A function of the user threw. */
  threw(what: string, error: unknown): void {
    this.#logger.error(`${this.#name}: ${what} threw: ${errorMessage(error)}`, {
      reflector: this.#name,
      error,
    });
  }

  /** A line in the log. */
  log(level: "debug" | "warn", text: string, fields: LogFields = {}): void {
    this.#logger[level](`${this.#name}: ${text}`, { reflector: this.#name, ...fields });
  }

  #guarded(what: string, call: () => unknown): void {
    callGuarded(call, (error) => this.threw(what, error));
  }
}
