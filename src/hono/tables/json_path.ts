/** Paths into JSON values, as the printer columns of custom resources have them. */

import { isRecord } from "../../util/json.ts";

export type JsonPath = (value: unknown) => unknown[];

/** A step of a path: from the values that were found so far to the next ones. */
type Step = (values: readonly unknown[]) => unknown[];

/**
 * Reads a path, such as `.status.conditions[?(@.type=="Ready")].status`. Mirrors client-go's
 * [`util/jsonpath`](https://github.com/kubernetes/client-go/tree/master/util/jsonpath) with
 * `AllowMissingKeys`: escaped dots, brackets, indices, slices, unions, wildcards, filters
 * and recursive descent.
 */
export function parseJsonPath(path: string): JsonPath {
  const run = sequence(new Parser(path).steps());
  return (value) => run([value]);
}

// Steps such as `..` find a value again and again, more often with each of them; a column shows the first.
const MOST_VALUES = 10_000;

function sequence(steps: readonly Step[]): Step {
  return (values) => steps.reduce<unknown[]>((found, step) => step(limited(found)), values.slice());
}

function limited(values: unknown[]): unknown[] {
  if (values.length > MOST_VALUES) throw new TypeError("A path finds too many values");
  return values;
}

const FIELD = /(?:\\(?:[^]|$)|[^\s.,[\]$@{}\\])*/y;
const NUMBER = /[+-]?[0-9.]*/y;
const QUOTED = /"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*'/y;
const FILTER = /\[\?\(((?:"(?:\\[^]|[^"\\\n])*"|'(?:\\[^]|[^'\\\n])*'|[^)"'\n])*)\)\]/y;
const BRACKETS = /\[([^\]\n]*)\]/y;
const WORD = /[\p{L}\p{Nd}_]/u;
const OPERATOR = /[!<>=]+/;
const SLICE = /^(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?$/;

class Parser {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  steps(): Step[] {
    const steps: Step[] = [];
    let isDescending = false;
    while (this.#position < this.#text.length) {
      const wasDescending: boolean = isDescending;
      isDescending = false;
      const character = this.#text[this.#position];
      if (this.#text.startsWith("[?(", this.#position)) steps.push(filter(this.#take(FILTER, 1)));
      else if (this.#text.startsWith("..", this.#position)) {
        if (wasDescending) throw this.#error();
        this.#position += 2;
        steps.push(descend);
        isDescending = true;
        if (WORD.test(this.#text.charAt(this.#position))) {
          steps.push(this.#field());
          isDescending = false;
        }
      } else if (character === " " || character === "@" || character === "$") {
        this.#position++;
        isDescending = wasDescending;
      } else if (character === "[") steps.push(...brackets(this.#take(BRACKETS, 1)));
      else if (character === '"' || character === "'") {
        const text = unquote(this.#take(QUOTED, 0));
        steps.push(() => [text]);
      } else if (character === ".") {
        this.#position++;
        steps.push(this.#field());
      } else if (/[+\-0-9]/.test(character)) steps.push(literal(numberOf(this.#take(NUMBER, 0))));
      else if (WORD.test(character)) steps.push(word(this.#take(FIELD, 0)));
      else throw this.#error();
    }
    return steps;
  }

  #field(): Step {
    const name = this.#take(FIELD, 0);
    return name === "*" ? everything : field(name.replaceAll("\\", ""));
  }

  #take(pattern: RegExp, group: number): string {
    pattern.lastIndex = this.#position;
    const match = pattern.exec(this.#text);
    if (match === null) throw this.#error();
    this.#position = pattern.lastIndex;
    return match[group];
  }

  #error(): TypeError {
    return new TypeError(`Cannot read the path ${JSON.stringify(this.#text)} at character ${this.#position}`);
  }
}

function field(name: string): Step {
  return (values) =>
    values.flatMap((value) =>
      isRecord(value) && Object.hasOwn(value, name) && value[name] !== undefined ? [value[name]] : []
    );
}

const everything: Step = (values) =>
  values.flatMap((value) => typeof value === "object" && value !== null ? Object.values(value) : []);

const descend: Step = (values) => {
  const found: unknown[] = [];
  const visit = (value: unknown) => {
    const children = everything([value]);
    if (children.length > 0) limited(found).push(value);
    children.forEach(visit);
  };
  values.forEach(visit);
  return found;
};

function literal(value: unknown): Step {
  return (values) => values.map(() => value);
}

function numberOf(text: string): number {
  const value = /[0-9]/.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value)) throw new TypeError(`Cannot read the number ${JSON.stringify(text)}`);
  return value;
}

function word(text: string): Step {
  if (text === "true" || text === "false") return literal(text === "true");
  return () => {
    throw new TypeError(`The word ${JSON.stringify(text)} has no meaning in a path`);
  };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
};

function unquote(quoted: string): string {
  const quote = quoted[0];
  return quoted.slice(1, -1).replace(
    /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|([^]))/gi,
    (_, byte: string | undefined, unit: string | undefined, letter: string) => {
      if (byte ?? unit) return String.fromCharCode(parseInt((byte ?? unit)!, 16));
      const character = letter === quote ? quote : ESCAPES[letter];
      if (character === undefined) throw new TypeError(`Cannot read the text ${quoted}`);
      return character;
    },
  );
}

function brackets(text: string): Step[] {
  const parts = text.split(",");
  if (parts.length > 1) {
    const union = parts.map((part) => sequence(brackets(part.trim())));
    return [(values) => union.flatMap((step) => step(values))];
  }
  const key = /^'([^']*)'$/.exec(text);
  // A dot in a key must be escaped here, too.
  if (key !== null) return new Parser(`.${key[1]}`).steps();
  const slice = SLICE.exec(text === "*" ? ":" : text);
  if (slice === null) throw new TypeError(`Cannot read the index [${text}]`);
  return [items(slice)];
}

function items([, first, to, by]: readonly (string | undefined)[]): Step {
  const bound = (text: string | undefined) =>
    text === undefined || text === "" || text === ":" ? undefined : Number(text.replace(":", ""));
  const start = bound(first) ?? 0;
  // An index without a colon is one item.
  const end = to === undefined ? start + 1 : bound(to);
  const step = bound(by) ?? 1;
  return (values) =>
    values.flatMap((value) => {
      if (value === null || value === undefined) return [];
      if (!Array.isArray(value)) throw new TypeError("An index needs an array");
      const { length } = value;
      const from = start < 0 ? start + length : start;
      const until = end === undefined
        ? length
        : end < 0 || (end === 0 && to === undefined)
        ? end + length
        : end;
      if (from === until) return [];
      if (from < 0 || until > length || from > until || step <= 0) {
        throw new TypeError(`The index is out of bounds: the array has ${length} items`);
      }
      return value.slice(from, until).filter((_, i) => i % step === 0);
    });
}

function filter(text: string): Step {
  const match = OPERATOR.exec(text);
  const end = match === null ? 0 : match.index + match[0].length;
  const isComparison = match !== null && match.index > 0 && end < text.length;
  const [left, operator, right] = isComparison
    ? [text.slice(0, match.index), match[0], text.slice(end)]
    : [text, "", undefined];
  const leftOf = sequence(new Parser(left).steps());
  const rightOf = right === undefined ? undefined : sequence(new Parser(right).steps());
  const passes = (item: unknown): boolean => {
    if (rightOf === undefined) return exists(leftOf, item);
    const [lefts, rights] = [leftOf([item]), rightOf([item])];
    if (lefts.length === 0 || rights.length === 0) return false;
    if (lefts.length > 1 || rights.length > 1) throw new TypeError("A filter compares one value at a time");
    return compare(lefts[0], operator, rights[0]);
  };
  return (values) =>
    values.flatMap((value) => {
      if (!Array.isArray(value)) throw new TypeError("A filter needs an array");
      return value.filter(passes);
    });
}

function exists(find: Step, item: unknown): boolean {
  try {
    return find([item]).length > 0;
  } catch {
    return false;
  }
}

function compare(left: unknown, operator: string, right: unknown): boolean {
  const kind = kindOf(left);
  const isOrdered = operator !== "==" && operator !== "!=";
  if (kind === undefined || kind !== kindOf(right) || (isOrdered && kind === "boolean")) {
    throw new TypeError("A filter compares two texts, two integers, two other numbers, or two booleans");
  }
  if (!Object.hasOwn(COMPARISONS, operator)) throw new TypeError(`A filter has no operator ${operator}`);
  // Both have one type, as was checked.
  return COMPARISONS[operator](left as string, right as string);
}

const COMPARISONS: Readonly<Record<string, (a: string, b: string) => boolean>> = {
  "==": (a, b) => a === b,
  "!=": (a, b) => a !== b,
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

function kindOf(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value === "string" || typeof value === "boolean" ? typeof value : undefined;
}
