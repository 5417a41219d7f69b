/**
 * Tables as Markdown, aligned so that they can be read in a terminal too.
 *
 * @module
 */

/** A table: the first column is text, the others are numbers aligned to the right. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(3, ...all.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) => {
    const cells = widths.map((width, column) => {
      const text = row[column] ?? "";
      return column === 0 ? text.padEnd(width) : text.padStart(width);
    });
    return `| ${cells.join(" | ")} |`;
  };
  const rule = widths.map((width, column) => column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`);
  return [line(header), `| ${rule.join(" | ")} |`, ...rows.map(line)].join("\n");
}
