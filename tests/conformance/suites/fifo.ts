import { FIFO } from "@listwatch/cache/queue";
import type { CaseHolding } from "../holdings.ts";
import { argument, type Case, type Outcome, type Step } from "./harness.ts";
import { lookUp } from "./lookups.ts";
import { popOnce, process, runQueueSteps } from "./queue_steps.ts";
import { type Json, keyFuncOf, type Values, valuesOf } from "./values.ts";

/**
 * Runs a case of the suite `fifo`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runFIFOCase(caze: Case, holding: CaseHolding): Promise<void> {
  const values = valuesOf(holding, keyFuncOf(argument(caze.options, "keyFunc")));
  const queue = new FIFO<unknown>(values.keyFunc);
  await runQueueSteps(caze, queue, { values, perform: (step) => perform(queue, step, values) });
}

async function perform(
  queue: FIFO<unknown>,
  step: Step,
  { decode, encode }: Values,
): Promise<Outcome | void> {
  switch (step.op) {
    case "addIfNotPresent":
      return queue.addIfNotPresent(decode(argument(step, "object")));
    case "pop":
      return await popOnce((process) => queue.pop(process), argument(step, "process"), encode);
    case "popRun": {
      const values: Json[] = [];
      for (let i = argument<number>(step, "count"); i > 0; i--) {
        // deno-lint-ignore no-await-in-loop -- one after the other is what is tested
        values.push(encode(await queue.pop(() => process(argument(step, "process")))));
      }
      return { values };
    }
    default:
      return lookUp(queue, step, { decode, encode });
  }
}
