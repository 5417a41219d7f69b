/**
 * What every gate script shares: a violation with its place, and one way to print a list of them.
 *
 * @module
 */

import { fileURLToPath } from "node:url";

/** The root folder of the project, with a slash at its end. */
export const ROOT: string = fileURLToPath(new URL("../..", import.meta.url));

/** One broken rule: where, which rule, and what to do. */
export interface Violation {
  /** Path relative to the project's root. */
  path: string;
  /** 1-based. */
  line: number;
  /** Short name of the rule, for a search. */
  rule: string;
  message: string;
}

/** Sorts by place and writes one line per violation; returns the exit code. */
export function reportViolations(gate: string, violations: Violation[], checked: string): number {
  const sorted = [...violations].sort((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
  for (const { path, line, rule, message } of sorted) {
    console.error(`${path}:${line}: [${rule}] ${message}`);
  }
  if (sorted.length === 0) {
    console.log(`${gate}: ${checked}, no violations`);
    return 0;
  }
  console.error(`${gate}: ${sorted.length} violation${sorted.length === 1 ? "" : "s"} (${checked})`);
  return 1;
}
