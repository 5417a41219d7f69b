/**
 * The suite `reflector` again, with the scripted server on a real socket: for runtimes that can open one.
 * @module
 */

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { it } from "node:test";
import { caseFiles } from "./cases/mod.ts";
import { declareFile } from "./declare.ts";
import { serveOnSocket } from "./servers/socket_server.ts";
import type { CaseFile } from "./suites/harness.ts";
import { runReflectorCase } from "./suites/reflector.ts";

it("cases/mod.ts holds every file of cases/", () => {
  const folder = new URL("./cases/", import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith(".json")).sort();
  const suites = names.map((name) => {
    const file = JSON.parse(readFileSync(new URL(name, folder), "utf8")) as CaseFile;
    return `${file.suite}: ${file.cases.length}`;
  });
  assert.deepEqual(caseFiles.map((file) => `${file.suite}: ${file.cases.length}`), suites);
});

for (const file of caseFiles.filter((file) => file.suite === "reflector")) {
  declareFile(file, {
    run: (caze) => runReflectorCase(caze, { serve: serveOnSocket }),
    title: "reflector over a socket",
  });
}
