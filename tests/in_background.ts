/**
 * Running what a test tests.
 * @module
 */

import assert from "node:assert/strict";
import type { FakeClock } from "@listwatch/cache/testing";
import { CountingSignal } from "./counting_signal.ts";

/** What a test starts and stops. */
export interface Background extends AsyncDisposable {
  /** Starts it; resolves when it has come as far as it can without time passing. */
  start(): Promise<void>;
  /** Stops it; resolves when nothing of it is left running. Each request, wait and timer of it has ended. */
  stop(): Promise<void>;
}

/** The listeners of the open request, of a wait, and of what runs until the signal is aborted. */
const MOST_LISTENERS = 3;

/** Runs what runs until a signal is aborted; what it leaves behind fails the test. */
export function inBackground(clock: FakeClock, run: (signal: AbortSignal) => Promise<void>): Background {
  const counting = new CountingSignal();
  const timersBefore = clock.pendingTimers;
  let running: Promise<void> | undefined;
  const stop = async () => {
    const { listeners } = counting;
    counting.abort();
    await running;
    assert.ok(listeners <= MOST_LISTENERS, `its signal had ${listeners} listeners`);
    assert.ok(clock.pendingTimers <= timersBefore, `${clock.pendingTimers} timers are left after the stop`);
  };
  return {
    async start() {
      running = run(counting.signal);
      await clock.advance(0);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
