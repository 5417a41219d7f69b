/**
 * Label selectors, prepared for many objects.
 * @module
 */

import { type LabelRequirement, type LabelSet, parseInt64 } from "./selector_requirement.ts";

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
  const required = conditions.filter(({ mustExist }) => mustExist).length;
  if (conditions.length === 0) return () => true;
  if (conditions.length === 1) {
    const [condition] = conditions;
    return (labels) => isFulfilled(condition, labels);
  }
  if (conditions.length <= FEW_KEYS) {
    return (labels) => {
      for (let i = 0; i < conditions.length; i++) if (!isFulfilled(conditions[i], labels)) return false;
      return true;
    };
  }
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

function isFulfilled(condition: KeyCondition, labels: LabelSet | undefined): boolean {
  if (labels === undefined || labels === null) return !condition.mustExist;
  const value = labels[condition.key];
  // What is inherited (`constructor`) is no label.
  if (value === undefined || !Object.hasOwn(labels, condition.key)) return !condition.mustExist;
  return condition.allows(value);
}

/** All that is asked of the label of one key. */
class KeyCondition {
  readonly key: string;
  readonly mustExist: boolean;
  /** Whether no label can fulfil it, nor its absence. */
  readonly isImpossible: boolean;
  readonly #mustNotExist: boolean;
  /** The one value it may have, where there is just one. */
  readonly #only: string | undefined;
  /** The values it may have; `undefined`: any. */
  readonly #allowed: ReadonlySet<string> | undefined;
  readonly #excluded: ReadonlySet<string> | undefined;
  readonly #above: bigint | undefined;
  readonly #below: bigint | undefined;

  constructor(key: string, requirements: readonly LabelRequirement[]) {
    this.key = key;
    let allowed: Set<string> | undefined;
    const excluded = new Set<string>();
    let mustExist = false;
    let mustNotExist = false;
    for (const { operator, values } of requirements) {
      if (operator === "!") mustNotExist = true;
      else if (operator !== "!=" && operator !== "notin") mustExist = true;
      if (operator === "!=" || operator === "notin") { for (const value of values) excluded.add(value); }
      else if (operator === "=" || operator === "==" || operator === "in") {
        const known: Set<string> | undefined = allowed;
        allowed = new Set(known === undefined ? values : values.filter((value) => known.has(value)));
      } else if (operator === "gt" || operator === "lt") {
        const bound = parseInt64(values[0]);
        if (bound === undefined) continue; // a requirement is not made with another
        if (operator === "gt") this.#above = max(this.#above, bound);
        else this.#below = -max(this.#below === undefined ? undefined : -this.#below, -bound);
      }
    }
    this.mustExist = mustExist;
    this.#mustNotExist = mustNotExist;
    this.#excluded = excluded.size === 0 ? undefined : excluded;
    if (allowed !== undefined) {
      // Then nothing else needs to be asked of a value.
      allowed = new Set(Array.from(allowed).filter((value) => this.#isAllowed(value)));
      if (allowed.size === 1) [this.#only] = allowed;
    }
    this.#allowed = allowed;
    this.isImpossible = mustExist && (mustNotExist || allowed?.size === 0);
  }

  /** Whether a label may have this value. */
  allows(value: string): boolean {
    if (this.#only !== undefined) return value === this.#only;
    if (this.#allowed !== undefined) return this.#allowed.has(value);
    return !this.#mustNotExist && this.#isAllowed(value);
  }

  #isAllowed(value: string): boolean {
    if (this.#excluded?.has(value)) return false;
    if (this.#above === undefined && this.#below === undefined) return true;
    const number = parseInt64(value);
    return number !== undefined && (this.#above === undefined || number > this.#above) &&
      (this.#below === undefined || number < this.#below);
  }
}

function max(a: bigint | undefined, b: bigint): bigint {
  return a === undefined || b > a ? b : a;
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
