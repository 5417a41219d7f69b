import { FakeClock } from "@listwatch/cache/testing";
import {
  bucketRateLimiter,
  DelayingQueue,
  itemExponentialFailureRateLimiter,
  itemFastSlowRateLimiter,
  maxOfRateLimiter,
  type RateLimiter,
  RateLimitingQueue,
  withMaxWaitRateLimiter,
  WorkQueue,
} from "@listwatch/cache/workqueue";
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

type LimiterForm =
  | { readonly type: "exponential"; readonly baseMs: number; readonly maxMs: number }
  | {
    readonly type: "fastSlow";
    readonly fastMs: number;
    readonly slowMs: number;
    readonly maxFastAttempts: number;
  }
  | { readonly type: "bucket"; readonly qps: number; readonly burst: number }
  | { readonly type: "maxOf"; readonly limiters: readonly LimiterForm[] }
  | { readonly type: "withMaxWait"; readonly limiter: LimiterForm; readonly maxDelayMs: number };

/**
 * Runs a case of the suite `workqueue`.
 *
 * @throws {ConformanceError} At the first step that differs, or if timers are left after a shutdown.
 */
export async function runWorkqueueCase(caze: Case): Promise<void> {
  const clock = new FakeClock();
  const kind = argument<string>(caze.options, "kind");
  if (kind === "rateLimiter") return await runLimiterCase(caze, clock);

  const queue = newQueue(caze, kind, clock);
  let drained: boolean | undefined;

  async function perform(step: Step): Promise<Outcome | void> {
    const outcome = await call(step);
    for (let i = 0; i < 10; i++) await Promise.resolve(); // lets pending tasks run
    return outcome;
  }

  async function call(step: Step): Promise<Outcome | void> {
    switch (step.op) {
      case "add":
      case "done":
        return queue[step.op](argument(step, "item"));
      case "get": {
        const { item = null, shutdown } = await queue.get();
        return { item, shutdown };
      }
      case "len":
        return;
      case "shutDown":
        return queue.shutDown();
      case "shuttingDown":
        return { value: queue.shuttingDown };
      case "shutDownWithDrain":
        drained = false;
        queue.shutDownWithDrain().then(() => drained = true);
        return;
      case "advance":
        return await clock.advance(argument(step, "ms"));
      case "addAfter":
        return delaying(queue).addAfter(argument(step, "item"), argument(step, "ms"));
      case "addRateLimited":
      case "forget":
        return rateLimiting(queue)[step.op](argument(step, "item"));
      case "numRequeues":
        return { value: rateLimiting(queue).numRequeues(argument(step, "item")) };
      default:
        return unknownOp(step);
    }
  }

  await runSteps(caze, perform, {
    after: () => ({ len: queue.length, ...(drained === undefined ? {} : { drained }) }),
    failed: {},
  });
  queue.shutDown();
  if (clock.pendingTimers !== 0) {
    throw new Error(`${caze.name}: ${clock.pendingTimers} timers left after shutDown`);
  }
}

async function runLimiterCase(caze: Case, clock: FakeClock): Promise<void> {
  const limiter = newLimiter(argument(caze.options, "limiter"), clock);

  async function perform(step: Step): Promise<Outcome | void> {
    switch (step.op) {
      case "when": {
        const { times = 1 } = step as { times?: number };
        let delayMs = NaN;
        for (let i = 0; i < times; i++) delayMs = limiter.when(argument(step, "item"));
        return { delayMs };
      }
      case "forget":
        return limiter.forget(argument(step, "item"));
      case "numRequeues":
        return { value: limiter.numRequeues(argument(step, "item")) };
      case "advance":
        return await clock.advance(argument(step, "ms"));
      default:
        return unknownOp(step);
    }
  }

  await runSteps(caze, perform, {
    compare: (property, expected, actual) =>
      property === "delayMs" ? isSameDelay(expected, actual) : isSame(expected, actual),
  });
}

function newQueue(caze: Case, kind: string, clock: FakeClock): WorkQueue {
  switch (kind) {
    case "queue":
      return new WorkQueue({ clock });
    case "delaying":
      return new DelayingQueue({ clock });
    case "rateLimiting":
      return new RateLimitingQueue(newLimiter(argument(caze.options, "limiter"), clock), { clock });
    default:
      throw new Error(`unknown kind ${JSON.stringify(kind)}`);
  }
}

function newLimiter(form: LimiterForm, clock: FakeClock): RateLimiter<string> {
  switch (form.type) {
    case "exponential":
      return itemExponentialFailureRateLimiter({ baseDelayMs: form.baseMs, maxDelayMs: form.maxMs });
    case "fastSlow":
      return itemFastSlowRateLimiter({
        fastDelayMs: form.fastMs,
        slowDelayMs: form.slowMs,
        maxFastAttempts: form.maxFastAttempts,
      });
    case "bucket":
      return bucketRateLimiter({ qps: form.qps, burst: form.burst, clock });
    case "maxOf":
      return maxOfRateLimiter(form.limiters.map((limiter) => newLimiter(limiter, clock)));
    case "withMaxWait":
      return withMaxWaitRateLimiter(newLimiter(form.limiter, clock), form.maxDelayMs);
    default:
      throw new Error(`unknown limiter ${JSON.stringify(form)}`);
  }
}

function delaying(queue: WorkQueue): DelayingQueue {
  if (queue instanceof DelayingQueue) return queue;
  throw new Error("not a delaying queue");
}

function rateLimiting(queue: WorkQueue): RateLimitingQueue {
  if (queue instanceof RateLimitingQueue) return queue;
  throw new Error("not a rate limiting queue");
}
