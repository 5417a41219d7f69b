/** Label selectors: parsing, matching, and their canonical text. */

import { compileLabels, type LabelOperator, type LabelSet, type LabelTest } from "./compiled_labels.ts";
import { labelKeyProblem, LabelRequirement, quoted, SelectorParseError } from "./label_requirement.ts";

/**
 * A condition on labels: all of its requirements must hold. Immutable.
 * Mirrors apimachinery's `labels.Selector`.
 */
export class LabelSelector {
  /** The requirements by key, in the given order for one key; none: everything or nothing is selected. */
  readonly requirements: readonly LabelRequirement[];
  /** `false` only for {@linkcode labelsNothing}: no object can match, whatever its labels. */
  readonly selectable: boolean;
  #test: LabelTest | undefined;

  /** Makes a selector of requirements; none = everything. */
  constructor(requirements: readonly LabelRequirement[], options: { readonly selectable?: boolean } = {}) {
    this.requirements = requirements.slice().sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
    this.selectable = options.selectable ?? true;
  }

  /** Whether the selector matches every object. */
  get empty(): boolean {
    return this.selectable && this.requirements.length === 0;
  }

  /**
   * Whether labels fulfil every requirement. `undefined` is the same as no labels. The cost is one look-up
   * per key of the selector, or per label if there are fewer labels.
   */
  matches(labels: LabelSet | undefined): boolean {
    if (!this.selectable) return false;
    this.#test ??= compileLabels(this.requirements);
    return this.#test(labels);
  }

  /** The one value that the first requirement on the label demands; `undefined` if it demands none. */
  requiresExactMatch(key: string): string | undefined {
    const found = this.requirements.find((requirement) => requirement.key === key);
    if (found === undefined || found.values.length !== 1) return undefined;
    return found.operator === "=" || found.operator === "==" || found.operator === "in"
      ? found.values[0]
      : undefined;
  }

  /** The canonical text, which parses to an equal selector; `""` for everything, and for nothing. */
  toString(): string {
    return this.requirements.join(",");
  }
}

/**
 * Parses the text of a label selector, such as `app=web,tier in (db,cache),!canary,build>41`. The empty text
 * selects everything. It accepts and refuses exactly the texts that the API server does. Mirrors
 * apimachinery's `labels.Parse`.
 * @throws {SelectorParseError} The text does not parse, or holds an invalid key or value.
 *
 * @example
 * ```ts
 * import * as selectors from "@listwatch/cache/selectors";
 * const selector: selectors.LabelSelector = selectors.parseLabelSelector("tier in (web, api), !canary");
 * console.log(`${selector}`); // !canary,tier in (api,web)
 * console.log(selector.matches({ tier: "api" }), selector.empty); // true false
 * console.log(`${selectors.labelSelectorFromSet({ tier: "db", app: "shop" })}`); // app=shop,tier=db
 * const spec = { matchLabels: { app: "web" } };
 * console.log(selectors.labelSelectorFromSpec(spec).matches({ app: "web" })); // true
 * console.log(selectors.labelsEverything().matches(undefined), selectors.labelsNothing().selectable); // true false
 * ```
 */
export function parseLabelSelector(selector: string): LabelSelector {
  return new LabelSelector(parseLabelRequirements(selector));
}

/**
 * A selector of the objects that carry all of these labels. No labels select everything.
 * Mirrors apimachinery's `labels.ValidatedSelectorFromSet`.
 * @throws {SelectorParseError} A key or value is not a valid label key or value.
 */
export function labelSelectorFromSet(labels: LabelSet): LabelSelector {
  return new LabelSelector(requirementsOfSet(labels));
}

/** A Kubernetes `LabelSelector`, as the spec of a Deployment or a Service account holds it. */
export interface LabelSelectorSpec {
  /** Labels that an object must carry. */
  readonly matchLabels?: LabelSet | null;
  /** Further conditions, all of which must hold. */
  readonly matchExpressions?:
    | readonly {
      readonly key: string;
      readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
      readonly values?: readonly string[] | null;
    }[]
    | null;
}

const SPEC_OPERATORS: ReadonlyMap<string, LabelOperator> = new Map<string, LabelOperator>([
  ["In", "in"],
  ["NotIn", "notin"],
  ["Exists", "exists"],
  ["DoesNotExist", "!"],
]);

/**
 * The selector of a Kubernetes `LabelSelector` object: an absent object selects nothing, an empty one
 * everything. Mirrors apimachinery's `metav1.LabelSelectorAsSelector`.
 * @throws {SelectorParseError} A key, value or operator is not valid.
 */
export function labelSelectorFromSpec(spec: LabelSelectorSpec | null | undefined): LabelSelector {
  if (spec === null || spec === undefined) return labelsNothing();
  const requirements = requirementsOfSet(spec.matchLabels ?? {});
  for (const expression of spec.matchExpressions ?? []) {
    const operator = SPEC_OPERATORS.get(expression.operator);
    if (operator === undefined) {
      throw new SelectorParseError("label", JSON.stringify(expression), {
        reason: `${JSON.stringify(expression.operator)} is no operator of matchExpressions; ` +
          `use "In", "NotIn", "Exists" or "DoesNotExist"`,
      });
    }
    requirements.push(new LabelRequirement(expression.key, { operator, values: expression.values ?? [] }));
  }
  return new LabelSelector(requirements);
}

/** The selector that matches every object. */
export function labelsEverything(): LabelSelector {
  return new LabelSelector([]);
}

/** The selector that matches no object. */
export function labelsNothing(): LabelSelector {
  return new LabelSelector([], { selectable: false });
}

