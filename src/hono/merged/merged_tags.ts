/**
 * `ETag`s of merged lists: made of those of the shards.
 * @module
 */

// A header that is longer costs more than it saves.
const LONGEST_TAG = 4_096;

/** The tag of an answer that is made of the answers with these tags; `undefined` if one has none. */
export function mergedTag(tags: readonly (string | null)[], form: string): string | undefined {
  if (tags.includes(null)) return undefined;
  const text = JSON.stringify([form, ...tags]);
  // deno-lint-ignore no-control-regex
  if (/[^\x00-\x7f]/.test(text)) return undefined;
  const tag = `W/"merged-${btoa(text)}"`;
  return tag.length > LONGEST_TAG ? undefined : tag;
}

/** The tags of the shards that a reader has; `undefined` if it has none of this form. */
export function tagsOf(
  ifNoneMatch: string | null,
  { form, count }: { readonly form: string; readonly count: number },
): readonly string[] | undefined {
  const [, text] = /"merged-([A-Za-z0-9+/=]+)"/.exec((ifNoneMatch ?? "").slice(0, 2 * LONGEST_TAG)) ?? [];
  if (text === undefined) return undefined;
  try {
    const [knownForm, ...tags]: unknown[] = JSON.parse(atob(text));
    const isOurs = knownForm === form && tags.length === count && tags.every((tag) => isTag(tag));
    return isOurs ? tags as string[] : undefined;
  } catch {
    return undefined;
  }
}

function isTag(tag: unknown): tag is string {
  return typeof tag === "string" && /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag);
}
