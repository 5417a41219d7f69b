/** The parameter `filter`: requirements on any field. */

import { fieldText } from "../text/field_tree.ts";
import type { SelectorLimits } from "./request_url.ts";
import { checkCount, type ScreenPath, ScreenReader } from "./screen_syntax.ts";
import { someValue, type TypedValue, typedValue } from "./screen_values.ts";

/** How a field is compared; `exists` and `!` have no values, `in` and `notin` some, the others one. */
export type FilterOperator = "=" | "!=" | "in" | "notin" | "exists" | "!" | "~" | ">" | "<";

/** One condition of a {@linkcode FieldFilter}. */
export interface FilterRequirement {
  readonly path: ScreenPath;
  readonly operator: FilterOperator;
  /** The values, each once, ascending. */
  readonly values: readonly string[];
}

/**
 * Conditions on the fields of an object, all of which must hold. A path may lead to several values (`[]`,
 * `[type=Ready]`): `=`, `in`, `~`, `>`, `<` and `path` hold if one of them fulfils it; `!=`, `notin` and
 * `!path` hold if none does, so also where the field is absent.
 */
export class FieldFilter {
  readonly requirements: readonly FilterRequirement[];
  /** Whether the selector matches every object. */
  readonly isEmpty: boolean;
  readonly #tests: readonly ((object: unknown) => boolean)[];

  /** @param requirements In any order; the canonical text has them in one. */
  constructor(requirements: readonly FilterRequirement[]) {
    this.requirements = requirements;
    this.isEmpty = requirements.length === 0;
    this.#tests = requirements.map(testOf);
  }

  /** Whether an object fulfils every requirement. */
  matches(object: unknown): boolean {
    for (const test of this.#tests) if (!test(object)) return false;
    return true;
  }

  /** The canonical text, which parses to the same filter. */
  toString(): string {
    return [...new Set(this.requirements.map(requirementText))].sort().join(",");
  }
}

/**
 * Reads a filter: comma-separated `path=v`, `path==v`, `path!=v`, `path in (a,b)`, `path notin (a,b)`,
 * `path`, `!path`, `path~text` (contains, in upper or lower case), `path>n`, `path<n`. Values are written
 * as they are, or as JSON strings if they have a comma, a parenthesis or blanks around them.
 */
export function parseFieldFilter(text: string, limits?: SelectorLimits): FieldFilter {
  if (limits) checkCount("characters", text.length, limits.maxTextLength);
  const reader = new ScreenReader(text);
  const requirements: FilterRequirement[] = [];
  if (!reader.isDone) {
    do requirements.push(readRequirement(reader)); while (reader.next());
  }
  if (limits) {
    checkCount("requirements", requirements.length, limits.maxRequirements);
    const values = requirements.reduce((sum, { values }) => sum + values.length, 0);
    checkCount("values", values, limits.maxValues);
  }
  return new FieldFilter(requirements);
}

const WORD = /(?:not)?in(?=[ (]|$)/y;
const SIGN = /==|!=|[=~<>]/y;
const BARE = /[^,()"]*/y;

function readRequirement(reader: ScreenReader): FilterRequirement {
  if (reader.takes("!")) return { path: reader.path(), operator: "!", values: [] };
  const path = reader.path();
  const word = reader.match(WORD) as "in" | "notin" | undefined;
  if (word !== undefined) return { path, operator: word, values: readSet(reader) };
  const sign = reader.match(SIGN);
  if (sign === undefined) {
    if (reader.isDone || reader.text[reader.at] === ",") return { path, operator: "exists", values: [] };
    throw reader.error(
      `there is no operator behind ${path.text}`,
      "write =, !=, in (a,b), notin (a,b), ~, > or <, or nothing for a field that exists",
    );
  }
  const operator = (sign === "==" ? "=" : sign) as FilterOperator;
  const at = reader.at;
  const value = readValue(reader);
  if (operator === ">" || operator === "<") {
    const { type } = typedValue(value)!;
    if (type === "text") {
      reader.at = at;
      throw reader.error(
        `there is nothing behind ${operator} that has an order`,
        "write a number, a quantity (100m, 2Gi) or a time (2026-01-31T12:00:00Z)",
      );
    }
  }
  return { path, operator, values: [value] };
}

function readValue(reader: ScreenReader): string {
  return reader.string() ?? reader.match(BARE)!.trimEnd();
}

function readSet(reader: ScreenReader): readonly string[] {
  reader.require("(", "write the values of a set in parentheses: (a,b)");
  const values = new Set([readValue(reader)]);
  while (reader.takes(",")) values.add(readValue(reader));
  reader.require(")", "write the values of a set in parentheses: (a,b)");
  return [...values].sort();
}

function requirementText({ path, operator, values }: FilterRequirement): string {
  const texts = values.map((value) => JSON.stringify(value));
  if (operator === "exists") return path.text;
  if (operator === "!") return `!${path.text}`;
  if (operator === "in" || operator === "notin") return `${path.text} ${operator} (${texts.join(",")})`;
  return `${path.text}${operator}${texts[0]}`;
}

function testOf({ path: { segments }, operator, values }: FilterRequirement): (object: unknown) => boolean {
  const some = (test: (value: unknown) => boolean) => (object: unknown) => someValue(object, segments, test);
  const none = (test: (value: unknown) => boolean) => {
    const has = some(test);
    return (object: unknown) => !has(object);
  };
  const wanted = new Set(values);
  const isOne = (value: unknown) => {
    const text = fieldText(value);
    return text !== undefined && wanted.has(text);
  };
  const exists = (value: unknown) => value !== undefined && value !== null;
  switch (operator) {
    case "exists":
      return some(exists);
    case "!":
      return none(exists);
    case "=":
    case "in":
      return some(isOne);
    case "!=":
    case "notin":
      return none(isOne);
    case "~": {
      const part = values[0].toLowerCase();
      return some((value) => fieldText(value)?.toLowerCase().includes(part) === true);
    }
    case ">":
    case "<": {
      const bound = typedValue(values[0])!;
      return some((value) => isBeyond(typedValue(value), operator, bound));
    }
  }
}

function isBeyond(value: TypedValue | undefined, operator: ">" | "<", bound: TypedValue): boolean {
  if (value === undefined || value.type === "text" || bound.type === "text") return false;
  if (value.type !== bound.type) return false;
  return operator === ">" ? value.number > bound.number : value.number < bound.number;
}
