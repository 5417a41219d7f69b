/** The values at the paths that the parameters of screens name. */

import { EACH, type FieldPathSegment } from "../text/field_path.ts";

/** The elements of an array of which one member has one value: `[type=Ready]` in a path. */
export class ElementMatch {
  readonly member: string;
  readonly value: string;

  constructor(member: string, value: string) {
    this.member = member;
    this.value = value;
  }

  matches(element: unknown): boolean {
    return typeof element === "object" && element !== null && Object.hasOwn(element, this.member) &&
      (element as Readonly<Record<string, unknown>>)[this.member] === this.value;
  }
}

/** One step of a path. */
export type ScreenSegment = FieldPathSegment | ElementMatch;

/** Whether one of the values at a path, an object or an array too, passes a test. */
export function someValue(
  value: unknown,
  segments: readonly ScreenSegment[],
  test: (value: unknown) => boolean,
  from = 0,
): boolean {
  for (let i = from; i < segments.length; i++) {
    const segment = segments[i];
    if (typeof segment !== "string") {
      if (!Array.isArray(value)) return false;
      for (const element of value) {
        if (segment !== EACH && !segment.matches(element)) continue;
        if (someValue(element, segments, test, i + 1)) return true;
      }
      return false;
    }
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    if (!Object.hasOwn(value, segment)) return false;
    value = (value as Readonly<Record<string, unknown>>)[segment];
  }
  return test(value);
}

/**
 * What is cut out of an object for paths: each of elements, as they are, and none that is below another one,
 * which has it.
 */
export function cutPaths(
  paths: readonly { readonly segments: readonly ScreenSegment[] }[],
): FieldPathSegment[][] {
  const whole = new Map<string, FieldPathSegment[]>();
  const add = (path: FieldPathSegment[]) => {
    // The elements of an array are the array.
    while (path.at(-1) === EACH) path.pop();
    whole.set(JSON.stringify(path.map((segment) => segment === EACH ? [] : segment)), path);
  };
  for (const { segments } of paths) {
    const path: FieldPathSegment[] = [];
    for (const segment of segments) {
      if (segment instanceof ElementMatch) add([...path, EACH, segment.member]);
      path.push(segment instanceof ElementMatch ? EACH : segment);
    }
    add(path);
  }
  const all = [...whole.values()];
  return all.filter((path) =>
    !all.some((other) => other.length < path.length && other.every((segment, i) => segment === path[i]))
  );
}
