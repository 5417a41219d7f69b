/**
 * Where the time of a contestant on Node goes. Watching that costs time itself, so it is done in runs of their own.
 *
 * @module
 */

import { performance } from "node:perf_hooks";
import type { TimeSpent } from "../lib/measurement.ts";
import { CollectorProbe, type Interval } from "./loop_probe.ts";

/** Times every call of `JSON.parse`, the collector's pauses, and how long the event loop waits. */
export class TimeProfile {
  readonly #collector = new CollectorProbe();
  #parses: Interval[] = [];
  #startMs = 0;
  #utilization = performance.eventLoopUtilization();

  /** Replaces `JSON.parse`: to be called before anybody has taken hold of it. */
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

/** For how long some of both was under way; each is a list of intervals that do not overlap, in order. */
export function overlapOf(some: readonly Interval[], others: readonly Interval[]): number {
  let sum = 0;
  let i = 0;
  let j = 0;
  while (i < some.length && j < others.length) {
    const endMs = Math.min(some[i].endMs, others[j].endMs);
    sum += Math.max(0, endMs - Math.max(some[i].startMs, others[j].startMs));
    if (some[i].endMs === endMs) i++;
    else j++;
  }
  return sum;
}
