import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { CLOUDFLARE, MEASURED, scale, withTables } from "../../scripts/scale.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");

describe("docs/scale.md", () => {
  it("has the tables that follow from its inputs (deno run -A scripts/scale.ts --update)", () => {
    const text = read("docs/scale.md");
    assert.equal(text, withTables(text));
  });

  it("has the figures that the text draws from the tables", () => {
    const { watchersPerObject, perObject, perMillionEvents, twoMillionPodsGb, cpuPerCluster } = scale();
    const text = read("docs/scale.md").replaceAll(/\s+/g, " ");
    for (
      const figure of [
        `${watchersPerObject.toLocaleString("en-US")} watchers`,
        `$${perObject.toFixed(2)} a month`,
        `$${perMillionEvents} for a million events`,
        `${twoMillionPodsGb.heap.toFixed(1)} GB of heap`,
        `${twoMillionPodsGb.resident.toFixed(1)} GB of resident memory`,
        `${(cpuPerCluster * 100).toFixed(2)} % of a core`,
      ]
    ) assert.ok(text.includes(figure), `docs/scale.md does not say "${figure}"`);
  });

  it("uses figures of the benchmarks that are still in their results", () => {
    const results = read("benchmarks/TABLES.md");
    const { denoWatcherBytes, nodeWatcherBytes, deliverUs } = MEASURED;
    for (const figure of [denoWatcherBytes / 1e3, nodeWatcherBytes / 1e3, deliverUs]) {
      assert.match(results, new RegExp(`\\| +${figure}(?:\\.0)? \\|`), String(figure));
    }
    const [, perSecond] = /short texts +\|[^|]*\|[^|]*\| +([\d,]+) \|/.exec(
      results.slice(
        results.indexOf(
          "| @listwatch/cache, Deno, no managedFields, short texts",
          results.indexOf("## 20,000 pods"),
        ),
      ),
    )!;
    assert.ok(Math.abs(1e6 / Number(perSecond.replaceAll(",", "")) - MEASURED.ingestUs) < 0.05, perSecond);
  });

  it("has the rows that an event of a Durable Object writes: three, the state, and two deletes", () => {
    const tables = [...read("src/workers/sql_database.ts").matchAll(/CREATE TABLE IF NOT EXISTS (\w+)/g)];
    assert.deepEqual(tables.map(([, name]) => name), [
      "listwatch_state",
      "listwatch_bodies",
      "listwatch_objects",
      "listwatch_events",
    ]);
    // An index would be one more row with each write.
    assert.doesNotMatch(read("src/workers/sql_database.ts"), /CREATE (UNIQUE )?INDEX/);
    assert.equal(MEASURED.rowsPerEvent, tables.length + 2);
    assert.equal(CLOUDFLARE.perMillionRowsWritten, 1);
  });
});
