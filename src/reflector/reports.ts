/** Reports of a reflector: log lines, callbacks, metrics. */

import { type Clock, monotonicNow } from "../util/clock.ts";
import { callGuarded, Listeners } from "../util/errors.ts";
import { type LogFields, type Logger, logsThrown, News } from "../util/logger.ts";
import type { MetricLabels, Metrics } from "../util/metrics.ts";
import { codeOf } from "./failures.ts";
import type { ReflectorSettings } from "./reflector_options.ts";
import type { Effect, ReflectorStatus } from "./state.ts";

type MeasureWatch = Extract<Effect, { do: "measureWatch" }>;

export class ReflectorReports {
  readonly #name: string;
  readonly #watchErrorHandler: ReflectorSettings["watchErrorHandler"];
  readonly #logger: Logger;
  readonly listeners: Listeners<ReflectorStatus>;
  /** The warnings in the log since a watch was well. */
  readonly #warned = new News();

  constructor({ name, watchErrorHandler, logger }: ReflectorSettings) {
    this.#name = name;
    this.#watchErrorHandler = watchErrorHandler;
    this.#logger = logger;
    this.listeners = new Listeners(this.#logsThrown("a status listener"));
  }

  report(error: Error): void {
    const handler = this.#watchErrorHandler;
    if (handler !== undefined) this.guarded("watchErrorHandler", () => handler(error));
  }

  log({ level, text, isOutage, once }: Omit<Extract<Effect, { do: "log" }>, "do">): void {
    const isNews = !once || this.#warned.isNew(text);
    const fields: LogFields = { reflector: this.#name, ...(isOutage && { isOutage }) };
    this.#logger[isNews ? level : "debug"](`${this.#name}: ${text}`, fields);
  }

  /** A watch was well: warnings are news again. */
  forgetWarnings(): void {
    this.#warned.forget();
  }

  /** Calls a function of the user; errors that it throws are logged. */
  guarded(what: string, call: () => unknown): void {
    callGuarded(call, this.#logsThrown(what));
  }

  #logsThrown(what: string): (error: unknown) => void {
    const name = this.#name;
    return logsThrown({ logger: this.#logger, name }, what, { reflector: name });
  }
}

export class ReflectorMetrics {
  readonly #metrics: Metrics;
  readonly #clock: Clock;
  readonly #labels: MetricLabels;
  readonly onListBytes = (bytes: number): void => this.#count("reflector_list_bytes_total", bytes);
  readonly onWatchBytes = (bytes: number): void => this.#count("reflector_watch_bytes_total", bytes);
  #cycles = 0;

  constructor(metrics: Metrics, { name, clock }: Pick<ReflectorSettings, "name" | "clock">) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#labels = { name };
  }

  /** A cycle begins; `error` ended the cycle before, if an error did. */
  cycleBegins(error: unknown): void {
    if (this.#cycles++ > 0) this.#count("reflector_relists_total", 1, { reason: reasonOf(error) });
  }

  /** A list begins; call the returned function with the number of its items when they are stored. */
  listBegins(): (items: number) => void {
    this.#count("reflector_lists_total", 1);
    const startMs = monotonicNow(this.#clock);
    return (items) => {
      this.#observe("reflector_list_duration_seconds", (monotonicNow(this.#clock) - startMs) / 1_000);
      this.#observe("reflector_items_per_list", items);
    };
  }

  watchBegins(): void {
    this.#count("reflector_watches_total", 1);
  }

  watchEnds({ lastedMs, events, isVeryShort }: Omit<MeasureWatch, "do">): void {
    this.#observe("reflector_watch_duration_seconds", lastedMs / 1_000);
    this.#observe("reflector_items_per_watch", events);
    if (isVeryShort) this.#count("reflector_short_watches_total", 1);
  }

  /** A watch is requested again, without a list; `error` is what ended the one before. */
  reconnects(error: unknown): void {
    this.#count("reflector_reconnects_total", 1, { reason: reasonOf(error) });
  }

  eventApplied(type: string): void {
    this.#count("reflector_events_total", 1, { type });
  }

  /** Something came from the server: the lag is the time since then. */
  contact(wallMs: number): void {
    this.#metrics.gauge("reflector_last_contact_timestamp_seconds", wallMs / 1_000, this.#labels);
  }

  #count(name: string, value: number, labels?: MetricLabels): void {
    this.#metrics.count(name, value, { ...this.#labels, ...labels });
  }

  #observe(name: string, value: number): void {
    this.#metrics.observe(name, value, this.#labels);
  }
}

function reasonOf(error: unknown): string {
  return error === undefined ? "closed" : codeOf(error);
}
