/**
 * Reading `docs/fidelity.md`.
 * @module
 */

/** A name of ours. */
export interface OurName {
  /** `Name` or `Name.member`. */
  readonly name: string;
  /** The entry point that exports it. */
  readonly entry: string;
}

/** A row of the table of names. */
export interface NameRow {
  /** The package whose names the row is about. */
  readonly goPackage: string;
  /** Names of client-go. */
  readonly theirs: readonly string[];
  /** What they are here. */
  readonly ours: readonly OurName[];
  readonly verdict: string;
  readonly why: string;
}

/** A test that the page names. */
export interface NamedTest {
  readonly difference: string;
  readonly file: string;
  readonly sentence: string;
}

/** What the page says. */
export interface FidelityPage {
  readonly names: readonly NameRow[];
  /** The list of all names, by entry point. */
  readonly entries: ReadonlyMap<string, readonly string[]>;
  /** The numbers of the differences, in their order. */
  readonly differences: readonly string[];
  readonly tests: readonly NamedTest[];
}

/** Reads the page; throws where a table is not in the form that it should have. */
export function readFidelityPage(markdown: string): FidelityPage {
  const names: NameRow[] = [];
  const differences: string[] = [];
  const tests: NamedTest[] = [];
  const entries = new Map<string, readonly string[]>();
  let goPackage = "";
  let entry = "";
  for (const [index, line] of markdown.split("\n").entries()) {
    const origin = /^Of `([^`]+)`; here in `([^`]+)`\.$/.exec(line);
    if (origin !== null) [, goPackage, entry] = origin;
    const list = /^- `(@[^`]+)`: (.*)$/.exec(line);
    if (list !== null) entries.set(list[1], spans(list[2]));
    if (!line.startsWith("| ") || /^\| (client-go|-+|here|) *\|/.test(line)) continue;
    const cells = line.slice(2, line.lastIndexOf("|")).split("|").map((cell) => cell.trim());
    if (cells.length !== 4) {
      throw new Error(`line ${index + 1} has ${cells.length} cells instead of 4: ${line}`);
    }
    if (/^D[0-9]+$/.test(cells[0])) {
      differences.push(cells[0]);
      for (const [, file, sentence] of cells[3].matchAll(/`(tests\/[^`]+)`: "([^"]+)"/g)) {
        tests.push({ difference: cells[0], file, sentence });
      }
    } else {
      names.push({
        goPackage,
        theirs: spans(cells[0]),
        ours: ourNames(cells[1], entry),
        verdict: cells[2],
        why: cells[3],
      });
    }
  }
  return { names, entries, differences, tests };
}

/** The names of a cell; "of `@entry`" is about all names before it. */
function ourNames(cell: string, entry: string): OurName[] {
  const found: OurName[] = [];
  let waiting: string[] = [];
  for (const span of spans(cell)) {
    if (!span.startsWith("@")) waiting.push(span);
    else {
      for (const name of waiting) found.push({ name, entry: span });
      waiting = [];
    }
  }
  for (const name of waiting) found.push({ name, entry });
  return found;
}

function spans(cell: string): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, span]) => span);
}
