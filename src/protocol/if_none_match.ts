/**
 * Conditional requests.
 * @module
 */

/** Whether an `If-None-Match` has a tag; weak tags match strong ones. */
export function matchesTag(ifNoneMatch: string | null | undefined, tag: string): boolean {
  if (!ifNoneMatch) return false;
  const opaque = withoutWeakness(tag);
  return ifNoneMatch.split(",").some((each) =>
    each.trim() === "*" || withoutWeakness(each.trim()) === opaque
  );
}

function withoutWeakness(tag: string): string {
  return tag.startsWith("W/") ? tag.slice(2) : tag;
}
