/** lodash's shorthands for predicates. */

/**
 * What {@linkcode InformerStore.find} takes: a function; a path (`"spec.paused"`), whose value must be
 * truthy; a path and its value (`["spec.namespace", "garden-shop"]`); or a part of the object
 * (`{ metadata: { name: "web" } }`).
 */
export type Predicate<T> =
  | ((object: T) => unknown)
  | string
  | readonly [path: string, value: unknown]
  | { readonly [member: string]: unknown };

/** The function that a predicate stands for. */
export function testOf<T>(predicate: Predicate<T>): (object: T) => unknown {
  if (typeof predicate === "function") return predicate;
  if (typeof predicate === "string") return (object) => valueAt(object, predicate);
  if (typeof predicate !== "object" || predicate === null) {
    const why = `a predicate is a function, a path, [path, value] or a part, not ${String(predicate)}`;
    throw new TypeError(`Cannot find an object: ${why}`);
  }
  if (!Array.isArray(predicate)) return (object) => contains(object, predicate);
  const [path, value] = predicate;
  return (object) => contains(valueAt(object, path), value);
}

/** The value at a path such as `metadata.uid`. */
export function valueAt(object: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, name) => memberOf(value, name), object);
}

/** Whether `value` has all that `part` has: of an array each element, in any order. */
function contains(value: unknown, part: unknown): boolean {
  if (typeof part !== "object" || part === null) return Object.is(value, part);
  if (Array.isArray(part)) {
    return Array.isArray(value) && part.every((one) => value.some((other) => contains(other, one)));
  }
  return typeof value === "object" && value !== null &&
    Object.entries(part).every(([name, one]) =>
      Object.hasOwn(value, name) && contains(memberOf(value, name), one)
    );
}

function memberOf(value: unknown, name: string): unknown {
  return (value as { readonly [name: string]: unknown } | null | undefined)?.[name];
}
