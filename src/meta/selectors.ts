/**
 * Label and field selectors: parsing them, building them, matching objects with them.
 *
 * @module
 */

export {
  escapeFieldValue,
  type FieldGetter,
  type FieldRequirement,
  FieldSelector,
  type FieldSet,
  parseFieldSelector,
  unescapeFieldValue,
} from "./fields.ts";
export {
  type LabelOperator,
  LabelRequirement,
  LabelSelector,
  labelSelectorFromSet,
  labelSelectorFromSpec,
  type LabelSelectorSpec,
  type LabelSet,
  labelsEverything,
  labelsNothing,
  parseLabelSelector,
  SelectorParseError,
} from "./labels.ts";
