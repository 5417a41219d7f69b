/** SIGINT (Ctrl-C) and SIGTERM. */

import process from "node:process";
import { realClock, type TimerHandle } from "../util/clock.ts";

/** A clean stop takes some milliseconds; after this time the process is ended. */
const STOP_LIMIT_MS = 900;
/** The exit code that shells give to a program ended by SIGINT. */
const EXIT_FORCED = 130;

export interface GracefulStop {
  readonly stop: () => unknown;
  readonly graceMs: number;
}

export interface ProcessSignals {
  /** Aborted by the first SIGINT, and by the first SIGTERM unless there is an `onTerminate`. */
  readonly signal: AbortSignal;
  /** What the first SIGTERM does. */
  onTerminate(graceful: GracefulStop): void;
  release(): void;
}

/** Turns the first SIGINT or SIGTERM of this process into a stop; further ones of its kind are ignored. */
export function listenForSignals(): ProcessSignals {
  const controller = new AbortController();
  let graceful: GracefulStop | undefined;
  let isTerminating = false;
  let timer: TimerHandle | undefined;
  const exitAfter = (ms: number): void => {
    realClock.clearTimeout(timer);
    timer = realClock.setTimeout(() => process.exit(EXIT_FORCED), ms);
  };
  const interrupt = (): void => {
    // The terminal sends Ctrl-C to every process, and task runners forward it: it arrives twice.
    if (controller.signal.aborted) return;
    exitAfter(STOP_LIMIT_MS);
    controller.abort();
  };
  const terminate = (): void => {
    if (graceful === undefined) return interrupt();
    if (isTerminating || controller.signal.aborted) return;
    isTerminating = true;
    exitAfter(graceful.graceMs + STOP_LIMIT_MS);
    graceful.stop();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", terminate);
  return {
    signal: controller.signal,
    onTerminate: (given) => (graceful = given),
    release() {
      realClock.clearTimeout(timer);
      process.off("SIGINT", interrupt);
      process.off("SIGTERM", terminate);
    },
  };
}
