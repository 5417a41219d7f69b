/**
 * Reading `docs/fidelity.md`.
 * @module
 */

/** A row of the table of names. */
export interface NameRow {
  /** The package whose names the row is about. */
  readonly goPackage: string;
  /** Names of client-go. */
  readonly theirs: readonly string[];
  /** Names of ours, as `Name` or `Name.member`. */
  readonly ours: readonly string[];
  /** The entry point that exports them. */
  readonly entry: string;
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
  /** The numbers of the differences, in their order. */
  readonly differences: readonly string[];
  readonly tests: readonly NamedTest[];
}

/** Reads the page; throws where a table is not in the form that it should have. */
export function readFidelityPage(markdown: string): FidelityPage {
  const names: NameRow[] = [];
  const differences: string[] = [];
  const tests: NamedTest[] = [];
  let goPackage = "";
  let entry = "";
  for (const [index, line] of markdown.split("\n").entries()) {
    const origin = /^Of `([^`]+)`; here in `([^`]+)`\.$/.exec(line);
    if (origin !== null) [, goPackage, entry] = origin;
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
      const ours = spans(cells[1]);
      const other = ours.find((span) => span.startsWith("@"));
      names.push({
        goPackage,
        theirs: spans(cells[0]),
        ours: ours.filter((span) => span !== other),
        entry: other ?? entry,
        verdict: cells[2],
        why: cells[3],
      });
    }
  }
  return { names, differences, tests };
}

function spans(cell: string): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, span]) => span);
}
