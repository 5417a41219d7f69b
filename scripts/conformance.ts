/**
 * `deno task conformance [DIR ...]`: replays recorded cases of client-go against this library.
 *
 * Reads every `*.json` of the folders (`tests/conformance/cases` and `fuzzed` in it by default), prints a
 * line a suite, and at the end `N passed, N failed`. Exits with 1 if a case failed, with 2 if there is
 * nothing to run.
 *
 * @module
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import process from "node:process";
import { runFiles } from "../tests/conformance/run.ts";
import { serveOnSocket } from "../tests/conformance/servers/socket_server.ts";
import type { CaseFile } from "../tests/conformance/suites/harness.ts";
import { runReflectorCase } from "../tests/conformance/suites/reflector.ts";
import { taskArguments, usage } from "./lib/task_usage.ts";

const DEFAULT_FOLDERS = ["../tests/conformance/cases", "../tests/conformance/cases/fuzzed"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)));

function readFolder(folder: string): CaseFile[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(".json")).sort();
  return names.map((name) => readFile(join(folder, name)));
}

function readFile(path: string): CaseFile {
  const file = JSON.parse(readFileSync(path, "utf8")) as CaseFile;
  if (typeof file.suite !== "string" || !Array.isArray(file.cases)) {
    throw new Error(`${path} is no file of cases: it has no "suite" and "cases"`);
  }
  return file;
}

async function main(folders: readonly string[]): Promise<number> {
  let files: CaseFile[];
  try {
    files = (folders.length === 0 ? DEFAULT_FOLDERS : folders).flatMap(readFolder);
  } catch (error) {
    console.error(`Cannot read the cases: ${error instanceof Error ? error.message : error}`);
    return 2;
  }
  if (files.length === 0) {
    console.error("There is no *.json in these folders: name one that holds recorded cases");
    return 2;
  }
  const { passed, failed } = await runFiles(files, {
    print: (line) => console.log(line),
    runners: { reflector: (caze, holding) => runReflectorCase(caze, holding, { serve: serveOnSocket }) },
  });
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

const USAGE = usage({
  task: "conformance",
  takes: "[DIR...]",
  does:
    "Replays cases recorded from client-go: of these folders, or of tests/conformance/cases. Ends with\n" +
    "`N passed, N failed`.",
});

process.exit(await main(taskArguments(USAGE, {}).positionals));
