/**
 * Runs every recorded case in `cases/`, with every holding: what Go's libraries did is what this one must do.
 * On every runtime; the scripted server of the suite `reflector` is a `fetch` function here.
 * @module
 */

import { describe, it } from "node:test";
import { caseFiles } from "./cases/mod.ts";
import { testsOf } from "./file_tests.ts";
import { runSharedInformerCaseWithDeltaFIFO } from "./suites/shared_informer.ts";

const withDeltaFIFO = {
  run: runSharedInformerCaseWithDeltaFIFO,
  title: "shared_informer with a DeltaFIFO",
  leastPlayed: 60,
};

const files = [
  ...caseFiles.map((file) => testsOf(file)),
  ...caseFiles.filter(({ suite }) => suite === "shared_informer").map((file) => testsOf(file, withDeltaFIFO)),
];

for (const { title, tests } of files) {
  describe(title, () => {
    for (const { name, run } of tests) it(name, run);
  });
}
