/**
 * Runs every recorded case in `cases/`, with every holding: what Go's libraries did is what this one must do.
 * On every runtime; the scripted server of the suite `reflector` is a `fetch` function here.
 * @module
 */

import { describe, it } from "node:test";
import { caseFiles } from "./cases/mod.ts";
import { type FileTestsOptions, testsOf } from "./file_tests.ts";
import type { CaseFile } from "./suites/harness.ts";
import { runSharedInformerCaseWithDeltaFIFO } from "./suites/shared_informer.ts";

const withDeltaFIFO = ({ cases }: CaseFile): FileTestsOptions => ({
  run: runSharedInformerCaseWithDeltaFIFO,
  title: "shared_informer with a DeltaFIFO",
  leastPlayed: Math.floor(cases.length * 0.93),
});

const files = [
  ...caseFiles.map((file) => testsOf(file)),
  ...caseFiles.filter(({ suite }) => suite === "shared_informer").map((file) =>
    testsOf(file, withDeltaFIFO(file))
  ),
];

for (const { title, tests } of files) {
  describe(title, () => {
    for (const { name, run } of tests) it(name, run);
  });
}
