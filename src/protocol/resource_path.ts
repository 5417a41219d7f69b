/**
 * Paths of resources and objects under `/api` and `/apis`.
 * @module
 */

/** A path of a resource, split into its parts. */
export interface ResourcePath {
  /** `""` for the core group. */
  readonly group: string;
  readonly version: string;
  /** `""`: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string;
  readonly resource: string;
  /** `""` for a collection. */
  readonly name: string;
  /** Such as `status`; `""` if the path has none. */
  readonly subresource: string;
  /** The whole path, decoded. */
  readonly path: string;
}

/** The decoded segments of a path, without a slash at its end; `undefined` if a percent sign escapes nothing. */
export function pathSegments(path: string): string[] | undefined {
  const segments = path.split("/").slice(1);
  if (segments.at(-1) === "") segments.pop();
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

// After the name of a namespace, these are not resources in it:
// https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/request/requestinfo.go (namespaceSubresources)
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(["status", "finalize"]);

/**
 * Reads the path of a resource, an object or a subresource; `undefined` for discovery paths and every other path.
 *
 * @param segments The segments as {@linkcode pathSegments} returns them: `["api", "v1", "pods"]`.
 */
export function parseResourcePath(segments: readonly string[]): ResourcePath | undefined {
  const [root, ...below] = segments;
  if ((root !== "api" && root !== "apis") || segments.includes("")) return undefined;
  const [group, version, ...rest] = root === "api" ? ["", ...below] : below;
  if (version === undefined || rest.length === 0) return undefined;
  const isInNamespace = rest[0] === "namespaces" && rest.length > 2 &&
    !(rest.length === 3 && NAMESPACE_SUBRESOURCES.has(rest[2]));
  const namespace = isInNamespace ? rest[1] : "";
  const [resource, name = "", subresource = "", ...more] = isInNamespace ? rest.slice(2) : rest;
  if (more.length > 0) return undefined;
  return { group, version, namespace, resource, name, subresource, path: `/${segments.join("/")}` };
}
