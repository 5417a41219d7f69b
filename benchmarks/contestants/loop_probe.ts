/**
 * How a contestant treats the event loop while it syncs.
 *
 * @module
 */

import { PerformanceObserver } from "node:perf_hooks";
import process from "node:process";
import type { Measurement } from "../lib/measurement.ts";
import { type Interval, overlapOf } from "./intervals.ts";

type LoopDelays = Pick<
  Measurement,
  "longestTaskMs" | "p999TaskMs" | "longestPauseMs" | "longestOwnTaskMs"
>;

/** How long the event loop is away: a timer of one millisecond, and how much later than that it comes. */
export class LoopProbe {
  readonly #collector = new CollectorProbe();
  readonly #samples: { readonly endMs: number; readonly delayMs: number; readonly cpuMs: number }[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastMs = 0;
  #lastCpuMs = 0;

  start(): void {
    this.#collector.start();
    this.#lastMs = performance.now();
    this.#lastCpuMs = threadCpuMs();
    const tick = () => {
      this.#sample();
      this.#timer = setTimeout(tick, PROBE_MS);
    };
    this.#timer = setTimeout(tick, PROBE_MS);
  }

  async stop(): Promise<LoopDelays> {
    clearTimeout(this.#timer);
    this.#sample(); // what is under way counts too
    const sorted = this.#samples.map(({ delayMs }) => delayMs).sort((a, b) => a - b);
    const at = Math.min(sorted.length - 1, Math.floor(sorted.length * 0.999));
    const pauses = await this.#collector.stop();
    return {
      longestTaskMs: sorted[sorted.length - 1],
      p999TaskMs: sorted[at],
      ...(pauses && {
        longestPauseMs: Math.max(0, ...pauses.map(({ startMs, endMs }) => endMs - startMs)),
        // Less the time for which the collector stopped everything, and
        // in which other processes had the processor.
        longestOwnTaskMs: Math.max(
          ...this.#samples.map(({ endMs, delayMs, cpuMs }) =>
            Math.min(cpuMs, delayMs - overlapOf([{ startMs: endMs - delayMs, endMs }], pauses))
          ),
        ),
      }),
    };
  }

  #sample(): void {
    const now = performance.now();
    const cpuMs = threadCpuMs();
    this.#samples.push({
      endMs: now,
      delayMs: Math.max(0, now - this.#lastMs - PROBE_MS),
      cpuMs: cpuMs - this.#lastCpuMs,
    });
    this.#lastMs = now;
    this.#lastCpuMs = cpuMs;
  }
}

/** When the collector stopped everything, where the runtime tells: on Node. */
export class CollectorProbe {
  readonly #pauses: Interval[] = [];
  #observer: PerformanceObserver | undefined;

  start(): void {
    if ("Deno" in globalThis || "Bun" in globalThis) return;
    this.#observer = new PerformanceObserver((list) => this.#add(list.getEntries()));
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  /**
   * The pauses since a time; `undefined` if the runtime does not report
   * them. Waits: a pause is reported in a later turn.
   */
  async since(startMs: number): Promise<readonly Interval[] | undefined> {
    if (this.#observer === undefined) return undefined;
    const endMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, TOLD_AFTER_MS));
    this.#add(this.#observer.takeRecords());
    return this.#pauses.filter((pause) => pause.startMs >= startMs && pause.startMs < endMs);
  }

  /** All pauses, for the last time. */
  async stop(): Promise<readonly Interval[] | undefined> {
    const pauses = await this.since(0);
    this.#observer?.disconnect();
    return pauses;
  }

  #add(entries: readonly GcEntry[]): void {
    for (const { startTime, duration } of entries) {
      this.#pauses.push({ startMs: startTime, endMs: startTime + duration });
    }
  }
}

/** How long this thread has worked, where the runtime reports it; elapsed time otherwise. */
function threadCpuMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => { user: number; system: number } };
  if (threadCpuUsage === undefined) return performance.now();
  const { user, system } = threadCpuUsage.call(process);
  return (user + system) / 1000;
}

interface GcEntry {
  readonly startTime: number;
  readonly duration: number;
}

const PROBE_MS = 1;
const TOLD_AFTER_MS = 20;
