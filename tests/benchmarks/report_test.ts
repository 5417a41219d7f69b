import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { entrants } from "../../benchmarks/lib/contestants.ts";
import type { Measurement } from "../../benchmarks/lib/measurement.ts";
import { sizeReport, type SizeResult, targetTable } from "../../benchmarks/lib/report.ts";
import { withSection } from "../../benchmarks/lib/results_file.ts";
import { digits, median, medianOf } from "../../benchmarks/lib/statistics.ts";
import { markdownTable } from "../../benchmarks/lib/table.ts";

function result(runs: Record<string, Measurement[]>, objects = 20_000): SizeResult {
  const known = entrants("all").filter(({ id }) => id in runs);
  return {
    objects,
    events: 50_000,
    listBytes: 92_000_000,
    runs: known.map((entrant) => ({ entrant, measurements: runs[entrant.id] })),
  };
}

/** The cells of the row that begins with `label`. */
function row(table: string, label: string): string[] {
  const line = table.split("\n").find((line) => line.startsWith(`| ${label} `));
  assert.ok(line, `no row ${label} in\n${table}`);
  return line.split("|").slice(2, -1).map((cell) => cell.trim());
}

describe("medianOf, median and digits", () => {
  it("takes the value in the middle, however the values come", () => {
    assert.equal(median([9, 1, 5]), 5);
    assert.equal(median([4, 1, 2, 9]), 3);
    assert.equal(median([]), undefined);
  });

  it("leaves out runs that lack the figure", () => {
    assert.equal(medianOf([{ syncMs: 3 }, {}, { syncMs: 5 }, { syncMs: Infinity }], (run) => run.syncMs), 4);
  });

  it("shows about three digits", () => {
    assert.deepEqual([0, 0.0123, 0.5, 1.234, 12.34, 123.4, 48267].map(digits), [
      "0",
      "0.012",
      "0.50",
      "1.23",
      "12.3",
      "123",
      "48,267",
    ]);
  });
});

describe("sizeReport, targetTable and markdownTable", () => {
  it("aligns tables so that they read well as text", () => {
    assert.equal(
      markdownTable(["", "sync, s"], [["ours", "1.20"], ["theirs, longer", "10.3"]]),
      [
        "|                | sync, s |",
        "| -------------- | ------: |",
        "| ours           |    1.20 |",
        "| theirs, longer |    10.3 |",
      ].join("\n"),
    );
  });

  it("says of each target what was reached and whether that is enough", () => {
    const table = targetTable(result({
      "listwatch-node-all": [{ syncMs: 700, burstMs: 1000, burstEvents: 10_001 }],
      "client-node": [{ syncMs: 1000, burstMs: 1000, burstEvents: 8_001 }],
      "bare-node": [{ syncMs: 700, burstMs: 1000, burstEvents: 10_001 }],
    }));
    assert.deepEqual(row(table, "time to sync, all fields"), [
      "0.70 (≤ 0.5) missed",
      "not measured (≤ 0.2)",
      "1.00 (≤ 1.15) met",
    ]);
    assert.deepEqual(row(table, "events per second, all fields"), [
      "1.25 (≥ 1.5) missed",
      "not measured (≥ 6)",
      "1.00 (≥ 1.3) missed",
    ]);
  });

  it("shows medians, and their ratios to each peer that took part", () => {
    const report = sizeReport(result({
      "listwatch-node-default": [{ syncMs: 500 }, { syncMs: 900 }, { syncMs: 400 }],
      "client-node": [{ syncMs: 2000 }, { syncMs: 1000 }, { syncMs: 900 }],
    }, 1_000));
    assert.match(report, /^A list of 92.0 MB, then 50,000 events:$/m);
    assert.equal(row(report, "@listwatch/cache, Node, no managedFields")[0], "0.50");
    const ratios = report.slice(report.indexOf("As ratios to client-node on Node:"));
    assert.deepEqual(row(ratios, "@listwatch/cache, Node, no managedFields"), ["0.50"]);
    assert.doesNotMatch(report, /As ratios to bare loop|Targets/);
  });

  it("shows for a relist the peak over the settled heap, and the number of samples", () => {
    const relisted = { relistUpdates: 1_000, relistKeepsIdentity: true, settledBytes: 100 };
    const report = sizeReport(result({
      "listwatch-node-default": [
        { ...relisted, relistPeakBytes: 110, relistSamples: 3 },
        { ...relisted, relistPeakBytes: 130, relistSamples: 4 },
        { ...relisted, relistPeakBytes: 120, relistSamples: 12 },
      ],
      "bare-node": [{ syncMs: 1 }],
    }, 1_000));
    const table = report.slice(report.indexOf("A relist"));
    assert.deepEqual(row(table, "@listwatch/cache, Node, no managedFields"), ["1,000", "1.20", "4", "yes"]);
    assert.doesNotMatch(table, /bare loop, Node/);
  });

  it("names contestants that failed, and those that received fewer events", () => {
    const report = sizeReport(result({
      "listwatch-node-default": [{ syncMs: 1, burstMs: 1, burstEvents: 49_000 }],
      "client-node": [{ skipped: "ended with code 1: out of memory" }, { syncMs: 3 }],
      "kube-rs": [{ skipped: "its program could not be built" }],
    }, 1_000));
    assert.match(
      report,
      /client-node, Node did not take part in 1 of 2 runs: ended with code 1: out of memory/,
    );
    assert.match(report, /kube-rs, typed did not take part: its program/);
    assert.match(report, /its handler received 49,000 of the 50,000 events/);
  });
});

describe("withSection", () => {
  it("begins with a head, and keeps the other sections when one is replaced", () => {
    const first = withSection("", 20_000, "old figures");
    assert.match(first, /^# Tables of the benchmarks\n/);
    assert.match(first, /^<!-- begin comparison-20k -->\n\n## 20,000 pods\n\nold figures\n/m);
    const both = withSection(first, "growth", "growth figures");
    const replaced = withSection(both, 20_000, "new figures");
    assert.doesNotMatch(replaced, /old figures/);
    assert.match(replaced, /new figures[\s\S]*growth figures/);
    assert.equal(withSection(replaced, 20_000, "new figures"), replaced);
  });

  it("has its sections by size and the others last, in whichever order they were measured", () => {
    const sections = ["growth", 20_000, "profile", 1_000, 500, 100_000] as const;
    const text = sections.reduce((text, section) => withSection(text, section, `${section} figures`), "");
    assert.deepEqual(text.match(/^## .*/gm), [
      "## 500 pods",
      "## 1,000 pods",
      "## 20,000 pods",
      "## 100,000 pods",
      "## Where the time goes",
      "## Cost per object",
    ]);
    assert.deepEqual(
      sections.toReversed().reduce((text, section) => withSection(text, section, `${section} figures`), ""),
      text,
    );
  });

  it("finds in the results that are kept the section that a run of that size replaces", () => {
    const kept = readFileSync(new URL("../../benchmarks/TABLES.md", import.meta.url), "utf8");
    const headings = (text: string) => text.match(/^<!-- begin .* -->$/gm);
    const replaced = withSection(withSection(kept, 20_000, "new figures"), "growth", "new figures");
    assert.ok(headings(kept)!.length >= 2);
    assert.deepEqual(headings(replaced), headings(kept));
  });
});
