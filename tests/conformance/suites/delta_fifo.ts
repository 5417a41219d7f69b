import { DeltaFIFO, type ObjectDeltas } from "@listwatch/cache";
import { popOnce, queueStepsOptions } from "./fifo.ts";
import { argument, type Case, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";
import {
  decodeValue,
  decodeValues,
  encodeDelta,
  encodeValue,
  type Json,
  keyFuncOf,
  KnownObjects,
} from "./values.ts";

/**
 * Runs a case of the suite `delta_fifo`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runDeltaFIFOCase(caze: Case): Promise<void> {
  const { options } = caze;
  const keyFunc = keyFuncOf(argument(options, "keyFunc"));
  const objects = argument<Json | null>(options, "knownObjects");
  const knownObjects = objects === null ? undefined : new KnownObjects(decodeValues(objects), keyFunc);
  const queue = new DeltaFIFO<unknown>({
    keyFunc,
    knownObjects,
    emitDeltaTypeReplaced: argument(options, "emitDeltaTypeReplaced"),
  });
  const { normalise, ...stepsOptions } = queueStepsOptions(queue, keyFunc);
  await runSteps(
    caze,
    (step) => step.op.startsWith("known.") ? knownObjects!.perform(step) : perform(queue, step),
    {
      ...stepsOptions,
      // The keys come in the order of the queue.
      normalise: (step, property, value) => step.op === "listKeys" ? value : normalise(step, property, value),
    },
  );
}

async function perform(queue: DeltaFIFO<unknown>, step: Step): Promise<Outcome | void> {
  switch (step.op) {
    case "add":
    case "update":
    case "delete":
      return queue[step.op](decodeValue(argument(step, "object")));
    case "addIfNotPresent":
      return queue.addIfNotPresent(objectOrDeltas(step) as ObjectDeltas<unknown>);
    case "replace":
      return queue.replace(decodeValues(argument(step, "objects")), argument(step, "resourceVersion"));
    case "resync":
      return queue.resync();
    case "close":
      return queue.close();
    case "hasSynced":
      return; // read after every step
    case "isClosed":
      return { value: queue.isClosed };
    case "keyOf":
      return { value: queue.keyOf(objectOrDeltas(step)) };
    case "pop":
      return await popOnce((process) => queue.pop(process), argument(step, "process"), encodeDeltas);
    case "list":
      return { value: queue.list().map(encodeValue) };
    case "listKeys":
      return { value: queue.listKeys() };
    case "get":
      return found(queue.get(decodeValue(argument(step, "object"))));
    case "getByKey":
      return found(queue.getByKey(argument(step, "key")));
    default:
      return unknownOp(step);
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

function found(deltas: ObjectDeltas<unknown> | undefined): Outcome {
  return { exists: deltas !== undefined, value: deltas === undefined ? null : encodeDeltas(deltas) };
}
