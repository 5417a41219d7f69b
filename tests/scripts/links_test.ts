/** Links of the documents for readers: each file is there, and each heading that a link names. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { sourceFiles } from "../../scripts/lib/module_graph.ts";

const TOP = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "llms.txt"];
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

/** The targets of links and pictures, without those of other sites and those in code. */
function targets(text: string): string[] {
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```/gm, "").replaceAll(/`[^`\n]*`/g, "");
  return Array.from(prose.matchAll(/\]\(([^)\s]+)\)/g), ([, target]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** The anchors of a page's headings, as hosts of Markdown make them. */
function anchors(text: string): Set<string> {
  const prose = text.replaceAll(/^ *```[\s\S]*?^ *```/gm, "");
  return new Set(
    Array.from(
      prose.matchAll(/^#+ (.*)$/gm),
      ([, title]) =>
        title.toLowerCase().replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[^\p{L}\p{N} _-]/gu, "")
          .replaceAll(" ", "-"),
    ),
  );
}

describe("llms.txt", () => {
  const text = read("llms.txt");

  it("has a title, a summary and links, in this order", () => {
    assert.match(text, /^# @listwatch\/cache\n\n> [^]+\n\n## Start\n\n- \[/);
    assert.ok(targets(text).length >= 20);
  });

  it("names every guide", async () => {
    const named = new Set(targets(text));
    const guides = (await sourceFiles(ROOT, "docs", [".md"])).filter((path) => !NO_GUIDES.includes(path));
    assert.deepEqual(guides.filter((path) => !named.has(path)), []);
  });
});

/** Pages behind a guide: details of it, or of the project. */
const NO_GUIDES = ["docs/benchmarks.md", "docs/holdings.md", "docs/life.md"];

describe("README.md, docs/ and the other documents", () => {
  it("link to files and headings that are there", async () => {
    const pages = [
      ...TOP,
      ...await sourceFiles(ROOT, "docs", [".md"]),
      "benchmarks/RESULTS.md",
      "benchmarks/TABLES.md",
      "tests/README.md",
    ];
    const broken: string[] = [];
    for (const page of pages) {
      for (const target of targets(read(page))) {
        const [file, anchor] = target.split("#");
        const path = file === "" ? page : join(dirname(page), file);
        if (!existsSync(join(ROOT, path))) broken.push(`${page}: ${target}`);
        else if (anchor !== undefined && path.endsWith(".md") && !anchors(read(path)).has(anchor)) {
          broken.push(`${page}: ${target} (no such heading)`);
        }
      }
    }
    assert.deepEqual(broken, []);
  });
});
