/**
 * The suite `reflector` again, with the scripted server on a real socket: for runtimes that can open one.
 * @module
 */

import { describe, it } from "node:test";
import { caseFiles } from "../cases/mod.ts";
import { testsOf } from "../file_tests.ts";
import { runReflectorCase } from "../suites/reflector.ts";
import { serveOnSocket } from "./socket_server.ts";

for (const file of caseFiles.filter(({ suite }) => suite === "reflector")) {
  const { title, tests } = testsOf(file, {
    run: (caze, holding) => runReflectorCase(caze, holding, { serve: serveOnSocket }),
    title: "reflector over a socket",
  });
  describe(title, () => {
    for (const { name, run } of tests) it(name, run);
  });
}
