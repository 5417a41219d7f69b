import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { measureMillion, quantile } from "../../benchmarks/lib/million.ts";
import { readOptions } from "../../benchmarks/lib/options.ts";
import { buildPrograms } from "../../benchmarks/lib/programs.ts";
import { podJson, populationOf } from "../../benchmarks/server/pods.ts";
import { installTools } from "../../scripts/lib/tools.ts";

describe("measureMillion", () => {
  it("reads pages and selected lists of a cache into which events come", async () => {
    const tools = await installTools();
    await using programs = await buildPrograms(tools, new Set(), () => {});
    const options = readOptions(["--million", "--sizes", "1200", "--events", "1500"]);
    const report = await measureMillion(options, tools, programs, () => {});
    const rows = report.split("\n").filter((line) => line.startsWith("| ")).map((line) =>
      line.split("|").map((cell) => cell.trim()).slice(1, -1)
    );
    assert.equal(rows.find(([name]) => name === "1,200 pods")?.length, 8, report);
    for (
      const name of [
        "60 pages/s",
        "as many pages as come",
        "lists by an indexed label",
        "lists by another label",
      ]
    ) {
      const row = rows.find(([first]) => first.startsWith(name))!;
      assert.ok(parseFloat(row[2]) > 0, report);
      assert.equal(row.at(-1), "0", report);
    }
  });
});

describe("quantile", () => {
  it("is a value that so many of the values do not exceed", () => {
    const values = Array.from({ length: 200 }, (_, i) => i + 1);
    assert.deepEqual([0.5, 0.99, 1].map((share) => quantile(values, share)), [100, 198, 200]);
    assert.equal(quantile([], 0.5), undefined);
  });
});

describe("podJson", () => {
  it("makes pods of workloads that differ, for a varied population", () => {
    const population = populationOf(1_000, true);
    const pods = Array.from(
      { length: 1_000 },
      (_, i) =>
        JSON.parse(podJson(population, i, { resourceVersion: String(i), revision: 0, isTyped: false })),
    );
    const distinct = (value: (pod: typeof pods[number]) => unknown) => new Set(pods.map(value)).size;
    assert.equal(distinct(({ metadata }) => `${metadata.namespace}/${metadata.name}`), 1_000);
    assert.ok(distinct(({ metadata }) => metadata.labels["app.kubernetes.io/name"]) > 150);
    assert.ok(distinct(({ spec }) => spec.containers[0].image) > 150);
    assert.ok(distinct(({ spec }) => JSON.stringify(spec.containers[0].env)) > 150);
  });
});
