/**
 * What the suites of the three queues share.
 * @module
 */

import { ErrRequeue } from "@listwatch/cache/compat";
import {
  argument,
  type Case,
  codeOf,
  type Outcome,
  runSteps,
  type RunStepsOptions,
  type Step,
} from "./harness.ts";
import { isSameValue, type Json, KnownObjects, ProcessError, type Values, withoutOrder } from "./values.ts";

/** The calls that every queue has. */
export interface AnyQueue {
  add(object: unknown): void;
  update(object: unknown): void;
  delete(object: unknown): void;
  replace(objects: unknown[], resourceVersion: string): void;
  resync(): void;
  close(): void;
  readonly isClosed: boolean;
  hasSynced(): boolean;
}

/** Options of {@linkcode runQueueSteps}. */
export interface QueueStepsOptions extends Pick<RunStepsOptions, "normalise"> {
  readonly values: Values;
  /** What the ops `known.*` change, in the suites that have them. */
  readonly knownObjects?: KnownObjects | undefined;
  /** Performs the ops that not every queue has. */
  readonly perform: (step: Step) => Outcome | Promise<Outcome | void> | void;
}

/** Performs the steps of a case on a queue. */
export async function runQueueSteps(caze: Case, queue: AnyQueue, options: QueueStepsOptions): Promise<void> {
  const { values, knownObjects, perform, normalise } = options;
  await runSteps(
    caze,
    (step) => {
      if (knownObjects !== undefined && step.op.startsWith("known.")) return knownObjects.perform(step);
      return QUEUE_OPS.has(step.op) ? performOnQueue(queue, step, values) : perform(step);
    },
    {
      compare: (_property, expected, actual) => isSameValue(expected, actual),
      normalise: normalise ?? ((step, _property, value) => withoutOrder(step, value, values.keyFunc)),
      after: () => ({ hasSynced: queue.hasSynced() }),
      failed: { exists: false, value: null },
    },
  );
}

const QUEUE_OPS: ReadonlySet<string> = new Set([
  "add",
  "update",
  "delete",
  "replace",
  "resync",
  "close",
  "hasSynced",
  "isClosed",
]);

function performOnQueue(queue: AnyQueue, step: Step, { decode }: Values): Outcome | void {
  switch (step.op) {
    case "replace":
      return queue.replace(
        argument<readonly Json[]>(step, "objects").map(decode),
        argument(step, "resourceVersion"),
      );
    case "resync":
      return queue.resync();
    case "close":
      return queue.close();
    case "hasSynced":
      return; // read after every step
    case "isClosed":
      return { value: queue.isClosed };
    default:
      return queue[step.op as "add" | "update" | "delete"](decode(argument(step, "object")));
  }
}

/** What the consumer of a case's queue knows; `undefined` if the case has none. */
export function knownObjectsOf({ options }: Case, values: Values): KnownObjects | undefined {
  const objects = argument<readonly Json[] | null>(options, "knownObjects");
  return objects === null ? undefined : new KnownObjects(objects, values);
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
