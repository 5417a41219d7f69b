import { DeltaFIFO, type ObjectDeltas } from "@listwatch/cache/queue";
import { argument, type Case, type Outcome, type Step } from "./harness.ts";
import { lookUp } from "./lookups.ts";
import { knownObjectsOf, popOnce, runQueueSteps } from "./queue_steps.ts";
import { decodeValue, encodeDelta, type Json, keyFuncOf, withoutOrder } from "./values.ts";

/**
 * Runs a case of the suite `delta_fifo`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runDeltaFIFOCase(caze: Case): Promise<void> {
  const { options } = caze;
  const keyFunc = keyFuncOf(argument(options, "keyFunc"));
  const knownObjects = knownObjectsOf(caze, keyFunc);
  const queue = new DeltaFIFO<unknown>({
    keyFunc,
    knownObjects,
    emitDeltaTypeReplaced: argument(options, "emitDeltaTypeReplaced"),
  });
  await runQueueSteps(caze, queue, {
    keyFunc,
    knownObjects,
    perform: (step) => perform(queue, step),
    // Keys come in the order of the queue.
    normalise: (step, _property, value) =>
      step.op === "listKeys" ? value : withoutOrder(step, value, keyFunc),
  });
}

async function perform(queue: DeltaFIFO<unknown>, step: Step): Promise<Outcome | void> {
  switch (step.op) {
    case "addIfNotPresent":
      return queue.addIfNotPresent(objectOrDeltas(step) as ObjectDeltas<unknown>);
    case "keyOf":
      return { value: queue.keyOf(objectOrDeltas(step)) };
    case "pop":
      return await popOnce((process) => queue.pop(process), argument(step, "process"), encodeDeltas);
    default:
      return lookUp(queue, step, encodeDeltas);
  }
}

function objectOrDeltas(step: Step): unknown {
  if (!("deltas" in step)) return decodeValue(argument(step, "object"));
  return argument<readonly { readonly type: string; readonly object: Json }[]>(step, "deltas")
    .map(({ type, object }) => ({ type, object: decodeValue(object) }));
}

function encodeDeltas(deltas: ObjectDeltas<unknown>): Json {
  return deltas.map(encodeDelta);
}
