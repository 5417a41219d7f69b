/** The grammar of label selectors. */

import type { LabelOperator } from "./compiled_labels.ts";
import { labelKeyProblem, LabelRequirement, quoted, SelectorParseError } from "./label_requirement.ts";

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
