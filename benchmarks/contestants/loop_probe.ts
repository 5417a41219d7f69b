/**
 * How a contestant treats the event loop while it syncs.
 *
 * @module
 */

import { PerformanceObserver } from "node:perf_hooks";
import type { Measurement } from "../lib/measurement.ts";

/** How long the event loop is away: a timer of one millisecond, and how much later than that it comes. */
export class LoopProbe {
  readonly #collector = new CollectorProbe();
  readonly #samples: { readonly endMs: number; readonly delayMs: number }[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastMs = 0;

  start(): void {
    this.#collector.start();
    this.#lastMs = performance.now();
    const tick = () => {
      this.#sample();
      this.#timer = setTimeout(tick, PROBE_MS);
    };
    this.#timer = setTimeout(tick, PROBE_MS);
  }

  stop(): Pick<Measurement, "longestTaskMs" | "p999TaskMs" | "longestPauseMs" | "longestOwnTaskMs"> {
    clearTimeout(this.#timer);
    this.#sample(); // what is under way counts too
    const sorted = this.#samples.map(({ delayMs }) => delayMs).sort((a, b) => a - b);
    const at = Math.min(sorted.length - 1, Math.floor(sorted.length * 0.999));
    const pauses = this.#collector.isTold ? this.#collector.stop() : undefined;
    return {
      longestTaskMs: sorted[sorted.length - 1],
      p999TaskMs: sorted[at],
      ...(pauses && {
        longestPauseMs: Math.max(0, ...pauses.map(({ startMs, endMs }) => endMs - startMs)),
        longestOwnTaskMs: Math.max(...this.#samples.map((sample) => withoutPauses(sample, pauses))),
      }),
    };
  }

  #sample(): void {
    const now = performance.now();
    this.#samples.push({ endMs: now, delayMs: Math.max(0, now - this.#lastMs - PROBE_MS) });
    this.#lastMs = now;
  }
}

/** A time for which something went on, by `performance.now()`. */
export interface Interval {
  readonly startMs: number;
  readonly endMs: number;
}

/** A delay of the event loop, less the time for which the collector stopped everything. */
function withoutPauses(
  { endMs, delayMs }: { readonly endMs: number; readonly delayMs: number },
  pauses: readonly Interval[],
): number {
  let own = delayMs;
  for (const pause of pauses) {
    own -= Math.max(0, Math.min(endMs, pause.endMs) - Math.max(endMs - delayMs, pause.startMs));
  }
  return own;
}

/** When the collector stopped everything, where the runtime tells: on Node. */
export class CollectorProbe {
  #pauses: Interval[] = [];
  #observer: PerformanceObserver | undefined;

  start(): void {
    if ("Deno" in globalThis || "Bun" in globalThis) return;
    this.#observer = new PerformanceObserver((list) => this.#add(list.getEntries()));
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /** Whether the runtime tells. */
  get isTold(): boolean {
    return this.#observer !== undefined;
  }

  /** The pauses since the start or the last call of this. */
  take(): readonly Interval[] {
    if (this.#observer !== undefined) this.#add(this.#observer.takeRecords());
    const pauses = this.#pauses;
    this.#pauses = [];
    return pauses;
  }

  /** The same, for the last time. */
  stop(): readonly Interval[] {
    const pauses = this.take();
    this.#observer?.disconnect();
    return pauses;
  }

  #add(entries: readonly GcEntry[]): void {
    for (const { startTime, duration } of entries) {
      this.#pauses.push({ startMs: startTime, endMs: startTime + duration });
    }
  }
}

interface GcEntry {
  readonly startTime: number;
  readonly duration: number;
}

const PROBE_MS = 1;
