/**
 * What happened in a simulated world, and what was wrong.
 * @module
 */

import { clockText } from "./describe_scenario.ts";
import type { ListenerCensus } from "./listener_census.ts";
import type { VirtualTime } from "./virtual_time.ts";

const MOST_VIOLATIONS = 10;

/** Options of {@linkcode WorldRecord}. */
export interface WorldRecordOptions {
  readonly time: VirtualTime;
  readonly startMs: number;
  /** Whether to keep a trace. */
  readonly traces: boolean;
}

/** The record of one world. */
export class WorldRecord {
  readonly #options: WorldRecordOptions;
  /** The violations with their times. */
  readonly violations: string[] = [];
  readonly trace: string[] = [];

  constructor(options: WorldRecordOptions) {
    this.#options = options;
  }

  /** Whether it has enough violations for the world to end. */
  get isFull(): boolean {
    return this.violations.length >= MOST_VIOLATIONS;
  }

  /** Notes that something is wrong. */
  violate(text: string): void {
    this.log(`WRONG: ${text}`);
    if (!this.isFull) this.violations.push(`${this.#clock().trim()} ${text}`);
  }

  /** Notes what happens. */
  log(text: string): void {
    if (this.#options.traces) this.trace.push(`${this.#clock()}  ${text}`);
  }

  /** Lets the world live. What it throws, and promises that are rejected unseen, are violations. */
  async live(
    run: () => Promise<void>,
    { census, settle }: {
      readonly census: ListenerCensus;
      /** Resolves when late rejections are reported. */
      readonly settle: () => Promise<unknown>;
    },
  ): Promise<void> {
    const unhandled = (event: PromiseRejectionEvent) => {
      event.preventDefault();
      this.violate(`unhandled rejection: ${event.reason?.stack ?? event.reason}`);
    };
    globalThis.addEventListener("unhandledrejection", unhandled);
    try {
      await run();
    } catch (error) {
      this.violate(`the simulation failed: ${error instanceof Error ? error.stack : error}`);
    } finally {
      await settle();
      globalThis.removeEventListener("unhandledrejection", unhandled);
      census.dispose();
    }
  }

  #clock(): string {
    const { time, startMs } = this.#options;
    return clockText(time.worldNow() - startMs);
  }
}
