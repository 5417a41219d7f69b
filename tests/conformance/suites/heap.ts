import { Heap } from "@listwatch/cache";
import { argument, type Case, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";
import { decodeValue, decodeValues, encodeValue, keyFuncOf, withoutOrder } from "./values.ts";

/**
 * Runs a case of the suite `heap`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runHeapCase(caze: Case): Promise<void> {
  const keyFunc = keyFuncOf(argument(caze.options, "keyFunc"));
  const heap = new Heap<unknown>(keyFunc, (a, b) => priorityOf(a) < priorityOf(b));

  function found(value: unknown): Outcome {
    return { exists: value !== undefined, value: encodeValue(value) };
  }

  async function perform(step: Step): Promise<Outcome | void> {
    switch (step.op) {
      case "add":
      case "update":
      case "addIfNotPresent":
      case "delete":
        return heap[step.op](decodeValue(argument(step, "object")));
      case "bulkAdd":
        return heap.bulkAdd(decodeValues(argument(step, "objects")));
      case "pop":
        return { value: encodeValue(await heap.pop()) };
      case "list":
        return { value: heap.list().map(encodeValue) };
      case "listKeys":
        return { value: heap.listKeys() };
      case "get":
        return found(heap.get(decodeValue(argument(step, "object"))));
      case "getByKey":
        return found(heap.getByKey(argument(step, "key")));
      case "close":
        return heap.close();
      case "isClosed":
        return { value: heap.isClosed };
      default:
        return unknownOp(step);
    }
  }

  await runSteps(caze, perform, {
    normalise: (step, _property, value) => withoutOrder(step, value, keyFunc),
    failed: { exists: false, value: null },
  });
}

function priorityOf(value: unknown): number {
  return (value as { spec?: { priority?: number } }).spec?.priority ?? 0;
}
