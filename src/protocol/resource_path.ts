/** Paths of resources and objects under `/api` and `/apis`. */

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
  /** Whether it is one of the old paths of watches, such as `/api/v1/watch/pods`. */
  readonly isWatch: boolean;
  /** The whole path, decoded. */
  readonly path: string;
}

/** The segments of a path, without slashes at its end; `undefined` if a percent sign escapes nothing. */
export function pathSegments(path: string): string[] | undefined {
  const segments = decodedPath(path)?.split("/").slice(1);
  if (segments === undefined) return undefined;
  while (segments.at(-1) === "") segments.pop();
  return segments;
}

/** Decodes a path; bytes that are no UTF-8 become U+FFFD. `undefined` if a percent sign escapes nothing. */
export function decodedPath(text: string): string | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  if (!text.includes("%")) return text;
  const bytes: number[] = [];
  for (const [, hex, rest] of text.matchAll(/%(..)|([^%]+)/gs)) {
    if (hex !== undefined) bytes.push(parseInt(hex, 16));
    else bytes.push(...new TextEncoder().encode(rest));
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}

// After the name of a namespace, these are not resources in it:
// https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/request/requestinfo.go
// (namespaceSubresources)
const NAMESPACE_SUBRESOURCES: ReadonlySet<string> = new Set(["status", "finalize"]);

/** Reads the path of a resource, an object or a subresource; `undefined` for every other path. */
export function parseResourcePath(segments: readonly string[]): ResourcePath | undefined {
  const [root, ...below] = segments;
  if (root !== "api" && root !== "apis") return undefined;
  const [group, version, ...all] = root === "api" ? ["", ...below] : below;
  const isWatch = all[0] === "watch" && all.length > 1;
  const rest = isWatch ? all.slice(1) : all;
  if (!version || (root === "apis" && !group) || rest.length === 0) return undefined;
  const isInNamespace = rest[0] === "namespaces" && rest.length > 2 &&
    !(rest.length === 3 && NAMESPACE_SUBRESOURCES.has(rest[2]));
  const namespace = isInNamespace ? rest[1] : "";
  const own = isInNamespace ? rest.slice(2) : rest;
  const [resource, name = "", subresource = "", ...more] = own;
  // Without a name, a namespace may be empty: then it is all of them.
  const hasGap = own.includes("") || (isInNamespace && namespace === "" && name !== "");
  if (hasGap || more.length > 0 || (isWatch && subresource !== "")) return undefined;
  return { group, version, namespace, resource, name, subresource, isWatch, path: `/${segments.join("/")}` };
}
