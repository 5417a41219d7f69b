import { ErrRequeue, FIFO, type KeyFunc } from "@listwatch/cache";
import { argument, type Case, codeOf, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";
import {
  decodeValue,
  decodeValues,
  encodeValue,
  isSameValue,
  type Json,
  keyFuncOf,
  ProcessError,
  withoutOrder,
} from "./values.ts";

/**
 * Runs a case of the suite `fifo`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runFIFOCase(caze: Case): Promise<void> {
  const keyFunc = keyFuncOf(argument(caze.options, "keyFunc"));
  const queue = new FIFO<unknown>(keyFunc);
  await runSteps(caze, (step) => perform(queue, step), queueStepsOptions(queue, keyFunc));
}

/** How the steps of the queue suites are run: which results have no order, and what is read after every step. */
export function queueStepsOptions(
  queue: { hasSynced(): boolean },
  keyFunc: KeyFunc,
): Required<Pick<NonNullable<Parameters<typeof runSteps>[2]>, "compare" | "normalise" | "after" | "failed">> {
  return {
    compare: (_property, expected, actual) => isSameValue(expected, actual),
    normalise: (step, _property, value) => withoutOrder(step, value, keyFunc),
    after: () => ({ hasSynced: queue.hasSynced() }),
    failed: { exists: false, value: null },
  };
}

/** Does what a case says that the process callback does; `ok` is to return. */
export function process(how: string): void {
  switch (how) {
    case "ok":
      return;
    case "error":
      throw new ProcessError();
    case "requeue":
      throw new ErrRequeue();
    case "requeueError":
      throw new ErrRequeue({ cause: new ProcessError() });
    default:
      throw new Error(`unknown way to process ${JSON.stringify(how)}`);
  }
}

/** Pops once; what the callback was given must be what `pop` returns. */
export async function popOnce<I>(
  pop: (process: (item: I) => void) => Promise<I>,
  how: string,
  encode: (item: I) => Json,
): Promise<Outcome> {
  let processed: { readonly item: I } | undefined;
  let error: string | null = null;
  try {
    const popped = await pop((item) => {
      processed = { item };
      process(how);
    });
    if (processed === undefined || popped !== processed.item) throw new Error("pop returned something else");
  } catch (thrown) {
    error = codeOf(thrown) ?? null;
    if (error === null) throw thrown;
  }
  return { error, value: processed === undefined ? null : encode(processed.item) };
}

async function perform(queue: FIFO<unknown>, step: Step): Promise<Outcome | void> {
  switch (step.op) {
    case "add":
    case "update":
    case "addIfNotPresent":
    case "delete":
      return queue[step.op](decodeValue(argument(step, "object")));
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

function found(value: unknown): Outcome {
  return { exists: value !== undefined, value: encodeValue(value) };
}
