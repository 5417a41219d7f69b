/**
 * What a path of the API means.
 * @module
 */

/** A path under `/api/v1` or `/apis/GROUP/VERSION` that names a resource. */
export interface RequestPath {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** `""`: all namespaces, or a cluster-scoped resource. */
  readonly namespace: string;
  /** `""`: all objects. */
  readonly name: string;
  /** `status`, or `""`. */
  readonly subresource: string;
}

// What stands behind a namespace's name and is not a resource in it.
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(["status", "finalize"]);

/** Reads a path; `undefined` if it is none of a resource. A slash at its end is ignored. */
export function parseRequestPath(path: string): RequestPath | undefined {
  const parts = path.split("/").map(decode);
  if (parts.at(-1) === "") parts.pop();
  if (parts.includes(undefined)) return undefined;
  const [root, ...rest] = parts.slice(1) as string[];
  if (root !== "api" && root !== "apis") return undefined;
  const group = root === "api" ? "" : rest.shift();
  const version = rest.shift();
  if (group === undefined || !version || rest.length === 0 || rest.includes("")) return undefined;
  const isInNamespace = rest[0] === "namespaces" && rest.length > 2 &&
    !(rest.length === 3 && NAMESPACE_SUBRESOURCES.has(rest[2]));
  const namespace = isInNamespace ? rest[1] : "";
  const [resource, name = "", subresource = "", ...more] = isInNamespace ? rest.slice(2) : rest;
  return more.length > 0 ? undefined : { group, version, resource, namespace, name, subresource };
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined; // a percent sign that escapes nothing
  }
}
