/** The place of the page: the fragment of its URL, which is a path of the read API. */

import type { ResourceState } from "../dashboard_message.ts";

export type RoutedResource = Pick<ResourceState, "name" | "path" | "namespaced">;

/** The objects of a resource, of one namespace or of all. */
export interface TableRoute<R extends RoutedResource = RoutedResource> {
  readonly view: "table";
  readonly resource: R;
  readonly namespace: string | undefined;
  /** The text of the search; see `parseSearch`. */
  readonly search: string;
  /** A column, and `:desc` to turn it round; `""` for the usual order. */
  readonly sort: string;
  /** Whether the columns are shown that need much room. */
  readonly isWide: boolean;
}

export interface ObjectRoute<R extends RoutedResource = RoutedResource> {
  readonly view: "object";
  readonly resource: R;
  readonly namespace: string | undefined;
  readonly name: string;
}

export type Route<R extends RoutedResource = RoutedResource> =
  | { readonly view: "home" }
  | TableRoute<R>
  | ObjectRoute<R>;

const HOME = { view: "home" } as const;

/** The route in the fragment of a URL; the beginning for one that names nothing that is cached. */
export function parseRoute<R extends RoutedResource>(hash: string, resources: readonly R[]): Route<R> {
  const [path, query = ""] = hash.slice(1).split("?", 2);
  for (const resource of resources) {
    const found = placeIn(path, resource);
    if (found === undefined) continue;
    const { namespace, name } = found;
    if (name !== undefined) return { view: "object", resource, namespace, name };
    const parameters = new URLSearchParams(query);
    return {
      view: "table",
      resource,
      namespace,
      search: parameters.get("q") ?? "",
      sort: parameters.get("sort") ?? "",
      isWide: parameters.has("wide"),
    };
  }
  return HOME;
}

/** The objects of a resource that a path names; `undefined` if it names none. */
function placeIn(
  path: string,
  { path: list, namespaced }: RoutedResource,
): { readonly namespace: string | undefined; readonly name: string | undefined } | undefined {
  const slash = list.lastIndexOf("/") + 1;
  if (!path.startsWith(list.slice(0, slash))) return undefined;
  const segments = path.slice(slash).split("/").map(decoded);
  if (!segments.every(isSegment)) return undefined;
  const isInNamespace = namespaced && segments.length > 2 && segments[0] === "namespaces";
  const namespace = isInNamespace ? segments[1] : undefined;
  const [resource, name, ...more] = isInNamespace ? segments.slice(2) : segments;
  if (resource !== list.slice(slash) || more.length > 0) return undefined;
  // An object with a namespace has it in its path.
  if (name !== undefined && namespaced !== isInNamespace) return undefined;
  return { namespace, name };
}

/** Whether a text can be a segment of a path, as names are: `.` and `..` would mean another path. */
export function isSegment(text: string | undefined): text is string {
  return text !== undefined && !["", ".", ".."].includes(text);
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

export function listPath({ path }: Pick<RoutedResource, "path">, namespace: string | undefined): string {
  if (namespace === undefined) return path;
  const slash = path.lastIndexOf("/");
  return `${path.slice(0, slash)}/namespaces/${encodeURIComponent(namespace)}${path.slice(slash)}`;
}

export function objectPath(
  resource: Pick<RoutedResource, "path">,
  { namespace, name }: { readonly namespace?: string | undefined; readonly name: string },
): string {
  return `${listPath(resource, namespace)}/${encodeURIComponent(name)}`;
}

export function objectLink(...of: Parameters<typeof objectPath>): string {
  return `#${objectPath(...of)}`;
}

export function tableLink(
  resource: Pick<RoutedResource, "path">,
  { namespace, search = "", sort = "", isWide = false }: Partial<Omit<TableRoute, "view" | "resource">> = {},
): string {
  const parameters = new URLSearchParams();
  if (search !== "") parameters.set("q", search);
  if (sort !== "") parameters.set("sort", sort);
  if (isWide) parameters.set("wide", "1");
  const query = parameters.size === 0 ? "" : `?${parameters}`;
  return `#${listPath(resource, namespace)}${query}`;
}
