/**
 * Objects that nobody can change.
 * @module
 */

/**
 * Freezes an object and everything in it, so that whoever changes it gets a `TypeError` where they do it. Returns the
 * same object. For development: `freezeObjects` of an informer runs it on everything it hands out.
 *
 * Stands where client-go has its `MutationDetector`, which compares copies once a second and panics.
 *
 * @example
 * ```ts
 * import { freezeObject } from "@listwatch/cache/informer";
 * const pod = freezeObject({ metadata: { name: "web-1", labels: { app: "web" } } });
 * try {
 *   pod.metadata.labels.app = "db";
 * } catch (error) {
 *   console.log(error instanceof TypeError); // true
 * }
 * ```
 */
export function freezeObject<T>(object: T): T {
  // What is frozen already is walked as well: it may be frozen on its surface only. A set, as there may be circles.
  const seen = new Set<unknown>();
  const rest: unknown[] = [object];
  while (rest.length > 0) {
    const value = rest.pop();
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    if (ArrayBuffer.isView(value)) continue; // cannot be frozen
    Object.freeze(value);
    for (const part of Object.values(value)) rest.push(part);
  }
  return object;
}
