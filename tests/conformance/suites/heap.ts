import { Heap } from "@listwatch/cache/compat";
import { argument, type Case, type Outcome, runSteps, type Step } from "./harness.ts";
import { lookUp } from "./lookups.ts";
import { decodeValue, decodeValues, encodeValue, keyFuncOf, withoutOrder } from "./values.ts";

/**
 * Runs a case of the suite `heap`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runHeapCase(caze: Case): Promise<void> {
  const keyFunc = keyFuncOf(argument(caze.options, "keyFunc"));
  const heap = new Heap<unknown>(keyFunc, (a, b) => priorityOf(a) < priorityOf(b));

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
      case "close":
        return heap.close();
      case "isClosed":
        return { value: heap.isClosed };
      default:
        return lookUp(heap, step);
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
