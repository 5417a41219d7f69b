/**
 * Where the time of a contestant on Node goes. Watching that costs
 * time itself, so it is done in runs of their own.
 *
 * @module
 */

import { performance } from "node:perf_hooks";
import type { TimeSpent } from "../lib/measurement.ts";
import { type Interval, overlapOf } from "./intervals.ts";
import { CollectorProbe } from "./loop_probe.ts";

/** Times every call of `JSON.parse`, the collector's pauses, and how long the event loop waits. */
export class TimeProfile {
  readonly #collector = new CollectorProbe();
  #parses: Interval[] = [];
  #startMs = 0;
  #utilization = performance.eventLoopUtilization();

  /** Replaces `JSON.parse`: call it before any code has kept a reference to it. */
  constructor() {
    const parse = JSON.parse;
    JSON.parse = (text, reviver) => {
      const startMs = performance.now();
      const value = parse(text, reviver);
      this.#parses.push({ startMs, endMs: performance.now() });
      return value;
    };
    this.#collector.start();
  }

  /** What follows is of interest. */
  begin(): void {
    this.#parses = [];
    this.#startMs = performance.now();
    this.#utilization = performance.eventLoopUtilization();
  }

  /** Where the time since then went. */
  async end(): Promise<TimeSpent> {
    const wallMs = performance.now() - this.#startMs;
    const idleMs = performance.eventLoopUtilization(this.#utilization).idle;
    const parses = this.#parses;
    this.#parses = [];
    const pauses = await this.#collector.since(this.#startMs) ?? [];
    return {
      wallMs,
      pausesMs: sumOf(pauses),
      parseMs: sumOf(parses) - overlapOf(parses, pauses),
      idleMs,
    };
  }
}

function sumOf(intervals: readonly Interval[]): number {
  return intervals.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
}