function requirementsOfSet(labels: LabelSet): LabelRequirement[] {
  return Object.keys(labels).map((key) =>
    new LabelRequirement(key, { operator: "=", values: [labels[key]] })
  );
}

export type { LabelOperator, LabelSet } from "./compiled_labels.ts";
export { LabelRequirement, SelectorParseError } from "./label_requirement.ts";

/**
 * Parses a label selector into its requirements, in the order of the text.
 *
 * ```text
 * selector    = [ requirement { "," requirement } ]
 * requirement = [ "!" ] KEY | KEY ( "in" | "notin" ) "(" [ VALUE ] { "," [ VALUE ] } ")"
 *             | KEY ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ]
 * ```
 *
 * Blanks (space, tab, carriage return, newline) are allowed between tokens. `in` and `notin` are words like
 * any other except right after a key. A missing VALUE is the empty string.
 * Mirrors apimachinery's `labels.ParseToRequirements`, except that it keeps the order of the text.
 * @throws {SelectorParseError}
 */
export function parseLabelRequirements(selector: string): LabelRequirement[] {
  return new Parser(selector).parse();
}

interface Token {
  readonly kind: "word" | "symbol" | "end";
  readonly text: string;
  readonly position: number;
}

const BLANKS = " \t\r\n";
const SYMBOLS = "=!(),><";

const BINARY_OPERATORS: ReadonlyMap<string, LabelOperator> = new Map<string, LabelOperator>([
  ["in", "in"],
  ["notin", "notin"],
  ["=", "="],
  ["==", "=="],
  ["!=", "!="],
  [">", "gt"],
  ["<", "lt"],
]);

// Go's lexer reads a NUL as the end: before a token it ends the text, right after one it is dropped. See
// `Lexer` in
// https://github.com/kubernetes/apimachinery/blob/master/pkg/labels/selector.go
function scan(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (true) {
    while (at < text.length && BLANKS.includes(text[at])) at++;
    const position = at;
    if (at === text.length || text[at] === "\0") {
      tokens.push({ kind: "end", text: "", position });
      return tokens;
    }
    const isSymbol = SYMBOLS.includes(text[at]);
    if (isSymbol) {
      at += text.startsWith("==", at) || text.startsWith("!=", at) ? 2 : 1;
    } else {
      while (
        at < text.length && text[at] !== "\0" && !SYMBOLS.includes(text[at]) && !BLANKS.includes(text[at])
      ) {
        at++;
      }
    }
    tokens.push({ kind: isSymbol ? "symbol" : "word", text: text.slice(position, at), position });
    if (text[at] === "\0") at++;
  }
}

class Parser {
  readonly #selector: string;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(selector: string) {
    this.#selector = selector;
    this.#tokens = scan(selector);
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    if (this.#peek().kind === "end") return requirements;
    while (true) {
      requirements.push(this.#requirement());
      const token = this.#take();
      if (token.kind === "end") return requirements;
      if (!isSymbol(token, ",")) this.#fail(token, "',' or the end");
    }
  }

  #requirement(): LabelRequirement {
    let token = this.#take();
    const start = token.position;
    const negated = isSymbol(token, "!");
    if (negated) token = this.#take();
    if (token.kind !== "word") this.#fail(token, negated ? "a label key" : "'!' or a label key");
    const key = token.text;
    const problem = labelKeyProblem(key);
    if (problem !== undefined) this.#refuse(problem, token.position);
    if (negated) return this.#build(key, "!", [], start);
    const following = this.#peek();
    if (following.kind === "end" || isSymbol(following, ",")) return this.#build(key, "exists", [], start);
    const operator = this.#operator();
    const values = operator === "in" || operator === "notin" ? this.#valueList() : [this.#exactValue()];
    return this.#build(key, operator, values, start);
  }

  #operator(): LabelOperator {
    const token = this.#take();
    const operator = BINARY_OPERATORS.get(token.text);
    if (operator === undefined) this.#fail(token, "one of 'in', 'notin', '=', '==', '!=', '>', '<'");
    return operator;
  }

  #valueList(): string[] {
    const open = this.#take();
    if (!isSymbol(open, "(")) this.#fail(open, "'('");
    const values = new Set<string>();
    while (true) {
      // Nothing between commas or parentheses is the empty value.
      values.add(this.#peek().kind === "word" ? this.#take().text : "");
      const token = this.#take();
      if (isSymbol(token, ")")) return [...values];
      if (!isSymbol(token, ",")) this.#fail(token, "',' or ')'");
    }
  }

  #exactValue(): string {
    const following = this.#peek();
    if (following.kind === "end" || isSymbol(following, ",")) return "";
    const token = this.#take();
    if (token.kind !== "word") this.#fail(token, "a label value");
    return token.text;
  }

  #build(
    key: string,
    operator: LabelOperator,
    values: readonly string[],
    position: number,
  ): LabelRequirement {
    try {
      return new LabelRequirement(key, { operator, values });
    } catch (error) {
      if (error instanceof SelectorParseError) this.#refuse(error.reason, position);
      throw error;
    }
  }

  #peek(): Token {
    return this.#tokens[this.#next];
  }

  #take(): Token {
    const token = this.#tokens[this.#next];
    if (token.kind !== "end") this.#next++;
    return token;
  }

  #fail(token: Token, expected: string): never {
    const found = token.kind === "end" ? "the end" : quoted(token.text);
    this.#refuse(`found ${found} at position ${token.position}, expected ${expected}`, token.position);
  }

  #refuse(reason: string, position: number): never {
    throw new SelectorParseError("label", this.#selector, { reason, position });
  }
}

function isSymbol(token: Token, text: string): boolean {
  return token.kind === "symbol" && token.text === text;
}
