/**
 * Long synchronous work in short steps.
 * @module
 */

import { type Clock, monotonicNow, nextTurn } from "./clock.ts";

/** Work that pauses after each step. It is finished when the generator is. */
export type Steps = Generator<undefined, void, undefined>;

/** How many objects of a list are one step, if each costs a few microseconds at most. */
export const STEP_OBJECTS = 128;

/** How much work is done per turn. */
export interface Pace {
  /** At most this many objects; for runtimes whose clock is frozen while code runs, as in deployed Workers. */
  readonly turnObjects: number;
  readonly turnMs: number;
}

/** How many objects are one step, so that a turn has whole steps. */
export function stepObjectsOf({ turnObjects }: Pace): number {
  return Math.min(STEP_OBJECTS, turnObjects);
}

/** Does the remaining work in this turn. */
export function finish(steps: Steps): void {
  while (!steps.next().done);
}

/**
 * Does the work, and gives other tasks a turn after each `turnMs`, or after the steps of `turnObjects` objects. Once the
 * signal is aborted it does the rest in one turn, so that no work is left half done.
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
