import { KeyedBackoff, RetryWithDeadline } from "@listwatch/cache/compat";
import { Backoff, BackoffManager } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";
import {
  argument,
  type Case,
  isSame,
  isSameDelay,
  type Outcome,
  runSteps,
  type Step,
  unknownOp,
} from "./harness.ts";

/**
 * Runs a case of the suite `retry_backoff`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runRetryBackoffCase(caze: Case): Promise<void> {
  // Not at 0, which is what a time that was never set could look like.
  const clock = new FakeClock(1_000_000_000);
  const perform = performerOf(caze, clock);
  await runSteps(
    caze,
    async (step) => step.op === "advance" ? await clock.advance(argument(step, "ms")) : perform(step),
    {
      compare: (property, expected, actual) =>
        property === "delayMs" ? isSameDelay(expected, actual) : isSame(expected, actual),
    },
  );
}

function performerOf({ options }: Case, clock: FakeClock): (step: Step) => Outcome | void {
  const random = () => 0;
  switch (options.kind) {
    case "retryWithDeadline":
      return retryWithDeadline(
        new RetryWithDeadline({
          maxRetryMs: argument(options, "maxRetryMs"),
          minResetMs: argument(options, "minResetMs"),
          isRetryable: (error) => (error as { retryable: boolean }).retryable,
          clock,
        }),
      );
    case "backoff": {
      const backoff = new Backoff(backoffParameters(options), { random });
      return delays(() => backoff.step());
    }
    case "backoffWithReset": {
      const manager = new BackoffManager(backoffParameters(options), {
        clock,
        random,
        resetMs: argument(options, "resetMs"),
      });
      return delays(() => manager.nextDelayMs());
    }
    case "keyedBackoff":
      return keyedBackoff(
        new KeyedBackoff({
          initialMs: argument(options, "initialMs"),
          maxMs: argument(options, "maxMs"),
          clock,
        }),
        clock,
      );
    default:
      throw new Error(`unknown kind ${JSON.stringify(options.kind)}`);
  }
}

function backoffParameters(
  options: Case["options"],
): { durationMs: number; factor: number; steps: number; capMs: number } {
  return {
    durationMs: argument(options, "durationMs"),
    factor: argument(options, "factor"),
    steps: argument(options, "steps"),
    capMs: argument(options, "capMs"),
  };
}

function retryWithDeadline(retry: RetryWithDeadline): (step: Step) => Outcome | void {
  return (step) => {
    switch (step.op) {
      case "after":
        return retry.after({ retryable: argument<boolean>(step, "retryable") });
      case "shouldRetry":
        return { value: retry.shouldRetry() };
      default:
        return unknownOp(step);
    }
  };
}

function delays(next: () => number): (step: Step) => Outcome {
  return (step) => step.op === "step" ? { delayMs: next() } : unknownOp(step);
}

function keyedBackoff(backoff: KeyedBackoff, clock: FakeClock): (step: Step) => Outcome | void {
  return (step) => {
    switch (step.op) {
      case "next":
        return backoff.next(argument(step, "id"), clock.now());
      case "get":
        return { delayMs: backoff.get(argument(step, "id")) };
      case "isInBackOffSince": {
        const eventTimeMs = clock.now() - argument<number>(step, "agoMs");
        return { value: backoff.isInBackOffSince(argument(step, "id"), eventTimeMs) };
      }
      case "reset":
        return backoff.reset(argument(step, "id"));
      case "gc":
        return backoff.gc();
      default:
        return unknownOp(step);
    }
  };
}
