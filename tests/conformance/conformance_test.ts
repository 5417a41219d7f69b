/**
 * Runs every recorded case in `cases/`: what Go's libraries did is what this one must do. On every runtime; the
 * scripted server of the suite `reflector` is a `fetch` function here.
 * @module
 */

import { caseFiles } from "./cases/mod.ts";
import { declareFile } from "./declare.ts";
import { runSharedInformerCaseWithDeltaFIFO } from "./suites/shared_informer.ts";

for (const file of caseFiles) declareFile(file);

const sharedInformer = caseFiles.filter((file) => file.suite === "shared_informer");
for (const file of sharedInformer) {
  declareFile(file, {
    run: runSharedInformerCaseWithDeltaFIFO,
    title: "shared_informer with a DeltaFIFO",
    leastPlayed: 60,
  });
}
