/**
 * What a path of the Kubernetes API names.
 * @module
 */

/** A resource's path, taken apart. */
export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  /** Empty where the path has none. */
  readonly namespace: string;
  readonly resource: string;
  /** Empty for a collection. */
  readonly name: string;
  /** The whole of it. */
  readonly path: string;
}

/**
 * Takes a resource's path apart; `undefined` for discovery paths, subresources and anything else.
 *
 * @param segments The decoded segments after the first slash: `["api", "v1", "pods"]`.
 */
export function parseResourcePath(segments: readonly string[]): ResourcePath | undefined {
  const isCore = segments[0] === "api";
  const [group, version, ...rest] = isCore ? ["", ...segments.slice(1)] : segments.slice(1);
  if (version === undefined || segments.includes("")) return undefined;
  // "namespaces/NAME" alone is the namespace itself.
  const isNamespaced = rest[0] === "namespaces" && rest.length > 2;
  const [resource, name = "", ...more] = isNamespaced ? rest.slice(2) : rest;
  if (resource === undefined || more.length > 0) return undefined;
  const namespace = isNamespaced ? rest[1] : "";
  return { group, version, namespace, resource, name, path: `/${segments.join("/")}` };
}
