import { DeltaFIFO, type ObjectDeltas } from "@listwatch/cache/queue";
import type { CaseHolding } from "../holdings.ts";
import { argument, type Case, type Outcome, type Step } from "./harness.ts";
import { lookUp } from "./lookups.ts";
import { knownObjectsOf, popOnce, runQueueSteps } from "./queue_steps.ts";
import { encodeDelta, type Json, keyFuncOf, type Values, valuesOf, withoutOrder } from "./values.ts";

/**
 * Runs a case of the suite `delta_fifo`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runDeltaFIFOCase(caze: Case, holding: CaseHolding): Promise<void> {
  const { options } = caze;
  const values = valuesOf(holding, keyFuncOf(argument(options, "keyFunc")));
  const { keyFunc } = values;
  const knownObjects = knownObjectsOf(caze, values);
  const queue = new DeltaFIFO<unknown>({
    keyFunc,
    knownObjects,
    emitDeltaTypeReplaced: argument(options, "emitDeltaTypeReplaced"),
  });
  await runQueueSteps(caze, queue, {
    values,
    knownObjects,
    perform: (step) => perform(queue, step, values),
    // Keys come in the order of the queue.
    normalise: (step, _property, value) =>
      step.op === "listKeys" ? value : withoutOrder(step, value, keyFunc),
  });
}

async function perform(queue: DeltaFIFO<unknown>, step: Step, values: Values): Promise<Outcome | void> {
  switch (step.op) {
    case "addIfNotPresent":
      return queue.addIfNotPresent(objectOrDeltas(step, values) as ObjectDeltas<unknown>);
    case "keyOf":
      return { value: queue.keyOf(objectOrDeltas(step, values)) };
    case "pop":
      return await popOnce((process) => queue.pop(process), argument(step, "process"), encodeDeltas(values));
    default:
      return lookUp(queue, step, { ...values, encodeFound: encodeDeltas(values) });
  }
}

function objectOrDeltas(step: Step, { decode }: Values): unknown {
  if (!("deltas" in step)) return decode(argument(step, "object"));
  return argument<readonly { readonly type: string; readonly object: Json }[]>(step, "deltas")
    .map(({ type, object }) => ({ type, object: decode(object) }));
}

function encodeDeltas({ encode }: Values): (deltas: ObjectDeltas<unknown>) => Json {
  return (deltas) => deltas.map((delta) => encodeDelta(delta, encode));
}
