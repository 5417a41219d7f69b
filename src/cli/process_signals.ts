/**
 * Ctrl-C.
 * @module
 */

import process from "node:process";
import { realClock, type TimerHandle } from "../util/clock.ts";

/** A clean end takes some milliseconds; whoever pressed Ctrl-C waits no longer than this. */
const STOP_LIMIT_MS = 900;
/** What a shell reports of a program that was ended by SIGINT. */
const EXIT_FORCED = 130;

/** What {@linkcode listenForSignals} returns. */
export interface ProcessSignals {
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** Stops listening: from then on the signals do what they do by default. */
  release(): void;
}

/**
 * Turns the first SIGINT or SIGTERM of this process into an abort; further ones change nothing. An end that takes longer
 * than it may is forced.
 */
export function listenForSignals(): ProcessSignals {
  const controller = new AbortController();
  let timer: TimerHandle | undefined;
  const listener = (): void => {
    // Task runners pass on the Ctrl-C that the terminal has sent to everybody: one comes as two.
    if (controller.signal.aborted) return;
    timer = realClock.setTimeout(() => process.exit(EXIT_FORCED), STOP_LIMIT_MS);
    controller.abort();
  };
  process.on("SIGINT", listener);
  process.on("SIGTERM", listener);
  return {
    signal: controller.signal,
    release() {
      realClock.clearTimeout(timer);
      process.off("SIGINT", listener);
      process.off("SIGTERM", listener);
    },
  };
}
