/** Events about objects, as `kubectl describe` shows them: written in the background, and aggregated. */

import type { ResourceClient } from "../client/resource_client.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { DNS_SUBDOMAIN, parseResource } from "../meta/resource.ts";
import { isAlreadyExists, isNotFound, isTooManyRequests, statusErrorOf } from "../meta/status.ts";
import { onAbort, sleep } from "../util/abort.ts";
import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import { limitedLogger, type Logger } from "../util/logger.ts";

/**
 * Writes events about one object. It does not wait: what cannot be
 * written after some tries is dropped and logged.
 *
 * Mirrors the `EventRecorder` of client-go's `tools/events`.
 */
export interface ObjectEvents {
  /**
   * Something happened as it should.
   *
   * @param reason One word in CamelCase, of up to 128 letters: `Configured`.
   * @param note A sentence for people, of up to 1,024 bytes.
   * @param options.action The action, in CamelCase; the reason by default.
   * @param options.related Another object that it is about.
   */
  normal(reason: string, note: string, options?: EventDetails): void;
  /** Something is wrong. */
  warning(reason: string, note: string, options?: EventDetails): void;
}

/** Details of an event. */
export interface EventDetails {
  readonly action?: string;
  readonly related?: KubernetesObject;
}

export interface RecordedEvent extends KubernetesObject {
  readonly eventTime: string;
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly action: string;
  readonly reason: string;
  readonly regarding: Readonly<Record<string, string | undefined>>;
  readonly related?: Readonly<Record<string, string | undefined>>;
  readonly note: string;
  readonly type: string;
  readonly series?: { readonly count: number; readonly lastObservedTime: string };
}

interface Series {
  readonly client: ResourceClient<RecordedEvent>;
  readonly event: RecordedEvent;
  count: number;
  lastObservedMs: number;
  lastObservedTime: string;
  /** How many of them the server knows. */
  written: number;
}

// As client-go's (tools/events/event_broadcaster.go).
const SERIES_ENDS_AFTER_MS = 6 * 60_000;
const REFRESH_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
const TRIES = 12;
const RETRY_MS = 10_000;
// Events of a controller in trouble must not fill the memory.
const MOST_WAITING = 1_000;
const MOST_SERIES = 4_096;

export class EventRecorder {
  readonly #series = new Map<string, Series>();
  /** The series to write: each is there once, however often it has grown. */
  readonly #waiting = new Set<Series>();
  readonly #instance: string;
  readonly #clock: Clock;
  readonly #logger: Pick<Logger, "warn">;
  readonly #signal: AbortSignal;
  #writing: Promise<void> | undefined;
  #timer: TimerHandle;
  #lastRefreshMs: number;
  #number = 0;

