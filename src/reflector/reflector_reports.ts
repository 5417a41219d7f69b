/**
 * Who is told what a reflector meets with.
 * @module
 */

import { isExpired, isTooManyRequests } from "../meta/status.ts";
import { errorMessage, toError } from "../util/errors.ts";
import type { Clock } from "../util/clock.ts";
import { callGuarded } from "../util/guarded.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import { OutageTeller } from "./outage.ts";
import type { ReflectorOptions } from "./reflector_options.ts";
import type { StreamPauseBegin } from "./stream_trial.ts";

/** So long a server may ask for patience, and only the log hears of it. */
const PATIENCE_MS = 30_000;

/** So many causes of failed watches are told apart; more are more than one server has. */
const MOST_CAUSES = 100;

const PAUSE_IN_WORDS: Readonly<Record<StreamPauseBegin["cause"], string>> = {
  stalled: "the streamed list stalled",
  unfinished: "streamed lists do not come to their end",
  refused: "streamed lists are refused, and lists are not",
};

/** Tells the user's functions, and the log where there are none. What those functions throw is logged. */
export class ReflectorReports {
  readonly #name: string;
  readonly #options: Pick<ReflectorOptions, "watchErrorHandler">;
  readonly #logger: Logger;
  /** What the log was warned of since a watch was well. */
  readonly #warned = new Set<string>();
  /** Tells of a server that is lost, and of its return. */
  readonly outages: OutageTeller;

  constructor(
    name: string,
    options: Pick<ReflectorOptions, "watchErrorHandler" | "logger"> & {
      readonly clock: Clock;
    },
  ) {
    this.#name = name;
    this.#options = options;
    this.#logger = options.logger ?? consoleLogger;
    this.outages = new OutageTeller(options.clock, (text) => this.log("warn", text));
  }

  /**
   * A try failed: the user's function hears of it. Of a server that asks for patience (429) it hears only where that
   * goes on, or where it ended a cycle: what a repeated request makes up for, client-go keeps to itself.
   */
  tryFailed(cause: unknown, { endsCycle }: { readonly endsCycle: boolean }): Error {
    const error = toError(cause);
    const { watchErrorHandler } = this.#options;
    this.outages.failed(error);
    this.log("debug", error.message);
    const isTold = endsCycle || !isTooManyRequests(error) || this.outages.lastedMs >= PATIENCE_MS;
    if (isTold && watchErrorHandler !== undefined) {
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
  log(level: "debug" | "warn", text: string): void {
    this.#logger[level](`${this.#name}: ${text}`, { reflector: this.#name });
  }

  #guarded(what: string, call: () => unknown): void {
    callGuarded(call, (error) => this.threw(what, error));
  }
}
