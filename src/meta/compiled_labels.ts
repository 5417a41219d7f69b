/**
 * Label selectors, prepared for many objects.
 * @module
 */

import { type LabelRequirement, type LabelSet, parseInt64 } from "./label_requirement.ts";

/** Whether labels fulfil what was compiled. */
export type LabelTest = (labels: LabelSet | undefined) => boolean;

// With more keys than that it is cheaper to ask of each label which key it is.
const FEW_KEYS = 4;

/**
 * Makes one test of all requirements. What is asked of one key becomes one condition, so that a test costs a look at
 * each key, or at each label where those are fewer, however many requirements there are. It makes nothing while it tests.
 */
export function compileLabels(requirements: readonly LabelRequirement[]): LabelTest {
  const conditions = conditionsOf(requirements);
  if (conditions.some(({ isImpossible }) => isImpossible)) return () => false;
  if (conditions.length === 0) return () => true;
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

/** A test of one key. What is inherited (`constructor`) is no label. */
function testOf(condition: KeyCondition): LabelTest {
  const { key, mustExist, only, except } = condition;
  // The two that are asked most.
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

/** A number where one holds it. */
type Int64 = bigint | number;

/** All that is asked of the label of one key. */
class KeyCondition {
  readonly key: string;
  readonly mustExist: boolean;
  /** Whether no label can fulfil it, nor its absence. */
  readonly isImpossible: boolean;
  /** The one value that it may have, where there is just one. */
  readonly only: string | undefined;
  /** The one value that it may not have, where nothing else is asked of its value. */
  readonly except: string | undefined;
  readonly #mustNotExist: boolean;
  /** The values it may have; `undefined`: any. */
  readonly #allowed: ReadonlySet<string> | undefined;
  readonly #excluded: ReadonlySet<string> = new Set();
  readonly #above: Int64 | undefined;
  readonly #below: Int64 | undefined;

  constructor(key: string, requirements: readonly LabelRequirement[]) {
    this.key = key;
    const excluded = new Set<string>();
    let allowed: Set<string> | undefined;
    let mustExist = false;
    let mustNotExist = false;
    for (const { operator, values } of requirements) {
      switch (operator) {
        case "!":
          mustNotExist = true;
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
    this.#mustNotExist = mustNotExist;
    if (allowed !== undefined) {
      // Then nothing else needs to be asked of a value.
      allowed = new Set(Array.from(allowed).filter((value) => this.#passes(value)));
      if (allowed.size === 1) [this.only] = allowed;
    } else if (!mustNotExist && excluded.size === 1 && !this.#isBounded) {
      [this.except] = excluded;
    }
    this.#allowed = allowed;
    this.isImpossible = mustExist && (mustNotExist || allowed?.size === 0);
  }

  /** Whether a label may have this value. */
  allows(value: string): boolean {
    if (this.#allowed !== undefined) return this.#allowed.has(value);
    return !this.#mustNotExist && this.#passes(value);
  }

  get #isBounded(): boolean {
    return this.#above !== undefined || this.#below !== undefined;
  }

  #passes(value: string): boolean {
    if (this.#excluded.size > 0 && this.#excluded.has(value)) return false;
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

function conditionsOf(requirements: readonly LabelRequirement[]): KeyCondition[] {
  const byKey = new Map<string, LabelRequirement[]>();
  for (const requirement of requirements) {
    const others = byKey.get(requirement.key);
    if (others === undefined) byKey.set(requirement.key, [requirement]);
    else others.push(requirement);
  }
  return Array.from(byKey, ([key, ofKey]) => new KeyCondition(key, ofKey));
}
