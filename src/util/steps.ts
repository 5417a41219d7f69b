/**
 * Long synchronous work in short steps.
 * @module
 */

import { type Clock, monotonicNow, nextTurn } from "./clock.ts";

/** Work that pauses after each step. It is over when the generator is. */
export type Steps = Generator<undefined, void, undefined>;

/** How many objects of a list there are to a step, where each costs a few microseconds at most. */
export const STEP_OBJECTS = 128;

/** Does all that is left, in this turn. */
export function finish(steps: Steps): void {
  while (!steps.next().done);
}

/**
 * Does it all, giving others a turn whenever it has worked for `turnMs` on end; in one go once the signal is aborted, so
 * that nothing is left half done.
 */
export async function finishInTurns(
  steps: Steps,
  options: { readonly clock: Clock; readonly signal: AbortSignal; readonly turnMs: number },
): Promise<void> {
  const { clock, signal, turnMs } = options;
  let turnEndMs = monotonicNow(clock) + turnMs;
  while (!steps.next().done) {
    if (signal.aborted || monotonicNow(clock) < turnEndMs) continue;
    await nextTurn();
    turnEndMs = monotonicNow(clock) + turnMs;
  }
}
