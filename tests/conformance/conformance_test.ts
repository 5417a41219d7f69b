/**
 * Runs every recorded case in `cases/`: what Go's libraries did is what this one must do. On every runtime; the
 * scripted server of the suite `reflector` is a `fetch` function here.
 * @module
 */

import { describe, it } from "node:test";
import { shortTexts } from "@listwatch/cache";
import { caseFiles } from "./cases/mod.ts";
import { testsOf } from "./file_tests.ts";
import type { Case } from "./suites/harness.ts";
import { runSharedInformerCase, runSharedInformerCaseWithDeltaFIFO } from "./suites/shared_informer.ts";
import { runStoreCase } from "./suites/store.ts";

const withDeltaFIFO = {
  run: runSharedInformerCaseWithDeltaFIFO,
  title: "shared_informer with a DeltaFIFO",
  leastPlayed: 60,
};

const encoded = [
  {
    suite: "shared_informer",
    title: "shared_informer with encoded storage",
    run: (caze: Case) => runSharedInformerCase(caze, { storage: shortTexts() }),
  },
  {
    suite: "store",
    title: "store with encoded storage",
    run: (caze: Case) => runStoreCase(caze, { storage: shortTexts() }),
  },
];

const files = [
  ...caseFiles.map((file) => testsOf(file)),
  ...caseFiles.filter(({ suite }) => suite === "shared_informer").map((file) => testsOf(file, withDeltaFIFO)),
  ...encoded.flatMap(({ suite, ...options }) =>
    caseFiles.filter((file) => file.suite === suite).map((file) => testsOf(file, options))
  ),
];

for (const { title, tests } of files) {
  describe(title, () => {
    for (const { name, run } of tests) it(name, run);
  });
}
