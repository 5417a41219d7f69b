import {
  deletionHandlingMetaNamespaceKey,
  metaNamespaceIndex,
  metaNamespaceKey,
  splitMetaNamespaceKey,
} from "@listwatch/cache";
import {
  deletionHandlingObjectToName,
  formatObjectName,
  indexFuncToKeyFunc,
  parseObjectName,
} from "@listwatch/cache/store";
import { argument, type Case, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";
import { decodeValue } from "./values.ts";

/**
 * Runs a case of the suite `keys`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runKeysCase(caze: Case): Promise<void> {
  await runSteps(caze, (step) => ({ value: valueOf(step) }));
}

function valueOf(step: Step): unknown {
  const key = () => argument<string>(step, "key");
  const object = () => decodeValue(argument(step, "object"));
  switch (step.op) {
    case "metaNamespaceKey":
      return metaNamespaceKey(object());
    case "deletionHandlingMetaNamespaceKey":
      return deletionHandlingMetaNamespaceKey(object());
    case "metaNamespaceIndex":
      return metaNamespaceIndex(object());
    case "splitMetaNamespaceKey":
      return splitMetaNamespaceKey(key());
    case "parseObjectName": {
      const objectName = parseObjectName(key());
      return { ...objectName, string: formatObjectName(objectName) } satisfies Outcome;
    }
    case "objectName":
      return formatObjectName({ namespace: argument(step, "namespace"), name: argument(step, "name") });
    case "deletionHandlingObjectToName":
      return deletionHandlingObjectToName(object());
    case "keyByIndexFunc":
      return indexFuncToKeyFunc(() => argument<string[]>(step, "indexValues"))({});
    default:
      return unknownOp(step);
  }
}
