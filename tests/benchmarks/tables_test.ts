import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { readOptions } from "../../benchmarks/lib/options.ts";
import { COMMANDS } from "../../benchmarks/tables.ts";
import { ROOT } from "../../scripts/lib/gate.ts";

describe("COMMANDS of deno task tables", () => {
  const { tasks } = JSON.parse(readFileSync(join(ROOT, "deno.json"), "utf8"));
  const tables = readFileSync(join(ROOT, "benchmarks/TABLES.md"), "utf8");

  for (const [task, ...args] of COMMANDS) {
    const command = ["deno task", task, ...args].join(" ");

    it(`has ${command}, which there is`, () => {
      assert.ok(task in tasks);
      if (task === "bench") assert.equal(readOptions(args).isHelp, false);
    });
  }

  it("measures every section of benchmarks/TABLES.md, but for the size of each build", () => {
    const modes = COMMANDS.map(([task, ...args]) => {
      if (task !== "bench") return task.replace("bench:", "");
      const { mode, sizes } = readOptions(args);
      return mode === "comparison" ? `comparison-${sizes[0] / 1000}k` : mode;
    });
    const sections = Array.from(tables.matchAll(/^<!-- begin (\S+) -->$/gm), ([, name]) => name);
    assert.deepEqual(sections.filter((name) => !modes.includes(name)), ["size"]);
  });
});
