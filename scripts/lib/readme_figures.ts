/** README's figures beside client-node: a few of those in benchmarks/TABLES.md. */

const SECTION = "comparison-20k";
const OURS = "@listwatch/cache, Node, no managedFields";
const THEIRS = "@kubernetes/client-node, Node";

/** A line of README: what it says, the column of the results, the unit. */
const LINES = [
  ["time to sync", "sync, s", " s"],
  ["events per second", "events/s", ""],
  ["peak memory", "peak RSS, MB", " MB"],
  ["heap per pod", "heap/object, KB", " KB"],
  ["longest block of the event loop", "longest task, ms", " ms"],
] as const;

const BEGIN = "<!-- begin figures -->";
const END = "<!-- end figures -->";

/**
 * README with the figures of the results.
 *
 * @throws {Error} The results have no such run, or README has no place for them.
 */
export function withFigures(readme: string, results: string): string {
  const from = readme.indexOf(BEGIN);
  const to = readme.indexOf(END);
  if (from < 0 || to < from) throw new Error(`README.md has no lines ${BEGIN} and ${END}`);
  return `${readme.slice(0, from)}${BEGIN}\n\n${figures(results)}\n\n${readme.slice(to)}`;
}

function figures(results: string): string {
  const section = between(results, `<!-- begin ${SECTION} -->`, `<!-- end ${SECTION} -->`);
  const rows = section.split("\n").filter((line) => line.startsWith("|")).map(cells);
  const [head] = rows;
  const row = (label: string) => rows.find(([first]) => first === label) ?? [];
  const value = (label: string, column: string) => {
    const found = row(label)[head.indexOf(column)];
    if (found === undefined) {
      throw new Error(`benchmarks/TABLES.md has no ${column} of ${label}: run deno task bench`);
    }
    return found;
  };
  const lines = LINES.map((
    [text, column, unit],
  ) => [text, value(OURS, column) + unit, value(THEIRS, column) + unit]);
  const table = [["20,000 pods, 50,000 events, Node", "this library", "client-node"], ...lines];
  const widths = [0, 1, 2].map((at) => Math.max(...table.map((line) => line[at].length)));
  const line = (texts: readonly string[]) =>
    `| ${
      texts.map((text, at) => at === 0 ? text.padEnd(widths[at]) : text.padStart(widths[at])).join(" | ")
    } |`;
  const rule = `| ${"-".repeat(widths[0])} | ${"-".repeat(widths[1] - 1)}: | ${"-".repeat(widths[2] - 1)}: |`;
  return [line(table[0]), rule, ...table.slice(1).map(line)].join("\n");
}

function between(text: string, begin: string, end: string): string {
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) {
    throw new Error(`benchmarks/TABLES.md has no section ${SECTION}: run deno task bench`);
  }
  return text.slice(from, to);
}

function cells(line: string): string[] {
  return line.split("|").slice(1, -1).map((cell) => cell.trim());
}
