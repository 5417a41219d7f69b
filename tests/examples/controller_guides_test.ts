/**
 * The programs of the guides about controllers: those of `examples/`, which run in
 * examples_test.ts, and what a guide says that one prints.
 * @module
 */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), "utf8");

/** The code blocks of a page of one language. */
const blocks = (page: string, language: string) =>
  Array.from(page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms")), ([, text]) => text);

/** A file without the comments at its start. */
const body = (file: string) => file.replace(/^(\/\/.*\n|\n)*/, "");

describe("docs/controllers.md and docs/test_a_controller.md", () => {
  it("show the files of examples/ as they are", async () => {
    const guides = [await read("docs/controllers.md"), await read("docs/test_a_controller.md")];
    const shown = guides.flatMap((guide) => blocks(guide, "ts ignore"));
    assert.equal(shown.length, 3);
    for (const block of shown) {
      const [first] = block.split("\n");
      const path = /^\/\/ (examples\/\w+\.ts)$/.exec(first)?.[1];
      assert.ok(path !== undefined, `a block without the name of its file: ${first}`);
      assert.equal(block.slice(first.length + 1), body(await read(path)), path);
    }
  });

  it("show what their programs print", async () => {
    const guide = await read("docs/test_a_controller.md");
    const [program] = blocks(guide, "ts");
    const [expected] = blocks(guide, "text");
    const { log } = console;
    const lines: string[] = [];
    console.log = (...values: unknown[]) => void lines.push(values.join(" "));
    try {
      await import(`data:text/typescript,${encodeURIComponent(resolved(program))}`);
    } finally {
      console.log = log;
    }
    assert.equal(lines.join("\n"), expected.trimEnd());
  });
});

/** A program whose imports are found from anywhere. */
function resolved(program: string): string {
  return program.replace(
    /from "(@listwatch\/cache\/\w+)"/g,
    (_, name) => `from "${import.meta.resolve(name)}"`,
  );
}
