import { FIFO } from "@listwatch/cache/queue";
import { argument, type Case, type Outcome, type Step } from "./harness.ts";
import { lookUp } from "./lookups.ts";
import { popOnce, process, runQueueSteps } from "./queue_steps.ts";
import { decodeValue, encodeValue, type Json, keyFuncOf } from "./values.ts";

/**
 * Runs a case of the suite `fifo`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runFIFOCase(caze: Case): Promise<void> {
  const keyFunc = keyFuncOf(argument(caze.options, "keyFunc"));
  const queue = new FIFO<unknown>(keyFunc);
  await runQueueSteps(caze, queue, { keyFunc, perform: (step) => perform(queue, step) });
}

async function perform(queue: FIFO<unknown>, step: Step): Promise<Outcome | void> {
  switch (step.op) {
    case "addIfNotPresent":
      return queue.addIfNotPresent(decodeValue(argument(step, "object")));
    case "pop":
      return await popOnce((process) => queue.pop(process), argument(step, "process"), encodeValue);
    case "popRun": {
      const values: Json[] = [];
      for (let i = argument<number>(step, "count"); i > 0; i--) {
        // deno-lint-ignore no-await-in-loop -- one after the other is what is tested
        values.push(encodeValue(await queue.pop(() => process(argument(step, "process")))));
      }
      return { values };
    }
    default:
      return lookUp(queue, step);
  }
}
