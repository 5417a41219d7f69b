import {
  escapeFieldValue,
  type FieldSelector,
  LabelSelector,
  labelSelectorFromSet,
  labelsEverything,
  labelsNothing,
  parseFieldSelector,
  parseLabelSelector,
  unescapeFieldValue,
} from "@listwatch/cache/selectors";
import { argument, type Case, type Outcome, runSteps, type Step, unknownOp } from "./harness.ts";

/**
 * Runs a case of the suite `selectors`.
 *
 * @throws {ConformanceError} At the first step that differs.
 */
export async function runSelectorsCase(caze: Case): Promise<void> {
  let current: LabelSelector | FieldSelector | undefined;

  function selector(): LabelSelector | FieldSelector {
    if (current === undefined) throw new Error("no selector was parsed yet");
    return current;
  }

  function use(parsed: LabelSelector | FieldSelector): Outcome {
    current = parsed;
    const outcome = { string: parsed.toString(), empty: parsed.empty };
    if (!(parsed instanceof LabelSelector)) return { ...outcome, requirements: parsed.requirements };
    const requirements = parsed.requirements.map(({ key, operator, values }) => ({
      key,
      operator,
      values: values.slice().sort(),
    }));
    return { ...outcome, selectable: parsed.selectable, requirements };
  }

  function perform(step: Step): Outcome {
    switch (step.op) {
      case "labels.parse":
        return use(parseLabelSelector(argument(step, "selector")));
      case "labels.fromSet":
        return use(labelSelectorFromSet(argument(step, "labels")));
      case "labels.everything":
        return use(labelsEverything());
      case "labels.nothing":
        return use(labelsNothing());
      case "fields.parse":
        return use(parseFieldSelector(argument(step, "selector")));
      case "matches":
        return { value: selector().matches(argument<Record<string, string>>(step, "set")) };
      case "requiresExactMatch": {
        const value = selector().requiresExactMatch(argument(step, "key"));
        return { value: value ?? "", found: value !== undefined };
      }
      case "fields.escape":
        return { value: escapeFieldValue(argument(step, "value")) };
      case "fields.unescape":
        return { value: unescapeFieldValue(argument(step, "value")) };
      default:
        return unknownOp(step);
    }
  }

  await runSteps(caze, perform);
}
