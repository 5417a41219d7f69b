/**
 * Running what a test tests.
 * @module
 */

import type { FakeClock } from "@listwatch/cache/testing";

/** What a test starts and stops. */
export interface Background extends AsyncDisposable {
  /** Starts it; resolves when it has come as far as it can without time passing. */
  start(): Promise<void>;
  /** Stops it; resolves when nothing of it is left running. */
  stop(): Promise<void>;
}

/** Runs what runs until a signal is aborted. */
export function inBackground(clock: FakeClock, run: (signal: AbortSignal) => Promise<void>): Background {
  const abort = new AbortController();
  let running: Promise<void> | undefined;
  const stop = async () => {
    abort.abort();
    await running;
  };
  return {
    async start() {
      running = run(abort.signal);
      await clock.advance(0);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
