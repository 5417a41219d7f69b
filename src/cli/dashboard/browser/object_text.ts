/** The text of an object: YAML with its keys colored, and the lines marked that are new. */

import { make } from "./dom.ts";
import { visible } from "./texts.ts";

/** Longer texts are shown without colors. */
const MAX_MARKED_LINES = 5_000;

/**
 * Shows a text.
 * @param before The lines of the text before, if it was of the same object.
 * @returns The lines that are shown.
 */
export function showText(
  pre: HTMLElement,
  text: string,
  { before, hasManagedFields }: {
    readonly before: ReadonlySet<string> | undefined;
    readonly hasManagedFields: boolean;
  },
): ReadonlySet<string> {
  const all = text.trimEnd().split("\n");
  const lines = hasManagedFields ? all : withoutManagedFields(all);
  if (lines.length > MAX_MARKED_LINES) pre.replaceChildren(visibleLines(lines));
  else {
    pre.replaceChildren(...lines.map((line) => {
      const row = make("span", before === undefined || before.has(line) ? "line" : "line changed");
      const [start, end] = keyIn(line);
      row.append(visible(line.slice(0, start)), make("span", "yaml-key", line.slice(start, end)));
      row.append(visible(line.slice(end)), "\n");
      return row;
    }));
  }
  return new Set(lines);
}

function visibleLines(lines: readonly string[]): string {
  return lines.map(visible).join("\n");
}

/** Where a line of YAML has its key, with the colon; nowhere if it has none. */
function keyIn(line: string): [start: number, end: number] {
  const start = /^[ -]*/.exec(line)?.[0].length ?? 0;
  const colon = line.indexOf(":", start);
  const isKey = /^"?[\w./-]+"?$/.test(line.slice(start, colon)) && /^(?: |$)/.test(line.slice(colon + 1));
  return colon >= 0 && isKey ? [start, colon + 1] : [0, 0];
}

/** The lines without managedFields, if they are YAML as the read API writes it. */
function withoutManagedFields(lines: readonly string[]): readonly string[] {
  const begin = lines.indexOf("  managedFields:");
  if (begin < 0) return lines;
  const length = lines.slice(begin + 1).findIndex((line) => !/^ {2}(?:- | )/.test(line));
  return [...lines.slice(0, begin), ...(length < 0 ? [] : lines.slice(begin + 1 + length))];
}
