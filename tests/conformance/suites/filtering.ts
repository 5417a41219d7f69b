import {
  DeletedFinalStateUnknown,
  type DeletedObject,
  FilteringResourceEventHandler,
  type ResourceEventHandler,
} from "@listwatch/cache";
import { argument, type Case, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";
import { decodeValue, encodeValue, type Json } from "./values.ts";

/**
 * Runs a case of the suite `filtering`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runFilteringCase(caze: Case): Promise<void> {
  const { options } = caze;
  let calls: Outcome[] = [];
  const recorder = newRecorder(options, (call) => calls.push(call));
  const handler: ResourceEventHandler<unknown> = argument(options, "filter") === "none"
    ? recorder
    : new FilteringResourceEventHandler(newFilter(argument(options, "tombstones")), recorder, {
      keyFunc: String, // the cases do not ask for keys
    });

  function perform(step: Step): Outcome {
    calls = [];
    switch (step.op) {
      case "onAdd":
        handler.onAdd?.(decodeValue(argument(step, "object")), argument(step, "isInInitialList"));
        break;
      case "onUpdate":
        handler.onUpdate?.(decodeValue(argument(step, "old")), decodeValue(argument(step, "new")));
        break;
      case "onDelete":
        handler.onDelete?.(asDeleted(argument(step, "object")));
        break;
      default:
        return unknownOp(step);
    }
    return { calls };
  }

  await runSteps(caze, perform);
}

/** A handler with the callbacks that a case names. */
function newRecorder(
  options: Case["options"],
  record: (call: Outcome) => void,
): ResourceEventHandler<unknown> {
  const callbacks = argument<readonly string[]>(options, "callbacks");
  const isDetailed = argument(options, "handler") === "detailed";
  return {
    ...(callbacks.includes("add") && {
      onAdd: (object, isInInitialList) => {
        record({ call: "add", object: encodeValue(object), ...(isDetailed && { isInInitialList }) });
      },
    }),
    ...(callbacks.includes("update") && {
      onUpdate: (old, object) => {
        record({ call: "update", old: encodeValue(old), new: encodeValue(object) });
      },
    }),
    ...(callbacks.includes("delete") && {
      onDelete: (deleted) => {
        const value = deleted.finalStateUnknown ? deleted : deleted.object;
        record({ call: "delete", object: encodeValue(value) });
      },
    }),
  };
}

/** Passes objects with the label `app=web`; `tombstones` says how a tombstone is handled. */
function newFilter(tombstones: "reject" | "accept" | "unwrap"): (value: unknown) => boolean {
  return (value) => {
    if (!(value instanceof DeletedFinalStateUnknown)) return isWeb(value);
    return tombstones === "unwrap" ? isWeb(value.object) : tombstones === "accept";
  };
}

function isWeb(value: unknown): boolean {
  const { metadata } = Object(value) as { metadata?: { labels?: Readonly<Record<string, string>> } };
  return metadata?.labels?.app === "web";
}

function asDeleted(json: Json): DeletedObject<unknown> {
  const object = decodeValue(json);
  return object instanceof DeletedFinalStateUnknown ? object : { finalStateUnknown: false, key: "", object };
}
