/** Field selectors: parsing, matching, and their canonical text. */

import { quoted, SelectorParseError } from "./label_requirement.ts";

/** A condition of a {@linkcode FieldSelector}. */
export interface FieldRequirement {
  /** The field's path, such as `spec.nodeName`; any text without `=` is allowed. */
  readonly field: string;
  /** `==` is kept as `=`. */
  readonly operator: "=" | "!=";
  /** The value, not escaped. */
  readonly value: string;
}

/** Gives the value of a field; a field that is absent (`undefined`) has the empty value. */
export type FieldGetter = (field: string) => string | undefined;

/** Fields by path; only its own properties count. */
export type FieldSet = Readonly<Record<string, string>>;

/**
 * A condition on an object's fields: all of its requirements must hold. Immutable. The server decides
 * which fields can be selected. Mirrors apimachinery's `fields.Selector`.
 */
export class FieldSelector {
  /** The requirements, in the order of the canonical text. */
  readonly requirements: readonly FieldRequirement[];

  /** Makes a selector of requirements; none = everything. */
  constructor(requirements: readonly FieldRequirement[]) {
    this.requirements = requirements.slice();
  }

  /** Whether the selector matches every object. */
  get empty(): boolean {
    return this.requirements.length === 0;
  }

  /**
   * Whether fields fulfil every requirement. A getter is called in the order of the requirements, up to the
   * first that fails.
   */
  matches(fields: FieldGetter | FieldSet): boolean {
    for (const { field, operator, value } of this.requirements) {
      const own = typeof fields === "function" || Object.hasOwn(fields, field);
      const actual = !own ? "" : typeof fields === "function" ? fields(field) ?? "" : fields[field];
      if ((actual === value) !== (operator === "=")) return false;
    }
    return true;
  }

  /** The one value that the field must have, or `undefined` if no requirement names one. */
  requiresExactMatch(field: string): string | undefined {
    return this.requirements.find((one) => one.field === field && one.operator === "=")?.value;
  }

  /** The canonical text, which parses to an equal selector; `""` for everything. */
  toString(): string {
    return this.requirements
      .map(({ field, operator, value }) => `${field}${operator}${escapeFieldValue(value)}`)
      .join(",");
  }
}

/**
 * Parses the text of a field selector: terms `field=value`, `field==value` or `field!=value`, separated by
 * commas. A value has a backslash before each `\`, `,` and `=`. Empty terms are skipped; the empty text
 * selects everything. Mirrors apimachinery's `fields.ParseSelector`.
 * @throws {SelectorParseError} A term has no operator, or a value a wrong or missing escape.
 *
 * @example
 * ```ts
 * import * as selectors from "@listwatch/cache/selectors";
 * const selector: selectors.FieldSelector = selectors.parseFieldSelector("metadata.name==web-1");
 * console.log(`${selector}`, selector.requiresExactMatch("metadata.name")); // metadata.name=web-1 web-1
 * console.log(selector.matches({ "metadata.name": "web-1" })); // true
 * console.log(selectors.escapeFieldValue("a=b,c"), selectors.unescapeFieldValue("a\\=b")); // a\=b\,c a=b
 * ```
 */
export function parseFieldSelector(selector: string): FieldSelector {
  const requirements: FieldRequirement[] = [];
  for (const term of splitTerms(selector).sort(compareUtf8)) {
    if (term === "") continue;
    const operator = /!=|==?/.exec(term);
    if (operator === null) {
      throw new SelectorParseError("field", selector, {
        reason: `the term ${quoted(term)} has no operator, want "field=value" or "field!=value"`,
        position: `,${selector},`.indexOf(`,${term},`),
      });
    }
    const field = term.slice(0, operator.index);
    const value = unescapeValue(term.slice(operator.index + operator[0].length), selector);
    // Upstream's transform step drops a term that is empty on both sides.
    if (field !== "" || value !== "") {
      requirements.push({ field, operator: operator[0] === "!=" ? "!=" : "=", value });
    }
  }
  return new FieldSelector(requirements);
}

/** Escapes a value for the text of a field selector. Mirrors apimachinery's `fields.EscapeValue`. */
export function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, "\\$&");
}

/**
 * Reads an escaped value of a field selector. Mirrors apimachinery's `fields.UnescapeValue`.
 * @throws {SelectorParseError} A comma or equals sign has no backslash before it, or a backslash is before
 * anything but `\`, `,` or `=`.
 */
export function unescapeFieldValue(value: string): string {
  return unescapeValue(value, value);
}

function unescapeValue(value: string, selector: string): string {
  let literal = "";
  for (let i = 0; i < value.length; i++) {
    const escaped = value[i] === "\\";
    if (escaped) i++;
    const special = "\\,=".includes(value[i]);
    if (special !== escaped) {
      const reason = escaped
        ? `a backslash must be before "\\", "," or "=" in the value ${quoted(value)}`
        : `"${value[i]}" needs a backslash before it in the value ${quoted(value)}`;
      throw new SelectorParseError("field", selector, { reason });
    }
    literal += value[i];
  }
  return literal;
}

// A comma after a backslash belongs to its term; the backslash stays for the value to be unescaped.
function splitTerms(selector: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let i = 0; i < selector.length; i++) {
    if (selector[i] === "\\") i++;
    else if (selector[i] === ",") {
      terms.push(selector.slice(start, i));
      start = i + 1;
    }
  }
  terms.push(selector.slice(start));
  return terms;
}

// Go compares bytes of UTF-8, which is the order of code points; JavaScript's own order puts surrogates too
// low.
function compareUtf8(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

function rank(codeUnit: number): number {
  return codeUnit >= 0xd800 && codeUnit <= 0xdfff ? codeUnit + 0x10000 : codeUnit;
}
