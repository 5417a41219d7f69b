import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { withFigures } from "../../scripts/lib/readme_figures.ts";

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), "utf8");

describe("README.md", () => {
  it("has the figures of benchmarks/TABLES.md: deno task readme writes them", async () => {
    const readme = await read("README.md");
    assert.equal(withFigures(readme, await read("benchmarks/TABLES.md")), readme);
  });

  it("has at most 1,200 words", async () => {
    const words = (await read("README.md")).match(/\S*\w\S*/g) ?? [];
    assert.ok(words.length <= 1_200, `${words.length}`);
  });

  it("fails where the results have no such figure", async () => {
    const readme = await read("README.md");
    assert.throws(() => withFigures(readme, "# Results\n"), /no section comparison-20k/);
    assert.throws(() => withFigures("# Readme\n", readme), /no lines <!-- begin figures -->/);
  });
});
