/** Paths of objects in the read API. */

export function objectPath(
  { path, namespace, name }: {
    readonly path: string;
    readonly namespace?: string | undefined;
    readonly name: string;
  },
): string {
  const slash = path.lastIndexOf("/");
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${path.slice(0, slash)}${scope}${path.slice(slash)}/${encodeURIComponent(name)}`;
}

/** The path in the fragment of a URL, if it is one of an object of the read API; "" otherwise. */
export function pathOfFragment(hash: string): string {
  const path = hash.slice(1);
  const segments = path.split("/").slice(1);
  const isPlain = segments.every((segment) => !["", ".", ".."].includes(segment));
  return /^\/apis?\/[^?#\s]+$/.test(path) && segments.length > 2 && isPlain ? path : "";
}

/** The object that a path names: decoded, where that is possible. */
export function objectOfPath(path: string): {
  readonly name: string;
  readonly resource: string;
  readonly namespace: string | undefined;
} {
  const segments = path.split("/").map(decoded);
  const [scope, namespace, resource, name] = segments.slice(-4);
  return { name, resource, namespace: scope === "namespaces" ? namespace : undefined };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
