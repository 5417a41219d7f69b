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
  /** The name of the functions and methods that may have the text; anywhere in the file without. */
  readonly within?: string;
  /** The text to replace; must occur exactly once. White space and the comma before a bracket say nothing. */
  readonly find: string;
  /** The new text. */
  readonly replace: string;
}

/** A defect that tests of a room notice. */
export interface SuiteMutation extends Mutation {
  /** The test file, from the root of the project. */
  readonly test: string;
}

/** The source of the mutant; `undefined` if the text to replace is not there exactly once. */
export function mutantOf(source: string, { within, find, replace }: Mutation): string | undefined {
  const notable = find.trimEnd().endsWith(",") ? /\S/g : NOTABLE;
  const wanted = condensed(find, notable).text;
  const places = within === undefined ? [[0, source.length] as const] : functionsIn(source, within);
  const found = places.flatMap(([from, to]) => {
    const { text, places } = condensed(source.slice(from, to), notable);
    const ranges: { readonly start: number; readonly end: number }[] = [];
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
      ranges.push({ start: from + places[at], end: from + places[at + wanted.length - 1] + 1 });
    }
    return ranges;
  });
  if (found.length !== 1) return undefined;
  const [{ start, end }] = found;
  return source.slice(0, start) + replace + source.slice(end);
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

/**
 * The functions of a name: from their declarations to the brackets that close them, which are below their
 * beginnings.
 */
function functionsIn(source: string, name: string): (readonly [number, number])[] {
  const declaration = new RegExp(
    `^( *)(?:(?:export|static|async|override|readonly|get|set|function\\*?|const) |\\*)*${
      RegExp.escape(name)
    }(?: = |: |[(<])[^;\n]*$`,
    "gm",
  );
  return Array.from(source.matchAll(declaration), ({ 1: indentation, index }) => {
    const end = source.indexOf(`\n${indentation}}`, index);
    return [index, end < 0 ? index : end + 2 + indentation.length] as const;
  });
}
