/** One condition on an object's labels. */

import { DNS_SUBDOMAIN } from "./resource.ts";
import { CacheError } from "../util/errors.ts";
import {
  compileLabels,
  type LabelOperator,
  type LabelSet,
  type LabelTest,
  parseInt64,
} from "./compiled_labels.ts";

/**
 * One condition on labels; immutable. A selector is the conjunction of its requirements.
 * Mirrors apimachinery's `labels.Requirement`.
 *
 * @example
 * ```ts
 * import { LabelRequirement } from "@listwatch/cache/selectors";
 * const requirement = new LabelRequirement("tier", { operator: "notin", values: ["web", "api"] });
 * console.log(`${requirement}`, requirement.matches({ tier: "db" })); // tier notin (api,web) true
 * ```
 */
export class LabelRequirement {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Ascending; one or more for `in` and `notin`, none for `exists` and `!`, exactly one for the others. */
  readonly values: readonly string[];
  #test: LabelTest | undefined;

  /**
   * @throws {SelectorParseError} The key or a value is not a valid label key or value, there are too many or
   * too few values for the operator, or the value of `gt` or `lt` is not a 64-bit signed integer.
   */
  constructor(
    key: string,
    options: { readonly operator: LabelOperator; readonly values?: readonly string[] },
  ) {
    const { operator, values = [] } = options;
    this.key = key;
    this.operator = operator;
    this.values = values.slice().sort();
    const reason = this.#problem();
    if (reason !== undefined) throw new SelectorParseError("label", this.toString(), { reason });
  }

  /**
   * Whether labels fulfil this. Missing labels are the same as none. `!=` and `notin` are also fulfilled
   * where the key is absent; `gt` and `lt` only where the label's value is a plain decimal integer (a sign is
   * allowed) of at most 64 bits.
   */
  matches(labels: LabelSet | undefined): boolean {
    this.#test ??= compileLabels([this]);
    return this.#test(labels);
  }

  /** The canonical text: values in ascending order, blanks only around `in` and `notin`. */
  toString(): string {
    const { key, operator } = this;
    const values = this.values.join(",");
    if (operator === "exists") return key;
    if (operator === "!") return `!${key}`;
    if (operator === "in" || operator === "notin") return `${key} ${operator} (${values})`;
    return `${key}${operator === "gt" ? ">" : operator === "lt" ? "<" : operator}${values}`;
  }

  #problem(): string | undefined {
    const keyProblem = labelKeyProblem(this.key);
    if (keyProblem !== undefined) return keyProblem;
    const count = this.values.length;
    switch (this.operator) {
      case "in":
      case "notin":
        if (count === 0) return `"${this.operator}" needs at least one value`;
        break;
      case "exists":
      case "!":
        if (count !== 0) return `"${this.operator}" takes no values`;
        break;
      default:
        if (!BINARY.has(this.operator)) return `unknown operator ${JSON.stringify(this.operator)}`;
        if (count !== 1) return `"${this.operator}" needs exactly one value, not ${count}`;
    }
    if ((this.operator === "gt" || this.operator === "lt") && parseInt64(this.values[0]) === undefined) {
      return `"${this.operator}" needs a 64-bit signed integer, not ${quoted(this.values[0])}`;
    }
    for (const value of this.values) {
      const problem = labelValueProblem(value);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
}

const BINARY: ReadonlySet<string> = new Set(["=", "==", "!=", "gt", "lt"]);
const MAX_NAME_LENGTH = 63;
const MAX_PREFIX_LENGTH = 253;

const NAME = /^[A-Za-z0-9]+(?:[-_.]+[A-Za-z0-9]+)*$/;

const NAME_RULE =
  "must consist of letters, digits, '-', '_' or '.', and start and end with a letter or digit";
const SUBDOMAIN_RULE =
  "must consist of lower case letters, digits, '-' or '.', and every part start and end with a letter or digit";

/**
 * The fault of a label key, which must be `name` or `dns.subdomain/name`, the name at most 63 and the prefix
 * at most 253 characters. `undefined` if it is valid. Mirrors apimachinery's `content.IsLabelKey`.
 */
export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf("/");
  if (slash !== key.lastIndexOf("/")) {
    return `the label key ${quoted(key)} has more than one '/': want "name" or "example.com/name"`;
  }
  const what = `the label key ${quoted(key)}`;
  if (slash >= 0) {
    const prefix = key.slice(0, slash);
    if (prefix === "") return `${what} has an empty prefix`;
    // Lengths first: the patterns then never see a long text.
    if (prefix.length > MAX_PREFIX_LENGTH) return `${what} has a prefix longer than ${MAX_PREFIX_LENGTH}`;
    if (!DNS_SUBDOMAIN.test(prefix)) return `the prefix of ${what} ${SUBDOMAIN_RULE}`;
  }
  const name = key.slice(slash + 1);
  if (name === "") return `${what} has an empty name`;
  if (name.length > MAX_NAME_LENGTH) return `the name of ${what} is longer than ${MAX_NAME_LENGTH}`;
  return NAME.test(name) ? undefined : `the name of ${what} ${NAME_RULE}`;
}

/**
 * The fault of a label value, which must be empty, or a name of at most 63 characters. `undefined` if it is
 * valid. Mirrors apimachinery's `content.IsLabelValue`.
 */
function labelValueProblem(value: string): string | undefined {
  if (value === "") return undefined;
  if (typeof value !== "string") return `a label value must be a string, not ${typeof value}`;
  const what = `the label value ${quoted(value)}`;
  if (value.length > MAX_NAME_LENGTH) return `${what} is longer than ${MAX_NAME_LENGTH}`;
  return NAME.test(value) ? undefined : `${what} ${NAME_RULE}`;
}

// A selector may come from any client; its error is written to logs and answers.
const MAX_SHOWN = 200;

/** A label or field selector does not parse, or has a key or value that Kubernetes does not allow. */
export class SelectorParseError extends CacheError {
  readonly selector: string;
  /** The fault, and what would be right. */
  readonly reason: string;
  /** The index of the wrong character in {@linkcode SelectorParseError.selector}, if there is one. */
  readonly position: number | undefined;

  constructor(
    kind: "label" | "field",
    selector: string,
    { reason, position }: { readonly reason: string; readonly position?: number },
  ) {
    super("ParseError", `Cannot use the ${kind} selector ${quoted(selector, MAX_SHOWN)}: ${reason}`);
    this.selector = selector;
    this.reason = reason;
    this.position = position;
  }
}

/** A text in quotes, shortened if it is long. */
export function quoted(text: string, longest = 80): string {
  return JSON.stringify(text.length > longest ? `${text.slice(0, longest)}...` : text);
}
