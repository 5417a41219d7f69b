import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { it } from "node:test";
import { caseFiles } from "../conformance/cases/mod.ts";
import type { CaseFile } from "../conformance/suites/harness.ts";

it("tests/conformance/cases/mod.ts holds every file of its folder", () => {
  const files = ["../conformance/cases/", "../conformance/cases/fuzzed/"].flatMap((path) => {
    const folder = new URL(path, import.meta.url);
    const names = readdirSync(folder).filter((name) => name.endsWith(".json")).sort();
    return names.map((name) => JSON.parse(readFileSync(new URL(name, folder), "utf8")) as CaseFile);
  });
  const counts = (of: readonly CaseFile[]) => of.map(({ suite, cases }) => `${suite}: ${cases.length}`);
  assert.deepEqual(counts(caseFiles), counts(files));
});
