/** Bars beside each other, as SVG: one panel for each quantity, one row for each contestant. */

/** One quantity. */
export interface Panel {
  readonly title: string;
  /** A note, such as "lower is better". */
  readonly note: string;
  /** As the table has it: `25,793`; `undefined` where it has none. */
  readonly values: readonly (string | undefined)[];
}

const LABEL = 190;
const PANEL = 230;
const VALUE = 62;
const ROW = 24;
const TOP = 76;

/** A picture; `ours` are the rows in the stronger color. */
export function barChart(
  title: string,
  rows: readonly { readonly label: string; readonly ours: boolean }[],
  panels: readonly Panel[],
): string {
  const width = LABEL + panels.length * PANEL + 10;
  const height = TOP + rows.length * ROW + 14;
  const text = (x: number, y: number, content: string, more = "") =>
    `<text x="${x}" y="${y}"${more}>${escaped(content)}</text>`;
  const parts = [text(10, 24, title, ' font-size="16" font-weight="bold"')];
  rows.forEach(({ label, ours }, row) => {
    parts.push(text(10, TOP + row * ROW + 15, label, ours ? ' font-weight="bold"' : ""));
  });
  panels.forEach(({ title, note, values }, column) => {
    const x = LABEL + column * PANEL;
    parts.push(text(x, 48, title, ' font-weight="bold"'), text(x, 64, note, ' fill="#666"'));
    const most = Math.max(...values.map((value) => value === undefined ? 0 : numberOf(value)));
    values.forEach((value, row) => {
      const y = TOP + row * ROW;
      if (value === undefined) {
        parts.push(text(x, y + 15, "not measured", ' fill="#666"'));
        return;
      }
      const length = Math.max(1, Math.round((PANEL - VALUE - 14) * numberOf(value) / most));
      const color = rows[row].ours ? "#1f5fbf" : "#b4bcc8";
      parts.push(`<rect x="${x}" y="${y + 3}" width="${length}" height="${ROW - 8}" fill="${color}" />`);
      parts.push(text(x + length + 6, y + 15, value));
    });
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `viewBox="0 0 ${width} ${height}" role="img" font-family="sans-serif" font-size="12" fill="#1b1f24">\n` +
    `<title>${escaped(title)}</title>\n<rect width="100%" height="100%" fill="#ffffff" />\n` +
    `${parts.join("\n")}\n</svg>\n`;
}

/** The number of a cell: `1,048` is 1048. */
export function numberOf(cell: string): number {
  return Number(cell.replaceAll(",", ""));
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
