/**
 * The suite `reflector` again, with the scripted server on a real socket: for runtimes that can open one.
 * @module
 */

import { caseFiles } from "../cases/mod.ts";
import { declareFile } from "../declare.ts";
import { serveOnSocket } from "./socket_server.ts";
import { runReflectorCase } from "../suites/reflector.ts";

for (const file of caseFiles.filter((file) => file.suite === "reflector")) {
  declareFile(file, {
    run: (caze) => runReflectorCase(caze, { serve: serveOnSocket }),
    title: "reflector over a socket",
  });
}
