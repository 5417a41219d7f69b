/**
 * What the suites share: the form of a case, running its steps, and comparing what
 * came out with what is expected. Nothing here or in the suites needs a runtime's own
 * API, so that every runtime can run every case.
 * @module
 */

/** A recorded case. */
export interface Case {
  readonly name: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly steps: readonly Step[];
}

/** One step of a case; its arguments are read with {@linkcode argument}. */
export interface Step {
  readonly op: string;
  readonly expect: Readonly<Record<string, unknown>>;
}

/** A file of cases. */
export interface CaseFile {
  readonly suite: string;
  /** The source of the recording. */
  readonly source?: string;
  readonly cases: readonly Case[];
}

/** What a step came to: properties by the names that `expect` uses; a missing `error` means `null`. */
export type Outcome = Record<string, unknown>;

/** Compares one property of a step; the default is {@linkcode isSame}. */
export type Compare = (property: string, expected: unknown, actual: unknown) => boolean;

/** Options of {@linkcode runSteps}. */
export interface RunStepsOptions {
  /** For properties that are not compared by deep equality. */
  readonly compare?: Compare;
  /** Brings what has no order into one; called with what is expected and with what came out. */
  readonly normalise?: (step: Step, property: string, value: unknown) => unknown;
  /** Properties that every step of the suite may expect, read after the step. */
  readonly after?: () => Outcome;
  /** What a step that threw has besides `error`; `{ value: null }` by default. */
  readonly failed?: Outcome;
}

/** A step did not do what was recorded. */
export class ConformanceError extends Error {
  constructor(caze: Case, index: number, detail: string, options?: ErrorOptions) {
    const { expect: _, ...call } = caze.steps[index];
    super(`${caze.name}, step ${index} ${JSON.stringify(call)}: ${detail}`, options);
    this.name = "ConformanceError";
  }
}

/**
 * Performs the steps of a case in order and compares each outcome with its expectation.
 *
 * `perform` returns the outcome, or throws an error with a
 * string `code`, which becomes the outcome's `error`.
 *
 * @throws {ConformanceError} At the first property that differs.
 */
export async function runSteps(
  caze: Case,
  perform: (step: Step) => Outcome | void | Promise<Outcome | void>,
  options: RunStepsOptions = {},
): Promise<void> {
  const {
    compare = (_property, expected, actual) => isSame(expected, actual),
    normalise = (_step, _property, value) => value,
    after,
    failed = { value: null },
  } = options;
  for (const [index, step] of caze.steps.entries()) {
    let outcome: Outcome;
    try {
      // deno-lint-ignore no-await-in-loop -- the steps of a case depend on each other
      outcome = { error: null, ...await perform(step) };
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) throw new ConformanceError(caze, index, `threw ${error}`, { cause: error });
      outcome = { ...failed, error: code };
    }
    Object.assign(outcome, after?.());
    for (const [property, recorded] of Object.entries(step.expect)) {
      if (!(property in outcome)) {
        throw new ConformanceError(
          caze,
          index,
          `expects ${JSON.stringify(property)}, which the runner does not know`,
        );
      }
      const expected = normalise(step, property, recorded);
      const actual = normalise(step, property, outcome[property]);
      if (!compare(property, expected, actual)) {
        throw new ConformanceError(
          caze,
          index,
          `${property}: expected ${canonical(expected)}, got ${canonical(actual)}`,
        );
      }
    }
  }
}

/** Deep equality of JSON values; the order of an object's properties does not matter. */
export function isSame(expected: unknown, actual: unknown): boolean {
  return canonical(expected) === canonical(actual);
}

/** JSON text with sorted properties; what JSON would drop or change is written as what it is. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const record = value as Record<string, unknown>;
    return `{${
      Object.keys(record).sort().map((key) => `${JSON.stringify(key)}:${canonical(record[key])}`).join(",")
    }}`;
  }
  if (value === undefined || (typeof value === "number" && !Number.isFinite(value))) return String(value);
  return JSON.stringify(value);
}

/** Whether two delays in milliseconds are the same but for rounding. */
export function isSameDelay(expected: unknown, actual: unknown): boolean {
  return typeof expected === "number" && typeof actual === "number" && Math.abs(expected - actual) <= 0.01;
}

/** An argument of a step, or an option of a case. */
export function argument<T>(from: Step | Case["options"], name: string): T {
  if (!Object.hasOwn(from, name)) throw new Error(`${JSON.stringify(from)} has no ${JSON.stringify(name)}`);
  return (from as Record<string, unknown>)[name] as T;
}

/** Says that a suite's runner does not know an op. */
export function unknownOp(step: Step): never {
  throw new Error(`unknown op ${JSON.stringify(step.op)}`);
}

/** A thrown value's stable code, if it has one. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}
