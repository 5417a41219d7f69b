/**
 * Runs every recorded case in `cases/`: what Go's libraries did is what this one must do.
 * @module
 */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { CaseFile } from "./suites/harness.ts";
import { suites } from "./suites/mod.ts";

const folder = new URL("./cases/", import.meta.url);

for (const name of readdirSync(folder).filter((name) => name.endsWith(".json")).sort()) {
  const file = JSON.parse(readFileSync(new URL(name, folder), "utf8")) as CaseFile;
  describe(`conformance: ${file.suite} (${file.source})`, () => {
    const run = suites[file.suite];
    if (run === undefined) {
      it(`${name} has a runner`, () =>
        assert.fail(`suites/mod.ts has no runner for ${JSON.stringify(file.suite)}`));
      return;
    }
    it("has cases", () => assert.ok(file.cases.length > 0));
    for (const caze of file.cases) it(caze.name, () => run(caze));
  });
}
