/**
 * The throwaway certificates of `tests/node/fixtures`, wherever this file was built to.
 * @module
 */

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The path of one of them. */
export function fixture(name: string): string {
  for (const start of [dirname(fileURLToPath(import.meta.url)), process.cwd()]) {
    for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) {
      const path = join(folder, "tests/node/fixtures", name);
      if (existsSync(path)) return path;
    }
  }
  throw new Error(`Cannot find tests/node/fixtures/${name}`);
}

/** The text of one of them. */
export function pem(name: string): string {
  return readFileSync(fixture(name), "utf8");
}
