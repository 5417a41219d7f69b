/**
 * SIGINT (Ctrl-C) and SIGTERM.
 * @module
 */

import process from "node:process";
import { realClock, type TimerHandle } from "../util/clock.ts";

/** A clean stop takes some milliseconds; after this time the process is ended. */
const STOP_LIMIT_MS = 900;
/** The exit code that shells give to a program ended by SIGINT. */
const EXIT_FORCED = 130;

/** The result of {@linkcode listenForSignals}. */
export interface ProcessSignals {
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** Restores the default behaviour of the signals. */
  release(): void;
}

/**
 * Turns the first SIGINT or SIGTERM of this process into an abort; further ones are ignored. If the stop takes too long,
 * the process exits.
 */
export function listenForSignals(): ProcessSignals {
  const controller = new AbortController();
  let timer: TimerHandle | undefined;
  const listener = (): void => {
    // The terminal sends Ctrl-C to every process, and task runners forward it: it arrives twice.
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
