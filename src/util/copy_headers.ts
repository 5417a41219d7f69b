/** Passing headers on. */

/** Sets those of the named headers that are there. */
export function copyHeaders(from: Headers, to: Headers, names: Iterable<string>): void {
  for (const name of names) {
    const value = from.get(name);
    if (value !== null) to.set(name, value);
  }
}
