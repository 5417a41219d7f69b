/** Waiting for the answer of another server. */

import { abortable, withTimeLimit } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";

export interface AnswerLimit {
  readonly timeoutMs: number;
  /** The reason of the abort when it is too late. */
  readonly late: Error;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

/**
 * Sends a request, and waits for the beginning of the answer. An answer that comes too late is dropped.
 *
 * @param send Receives a signal that is aborted when it is too late.
 */
export async function answerInTime(
  send: (limit: AbortSignal) => Response | Promise<Response>,
  { timeoutMs, late, clock, signal }: AnswerLimit,
): Promise<Response> {
  return await withTimeLimit(async (limit) => {
    const answer = (async () => await send(limit))();
    answer.then((response) => {
      if (limit.aborted) response.body?.cancel().catch(() => {});
    }, () => {});
    return await abortable(answer, limit);
  }, { ms: timeoutMs, newError: () => late, clock, signal });
}
