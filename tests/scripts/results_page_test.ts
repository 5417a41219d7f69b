import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { barChart } from "../../scripts/lib/bar_chart.ts";
import { ROOT } from "../../scripts/lib/gate.ts";
import { resultsFiles } from "../../scripts/lib/results_page.ts";

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const tables = read("benchmarks/TABLES.md");
/** The text without the spaces that the formatter puts into tables, and without its line breaks. */
const plain = (text: string) => text.replaceAll(/-{3,}:?/g, "---").replaceAll(/\s+/g, " ");

describe("resultsFiles", () => {
  for (const [path, text] of Object.entries(resultsFiles(tables))) {
    it(`makes ${path} of the tables: deno task readme writes it`, () => {
      assert.equal(plain(text), plain(read(path)));
    });
  }

  it("has five lines, three pictures, and a command for each section", () => {
    const page = resultsFiles(tables)["benchmarks/RESULTS.md"];
    assert.equal(page.match(/^- /gm)?.length, 5);
    assert.equal(page.match(/^!\[/gm)?.length, 3);
    assert.equal(page.match(/\(TABLES\.md#/g)?.length, tables.match(/^<!-- begin /gm)?.length);
  });

  it("names each goal that was missed, and no other", () => {
    const goal = "| pods | 1.2 (≤ 1) missed | 0.5 (≤ 1) met | 3 (≥ 4) |\n";
    const text = tables.replace("<!-- end growth -->", `| a | b | c | d |\n| - | - | - | - |\n${goal}\n$&`);
    const page = resultsFiles(text)["benchmarks/RESULTS.md"];
    assert.ok(page.includes("| Cost per object | pods: b | 1.2 (≤ 1) |"));
    assert.ok(page.includes("| Cost per object | pods: d | 3 (≥ 4) |"));
    assert.ok(!page.includes("| pods: c |"));
  });

  it("fails where the tables have no such figure", () => {
    assert.throws(() => resultsFiles("# Tables\n"), /no "peak RSS, MB" in comparison-20k/);
  });
});

describe("barChart", () => {
  it("draws the greatest value as the longest bar, and says where there is none", () => {
    const picture = barChart("A & B", [{ label: "a", ours: true }, { label: "b", ours: false }, {
      label: "c",
      ours: false,
    }], [{ title: "t", note: "n", values: ["1,000", "500", undefined] }]);
    const widths = Array.from(
      picture.matchAll(/<rect x="\d+" y="\d+" width="(\d+)"/g),
      ([, width]) => Number(width),
    );
    assert.equal(widths.length, 2);
    assert.equal(widths[0], 2 * widths[1]);
    assert.match(picture, /A &amp; B/);
    assert.match(picture, />not measured</);
  });
});
