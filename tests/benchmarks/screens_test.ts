import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readOptions } from "../../benchmarks/lib/options.ts";
import { buildPrograms } from "../../benchmarks/lib/programs.ts";
import { measureScreens } from "../../benchmarks/lib/screens.ts";
import { installTools } from "../../scripts/lib/tools.ts";

describe("measureScreens", () => {
  it("reads pages, fields, the page in Chromium and windows of serve while events come in", async () => {
    const tools = await installTools();
    await using programs = await buildPrograms(tools, new Set(), () => {});
    const options = readOptions(["--screens", "--sizes", "1000", "--events", "10000"]);
    const report = await measureScreens(options, tools, programs, () => {});
    const rows = report.split("\n").filter((line) => line.startsWith("| ")).map((line) =>
      line.split("|").map((cell) => cell.trim()).slice(1, -1)
    );
    for (
      const name of [
        "`spec.nodeName`",
        "whole",
        "three fields",
        "the same 50 rows",
        "50 rows of their own",
      ]
    ) {
      const row = rows.find(([first]) => first === name);
      assert.ok(parseFloat(row?.[1] ?? "") > 0, report);
    }
    if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") return;
    const figures = rows[rows.findIndex(([first]) => first === "first rows in a fresh browser, ms") + 2];
    assert.ok(figures.slice(0, 7).every((figure) => parseFloat(figure) > 0), report);
  });
});
