/** Label selectors, prepared for many objects. */

/**
 * How a `LabelRequirement` relates key and values. `==` means the same as `=`; both are kept as written.
 * Mirrors apimachinery's `selection.Operator`.
 */
export type LabelOperator = "=" | "==" | "!=" | "in" | "notin" | "exists" | "!" | "gt" | "lt";

/** Labels as an object carries them; only its own properties count. */
export type LabelSet = Readonly<Record<string, string>>;

interface Requirement {
  readonly key: string;
  readonly operator: LabelOperator;
  readonly values: readonly string[];
}

/** Whether labels fulfil the compiled requirements. */
export type LabelTest = (labels: LabelSet | undefined) => boolean;

// With more keys it is cheaper to look up each label among the keys.
const FEW_KEYS = 4;

export function compileLabels(requirements: readonly Requirement[]): LabelTest {
  const conditions = conditionsOf(requirements);
  if (conditions.length === 1) return testOf(conditions[0]);
  if (conditions.length <= FEW_KEYS) {
    const tests = conditions.map(testOf);
    return (labels) => {
      for (let i = 0; i < tests.length; i++) if (!tests[i](labels)) return false;
      return true;
    };
  }
  const required = conditions.filter(({ mustExist }) => mustExist).length;
  const byKey = new Map(conditions.map((condition) => [condition.key, condition]));
  return (labels) => {
    let missing = required;
    for (const key in labels) {
      if (byKey.has(key) && Object.hasOwn(labels, key)) {
        const condition = byKey.get(key)!;
        if (!condition.allows(labels[key])) return false;
        if (condition.mustExist) missing--;
      }
    }
    return missing === 0;
  };
}

/** A test of one key. An inherited property (`constructor`) is not a label. */
function testOf(condition: KeyCondition): LabelTest {
  const { key, mustExist, only, except } = condition;
  // The two most frequent conditions.
  if (only !== undefined) {
    return (labels) =>
      labels !== undefined && labels !== null && labels[key] === only && Object.hasOwn(labels, key);
  }
  if (except !== undefined && !mustExist) {
    return (labels) =>
      labels === undefined || labels === null || labels[key] !== except || !Object.hasOwn(labels, key);
  }
  return (labels) => {
    if (labels === undefined || labels === null) return !mustExist;
    const value = labels[key];
    return value === undefined || !Object.hasOwn(labels, key) ? !mustExist : condition.allows(value);
  };
}

/** A `number` if the value fits. */
type Int64 = bigint | number;

class KeyCondition {
  readonly key: string;
  readonly mustExist: boolean;
  /** The one value that the label may have, if there is exactly one. */
  readonly only: string | undefined;
  /** The one value that the label must not have, if `mustExist` does not say that there is more. */
  readonly except: string | undefined;
  /** The values that the label may have; `undefined`: any; none: there may be no label. */
  readonly #allowed: ReadonlySet<string> | undefined;
  readonly #excluded: ReadonlySet<string> = new Set();
  readonly #above: Int64 | undefined;
  readonly #below: Int64 | undefined;

  constructor(key: string, requirements: readonly Requirement[]) {
    this.key = key;
    const excluded = new Set<string>();
    let allowed: Set<string> | undefined;
    let mustExist = false;
    for (const { operator, values } of requirements) {
      switch (operator) {
        case "!":
          allowed = new Set();
          continue;
        case "!=":
        case "notin":
          for (const value of values) excluded.add(value);
          continue;
        case "=":
        case "==":
        case "in": {
          const known: Set<string> | undefined = allowed;
          allowed = new Set(known === undefined ? values : values.filter((value) => known.has(value)));
          break;
        }
        case "gt":
          this.#above = largest(this.#above, parseInt64(values[0]));
          break;
        case "lt":
          this.#below = smallest(this.#below, parseInt64(values[0]));
          break;
      }
      mustExist = true;
    }
    this.#excluded = excluded;
    this.mustExist = mustExist;
    if (allowed !== undefined) {
      // Membership is the only check left.
      allowed = new Set(Array.from(allowed).filter((value) => this.#passes(value)));
      if (allowed.size === 1) [this.only] = allowed;
    } else if (excluded.size === 1) {
      [this.except] = excluded;
    }
    this.#allowed = allowed;
  }

  allows(value: string): boolean {
    return this.#allowed === undefined ? this.#passes(value) : this.#allowed.has(value);
  }

  get #isBounded(): boolean {
    return this.#above !== undefined || this.#below !== undefined;
  }

  #passes(value: string): boolean {
    if (this.#excluded.has(value)) return false;
    if (!this.#isBounded) return true;
    const number = parseInt64(value);
    return number !== undefined && (this.#above === undefined || number > this.#above) &&
      (this.#below === undefined || number < this.#below);
  }
}

function largest(a: Int64 | undefined, b: Int64 | undefined): Int64 | undefined {
  return a === undefined || (b !== undefined && b > a) ? b : a;
}

function smallest(a: Int64 | undefined, b: Int64 | undefined): Int64 | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a;
}

function conditionsOf(requirements: readonly Requirement[]): KeyCondition[] {
  const byKey = new Map<string, Requirement[]>();
  for (const requirement of requirements) {
    const others = byKey.get(requirement.key);
    if (others === undefined) byKey.set(requirement.key, [requirement]);
    else others.push(requirement);
  }
  return Array.from(byKey, ([key, ofKey]) => new KeyCondition(key, ofKey));
}

const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);
const SAFE_LENGTH = 15;
// No label has a longer value.
const MAX_DIGITS = 63;

/**
 * As Go's `strconv.ParseInt(text, 10, 64)`; `undefined` if the text does not parse. A `number` if the value
 * fits, which costs less; a `number` and a `bigint` compare with each other.
 */
export function parseInt64(text: string): bigint | number | undefined {
  if (typeof text !== "string" || text.length > MAX_DIGITS) return undefined;
  const first = text.charCodeAt(0);
  const digits = first === PLUS || first === MINUS ? 1 : 0;
  if (text.length === digits) return undefined;
  let number = 0;
  for (let i = digits; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < ZERO || code > NINE) return undefined;
    number = number * 10 + code - ZERO;
  }
  if (text.length <= SAFE_LENGTH) return first === MINUS ? -number : number;
  const value = BigInt(text);
  return value >= INT64_MIN && value <= INT64_MAX ? value : undefined;
}

const PLUS = 0x2b;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
