/**
 * Mutants: the source with one deliberate defect.
 * @module
 */

/** One defect, as a change of the source. */
export interface Mutation {
  /** The defect. */
  readonly name: string;
  /** The file, from the root of the project. */
  readonly file: string;
  /** The function, method or constructor that has the text; anywhere in the file without. */
  readonly within?: string;
  /** The text to replace; must occur exactly once. White space and the comma before a bracket say nothing. */
  readonly find: string;
  /** The new text. */
  readonly replace: string;
}

/** The source of the mutant; `undefined` if the text to replace is not there exactly once. */
export function mutantOf(source: string, { within, find, replace }: Mutation): string | undefined {
  const place = within === undefined ? [0, source.length] as const : functionIn(source, within);
  if (place === undefined) return undefined;
  const [from, to] = place;
  const notable = find.trimEnd().endsWith(",") ? /\S/g : NOTABLE;
  const { text, places } = condensed(source.slice(from, to), notable);
  const wanted = condensed(find, notable).text;
  const at = text.indexOf(wanted);
  if (wanted === "" || at < 0 || text.includes(wanted, at + 1)) return undefined;
  const end = places[at + wanted.length - 1] + 1;
  return source.slice(0, from + places[at]) + replace + source.slice(from + end);
}

/** All but white space and the commas that the formatter adds. */
const NOTABLE = /,(?!\s*[)\]}])|[^\s,]/g;

/** The notable characters of a text, and where each of them was. */
function condensed(
  source: string,
  notable: RegExp,
): { readonly text: string; readonly places: readonly number[] } {
  const places: number[] = [];
  let text = "";
  for (const { 0: character, index } of source.matchAll(notable)) {
    places.push(index);
    text += character;
  }
  return { text, places };
}

/** From the declaration of a function to the bracket that closes it, which the formatter puts below its beginning. */
function functionIn(source: string, name: string): readonly [number, number] | undefined {
  const declaration = new RegExp(
    `^( *)(?:(?:export|static|async|override|readonly|get|set|function\\*?|const) |\\*)*${
      RegExp.escape(name)
    }(?: = |: |[(<])`,
    "gm",
  );
  const found = Array.from(source.matchAll(declaration));
  if (found.length !== 1) return undefined;
  const [{ 1: indentation, index }] = found;
  const end = source.indexOf(`\n${indentation}}`, index);
  return end < 0 ? undefined : [index, end + 2 + indentation.length];
}
