/** Finds the known names that are nearest to a mistyped one. */

/**
 * The known names that are similar to `name`: few letters differ, or one contains the other. Best first, at
 * most `limit` (3 by default). Costs |name| x |known name| per known name.
 */
export function nearNames(name: string, known: Iterable<string>, limit: number = 3): string[] {
  const wanted = name.toLowerCase();
  const found: { readonly name: string; readonly distance: number }[] = [];
  for (const candidate of new Set(known)) {
    const lower = candidate.toLowerCase();
    const allowed = Math.max(1, Math.floor(Math.min(wanted.length, lower.length) / 3));
    let distance = editDistance(wanted, lower);
    if (distance > allowed) {
      const related = wanted.length >= 3 &&
        (lower.includes(wanted) || (lower.length >= 4 && wanted.includes(lower)));
      if (!related) continue;
      distance = allowed + 1;
    }
    found.push({ name: candidate, distance });
  }
  found.sort((a, b) =>
    a.distance - b.distance || a.name.length - b.name.length || (a.name < b.name ? -1 : 1)
  );
  return found.slice(0, limit).map((candidate) => candidate.name);
}

/**
 * The number of insertions, deletions, replacements and swaps of neighbours (Damerau-Levenshtein distance).
 */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last: number[] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(row[j - 1] + 1, last[j] + 1, last[j - 1] + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
      }
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length];
}