  /** Writes until the signal is aborted. */
  constructor(
    { instance, clock, logger, signal }: {
      readonly instance: string;
      readonly clock: Clock;
      readonly logger: Logger;
      readonly signal: AbortSignal;
    },
  ) {
    this.#instance = instance;
    this.#clock = clock;
    this.#logger = limitedLogger(logger, () => monotonicNow(clock));
    this.#signal = signal;
    this.#lastRefreshMs = monotonicNow(clock);
    onAbort(signal, () => clock.clearTimeout(this.#timer));
  }

  /** The events about one object. */
  about(
    object: KubernetesObject,
    controller: string,
    objects: ResourceClient<KubernetesObject>,
  ): ObjectEvents {
    const record = (type: string) => (reason: string, note: string, options: EventDetails = {}) => {
      this.#record(this.#newEvent(object, { type, reason, note, controller, ...options }), objects);
    };
    return { normal: record("Normal"), warning: record("Warning") };
  }

  get pending(): number {
    return this.#waiting.size + (this.#writing === undefined ? 0 : 1);
  }

  /** Resolves when everything that waits has been written or given up. */
  async flushed(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #record(event: RecordedEvent, objects: ResourceClient<KubernetesObject>): void {
    if (this.#signal.aborted) return;
    const clock = this.#clock;
    const nowMs = monotonicNow(clock);
    const key = keyOf(event);
    const present = this.#series.get(key);
    if (present !== undefined) {
      present.count++;
      present.lastObservedMs = nowMs;
      present.lastObservedTime = microTime(clock);
      // The second one makes it a series; the server learns of the others later.
      if (present.written === 1) this.#write(present);
      return;
    }
    const namespace = event.metadata!.namespace!;
    const client = objects.cluster.resource<RecordedEvent>(parseResource("events.k8s.io/v1/events"), {
      namespace,
    });
    const series: Series = {
      client,
      event,
      count: 1,
      lastObservedMs: nowMs,
      lastObservedTime: event.eventTime,
      written: 0,
    };
    if (this.#series.size >= MOST_SERIES) this.#series.delete(this.#series.keys().next().value!);
    this.#series.set(key, series);
    if (this.#series.size === 1) this.#sweepLater();
    this.#write(series);
  }

  #sweepLater(): void {
    this.#timer = this.#clock.setTimeout(() => {
      this.#sweep(monotonicNow(this.#clock));
      if (this.#series.size > 0) this.#sweepLater();
    }, SWEEP_MS);
  }

  /** Ends series that have not grown for a while, and writes the count of those that continue. */
  #sweep(nowMs: number): void {
    const isRefresh = nowMs - this.#lastRefreshMs >= REFRESH_MS;
    if (isRefresh) this.#lastRefreshMs = nowMs;
    for (const [key, series] of this.#series) {
      const hasEnded = nowMs - series.lastObservedMs >= SERIES_ENDS_AFTER_MS;
      if ((hasEnded || isRefresh) && series.count > series.written) this.#write(series);
      if (hasEnded) this.#series.delete(key);
    }
  }

  #write(series: Series): void {
    if (this.#waiting.size >= MOST_WAITING) {
      return this.#dropped(series, "too many events wait to be written");
    }
    this.#waiting.add(series);
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    await Promise.resolve(); // what is recorded in this turn is one write
    for (const series of this.#waiting) {
      this.#waiting.delete(series);
      await this.#tryToWrite(series);
    }
    this.#writing = undefined; // in the turn that has found none: what comes after it begins again
  }

  async #tryToWrite(series: Series): Promise<void> {
    for (let left = TRIES;; left--) {
      try {
        if (this.#signal.aborted) return;
        return await this.#send(series);
      } catch (error) {
        const isFinal = statusErrorOf(error) !== undefined && !isTooManyRequests(error) &&
          (statusErrorOf(error)?.httpStatus ?? 0) < 500;
        if (isFinal || left <= 1) return this.#dropped(series, errorMessage(error));
        await sleep(RETRY_MS, { clock: this.#clock, signal: this.#signal }).catch(() => {});
      }
    }
  }

  async #send(series: Series): Promise<void> {
    const { client, event, count, lastObservedTime, written } = series;
    const options = { signal: this.#signal };
    const isSeries = count > 1;
    const observed = { series: { count, lastObservedTime } };
    const create = () => client.create(isSeries ? { ...event, ...observed } : event, options);
    const update = () => client.patch(event.metadata?.name ?? "", observed, options);
    try {
      if (written === 0) await create();
      else await update();
    } catch (error) {
      if (written > 0 && isNotFound(error)) await create(); // the server has forgotten it
      else if (!isAlreadyExists(error)) throw error;
      else if (isSeries) await update(); // it was created, and the answer was lost
    }
    series.written = count;
    if (series.count > 1 && count === 1) await this.#send(series);
  }

  #dropped(series: Series, why: string): void {
    const { reason, regarding } = series.event;
    // As the warning says: the end of the series is no other try.
    series.written = series.count;
    this.#logger.warn(
      `Cannot write the event ${reason} about ${regarding.kind} ${regarding.name}: ${why}; it is dropped`,
    );
  }

  #newEvent(
    object: KubernetesObject,
    { type, reason, note, controller, action = reason, related }: EventDetails & {
      readonly type: string;
      readonly reason: string;
      readonly note: string;
      readonly controller: string;
    },
  ): RecordedEvent {
    const { namespace } = object.metadata ?? {};
    this.#number = (this.#number + 1) % 1_000_000;
    // The name has the time in nanoseconds, as client-go's, of which the last digits are a number here.
    const suffix = (BigInt(Math.floor(this.#clock.now())) * 1_000_000n + BigInt(this.#number)).toString(16);
    return {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: eventName(object, suffix), namespace: namespace ?? "default" },
      eventTime: microTime(this.#clock),
      reportingController: controller,
      reportingInstance: this.#instance.slice(0, 128),
      action,
      reason,
      regarding: referenceOf(object),
      ...(related && { related: referenceOf(related) }),
      note: cutNote(note),
      type,
    };
  }
}

// Names of roles, say, may have characters that those of events may not.
function eventName(
  { metadata: { name = "", uid = "event" } = {} }: KubernetesObject,
  suffix: string,
): string {
  const named = `${name.slice(0, 230)}.${suffix}`;
  return DNS_SUBDOMAIN.test(named) ? named : `${uid.toLowerCase()}.${suffix}`;
}

function referenceOf({ apiVersion, kind, metadata = {} }: KubernetesObject): RecordedEvent["regarding"] {
  const { namespace, name, uid, resourceVersion } = metadata;
  return { apiVersion, kind, ...(namespace && { namespace }), name, uid, resourceVersion };
}

/**
 * The identity of a series of events: all fields but the note and the time, and the version of the object,
 * which changes with each write of the controller itself.
 */
function keyOf(event: RecordedEvent): string {
  const { type, action, reason, reportingController, regarding, related } = event;
  const { resourceVersion: _, ...object } = regarding;
  return JSON.stringify([type, action, reason, reportingController, object, related?.uid, related?.name]);
}

const LONGEST_NOTE = 1_024;

function cutNote(note: string): string {
  const bytes = new TextEncoder().encode(note);
  if (bytes.length <= LONGEST_NOTE) return note;
  // A character that was cut in two is left out.
  const decoder = new TextDecoder();
  return decoder.decode(bytes.subarray(0, LONGEST_NOTE - 3), { stream: true }) + "...";
}

/** A time with microseconds, as `metav1.MicroTime`. */
export function microTime(clock: Clock): string {
  return new Date(clock.now()).toISOString().replace("Z", "000Z");
}
