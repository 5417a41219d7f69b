import { type Deltas, RealFIFO } from "@listwatch/cache/queue";
import type { CaseHolding } from "../holdings.ts";
import { argument, type Case, codeOf, type Outcome, type Step, unknownOp } from "./harness.ts";
import { knownObjectsOf, process, runQueueSteps } from "./queue_steps.ts";
import { encodeDelta, keyFuncOf, transform, type Values, valuesOf } from "./values.ts";

/**
 * Runs a case of the suite `real_fifo`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runRealFIFOCase(caze: Case, holding: CaseHolding): Promise<void> {
  const { options } = caze;
  const values = valuesOf(
    holding,
    keyFuncOf(argument(options, "keyFunc")),
    argument(options, "transform") ? transform : undefined,
  );
  const knownObjects = knownObjectsOf(caze, values);
  const { batchSize } = options as { readonly batchSize?: number };
  const common = {
    keyFunc: values.keyFunc,
    ...(values.transform && { transform: values.transform }),
    ...(batchSize === undefined ? {} : { batchSize }),
  };
  // `unlockWhileProcessing` has no counterpart: a process callback may always write to the queue.
  const queue = argument(options, "atomicEvents")
    ? new RealFIFO<unknown>({
      ...common,
      atomicEvents: true,
      emitDeltaTypeBookmark: (options.emitDeltaTypeBookmark ?? false) as boolean,
    })
    : new RealFIFO<unknown>({ ...common, knownObjects: knownObjects! });
  await runQueueSteps(caze, queue, { values, knownObjects, perform: (step) => perform(queue, step, values) });
}

async function perform(queue: RealFIFO<unknown>, step: Step, values: Values): Promise<Outcome | void> {
  switch (step.op) {
    case "bookmark":
      return queue.bookmark(argument(step, "resourceVersion"));
    case "pop":
    case "popBatch":
      return await pop(queue, step, values);
    default:
      return unknownOp(step);
  }
}

async function pop(
  queue: RealFIFO<unknown>,
  step: Step,
  { decode, encode }: Values,
): Promise<Outcome> {
  let calls = 0;
  const outcome: Outcome = {
    error: null,
    value: null,
    isInInitialList: null,
    via: null,
    hasSyncedDuring: null,
  };

  function callback(via: "single" | "batch"): (deltas: Deltas<unknown>, isInInitialList: boolean) => void {
    return (deltas, isInInitialList) => {
      calls++;
      Object.assign(outcome, {
        value: deltas.map((delta) => encodeDelta(delta, encode)),
        isInInitialList,
        via,
        hasSyncedDuring: queue.hasSynced(),
      });
      const { during = [] } = step as { readonly during?: readonly Step[] };
      for (const { op, ...write } of during) {
        queue[op as "add" | "update" | "delete"](decode(argument(write as Step, "object")));
      }
      process(argument(step, "process"));
    };
  }

  try {
    const popped = step.op === "pop"
      ? await queue.pop(callback("single"))
      : await queue.popBatch(callback("batch"), callback("single"));
    if (calls !== 1) throw new Error(`the callback ran ${calls} times`);
    outcome.value = popped.map((delta) => encodeDelta(delta, encode));
  } catch (error) {
    outcome.error = codeOf(error);
    if (outcome.error === undefined) throw error;
  }
  return outcome;
}
