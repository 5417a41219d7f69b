/**
 * Long synchronous work in short steps.
 * @module
 */

import { type Clock, monotonicNow, nextTurn } from "./clock.ts";

/** Work that pauses after each step. It is over when the generator is. */
export type Steps = Generator<undefined, void, undefined>;

/** How many objects of a list there are to a step, where each costs a few microseconds at most. */
export const STEP_OBJECTS = 128;

/** How much is done at a time by those who give way to others. */
export interface Pace {
  /** At most so many objects, where the clock stands still while code runs, as in deployed Workers. */
  readonly turnObjects: number;
  readonly turnMs: number;
}

/** How many objects there are to a step, so that a turn has whole steps. */
export function stepObjectsOf({ turnObjects }: Pace): number {
  return Math.min(STEP_OBJECTS, turnObjects);
}

/** Does all that is left, in this turn. */
export function finish(steps: Steps): void {
  while (!steps.next().done);
}

/**
 * Does it all, giving others a turn whenever it has worked for `turnMs` on end, or done as many steps as
 * `turnObjects` objects have; in one go once the signal is aborted, so that nothing is left half done.
 */
export async function finishInTurns(
  steps: Steps,
  options: Pace & { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const { clock, signal, turnMs, turnObjects } = options;
  const turnSteps = Math.ceil(turnObjects / stepObjectsOf(options));
  let turnEndMs = monotonicNow(clock) + turnMs;
  for (let count = 1; !steps.next().done; count++) {
    if (signal?.aborted || (count < turnSteps && monotonicNow(clock) < turnEndMs)) continue;
    await nextTurn();
    turnEndMs = monotonicNow(clock) + turnMs;
    count = 0;
  }
}
