/** Conditional requests. */

/** Whether an `If-None-Match` has a tag; weak tags match strong ones. */
export function matchesTag(ifNoneMatch: string | null | undefined, tag: string): boolean {
  const [opaque] = opaqueTags(tag);
  return opaqueTags(ifNoneMatch).some((given) => given === "*" || given === opaque);
}

/** What is between the quotes of the tags of an `If-None-Match`; `*` for any. What is no tag is left out. */
export function opaqueTags(ifNoneMatch: string | null | undefined): string[] {
  const tags: string[] = [];
  for (const each of ifNoneMatch?.split(",") ?? []) {
    const [, opaque] = /^(?:W\/)?"([^"]*)"$/.exec(each.trim()) ?? [];
    // `"*"` is a tag.
    if (each.trim() === "*") tags.push("*");
    else if (opaque !== undefined && opaque !== "*") tags.push(opaque);
  }
  return tags;
}
