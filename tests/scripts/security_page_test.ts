import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

const root = new URL("../..", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");

interface Promised {
  readonly promise: string;
  readonly tests: readonly { readonly file: string; readonly names: readonly string[] }[];
}

/** The rows of the tables of promises. */
function promises(markdown: string): Promised[] {
  const rows = markdown.slice(markdown.indexOf("## Promises")).split("\n").filter((line) =>
    line.startsWith("| ")
  );
  return rows.filter((line) => !/^\| (promise|-+) *\|/.test(line)).map((line) => {
    const [promise = "", held = ""] = line.slice(2, line.lastIndexOf("|")).split(" | ");
    const tests = [...held.matchAll(/`(tests\/[^`]+)`: ((?:"[^"]+"(?:, )?)+)/g)].map(([, file, names]) => ({
      file,
      names: [...names.matchAll(/"([^"]+)"/g)].map(([, name]) => name),
    }));
    return { promise: promise.trim(), tests };
  });
}

/** The titles of a file's tests, as they are read; what a template inserts is `...`. */
function titlesOf(source: string): Set<string> {
  const calls = source.matchAll(/\b(?:describe|it|test|step)\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1/g);
  return new Set(
    Array.from(
      calls,
      ([, , title]) => title.replaceAll(/\\(.)/g, "$1").replaceAll(/(?:\$\{[^}]*\})+/g, "..."),
    ),
  );
}

describe("SECURITY.md", () => {
  const rows = promises(read("SECURITY.md"));

  it("has promises against every hostile party", () => {
    const titles = [...read("SECURITY.md").matchAll(/^### Against (.*)$/gm)].map(([, who]) => who);
    assert.deepEqual(titles, [
      "a reader",
      "a page in a browser",
      "the API server's content",
      "the upstream",
      "a plugin",
    ]);
    assert.ok(rows.length >= 30, `${rows.length} promises`);
  });

  for (const { promise, tests } of rows) {
    it(`names tests that are there: ${promise}`, () => {
      assert.ok(tests.length > 0, "it names no test");
      for (const { file, names } of tests) {
        const titles = titlesOf(read(file));
        for (const name of names) assert.ok(titles.has(name), `${file} has no test ${JSON.stringify(name)}`);
      }
    });
  }
});
