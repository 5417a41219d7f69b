/**
 * Reads the JUnit reports of `deno test`, `node --test` and `bun test` into one list of tests.
 *
 * @module
 */

/** One test that ran, or was skipped. */
export interface TestResult {
  /** As the report names it: relative, absolute, or the name of a built file. */
  file: string;
  /** Names of the suites around it, then its own. */
  name: string;
  status: "passed" | "failed" | "skipped";
  /** What a failing test said. */
  message?: string;
}

/** The runtime that wrote the report: runtimes disagree about what a suite is. */
export type JunitDialect = "deno" | "node" | "bun";

/** Depth of the suites that stand for files or for the run, not for a `describe`. */
const FILE_LEVELS: Record<JunitDialect, number> = { deno: Infinity, node: 0, bun: 1 };

/** The tests of a report: its leaves, and those tests around others that failed by themselves. */
export function parseJunit(xml: string, dialect: JunitDialect): TestResult[] {
  const results: TestResult[] = [];
  const suites: string[] = [];
  let current: TestResult | undefined;
  const finish = () => {
    if (current !== undefined) results.push(current);
    current = undefined;
  };
  // Texts and attribute values are escaped, so a `<` always starts a tag.
  for (
    const [, closing, tag, rest] of xml.matchAll(/<(\/?)(testsuite|testcase|failure|error|skipped)\b([^<]*)/g)
  ) {
    const end = tagEnd(rest);
    const attributes = rest.slice(0, end);
    const isEmpty = attributes.endsWith("/");
    if (tag === "testsuite") {
      if (closing) suites.pop();
      else if (!isEmpty) suites.push(attribute(attributes, "name"));
    } else if (tag === "testcase") {
      if (closing) {
        finish();
        continue;
      }
      const around = suites.slice(FILE_LEVELS[dialect]);
      current = {
        file: attribute(attributes, dialect === "deno" ? "classname" : "file"),
        name: [...around, attribute(attributes, "name")].join(" > "),
        status: "passed",
      };
      if (isEmpty) finish();
    } else if (!closing && current !== undefined) {
      current.status = tag === "skipped" ? "skipped" : "failed";
      const message = unescape(rest.slice(end + 1)).trim() || attribute(attributes, "message");
      if (tag !== "skipped") current.message = message;
    }
  }
  return dialect === "deno" ? leaves(results) : results;
}

/**
 * Deno reports a `describe` as a test beside its steps, and the steps as if they were in a file of Deno's
 * own: only what is a test for `node:test` counts, in the file of the test that it is a step of.
 */
function leaves(results: TestResult[]): TestResult[] {
  const fileOf = new Map<string, string>();
  const parents = new Set<string>();
  const parentsOfFailures = new Set<string>();
  for (const { name, file, status } of results) {
    if (!file.startsWith("ext:")) fileOf.set(name, file);
    for (const parent of parentsOf(name)) {
      parents.add(parent);
      if (status === "failed") parentsOfFailures.add(parent);
    }
  }
  return results
    .filter(({ name, status }) => !parents.has(name) || (status === "failed" && !parentsOfFailures.has(name)))
    .map((result) => {
      const parent = parentsOf(result.name).find((name) => fileOf.has(name));
      return parent === undefined ? result : { ...result, file: fileOf.get(parent) ?? result.file };
    });
}

/** `a > b > c`: `a`, `a > b`. */
function parentsOf(name: string): string[] {
  const found: string[] = [];
  for (let at = name.indexOf(" > "); at !== -1; at = name.indexOf(" > ", at + 1)) {
    found.push(name.slice(0, at));
  }
  return found;
}

/** Where a tag's `>` is: Node does not escape it inside of attribute values. */
function tagEnd(rest: string): number {
  let isQuoted = false;
  for (let at = 0; at < rest.length; at++) {
    if (rest[at] === '"') isQuoted = !isQuoted;
    else if (rest[at] === ">" && !isQuoted) return at;
  }
  return rest.length;
}

function attribute(attributes: string, name: string): string {
  return unescape(new RegExp(`\\s${name}="([^"]*)"`).exec(attributes)?.[1] ?? "");
}

const ENTITIES: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unescape(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (decimal) return String.fromCodePoint(Number(decimal));
    if (hex) return String.fromCodePoint(parseInt(hex, 16));
    return ENTITIES[name] ?? whole;
  });
}
