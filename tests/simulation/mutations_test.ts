import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { SUITE_MUTATIONS } from "../suite_mutations.ts";
import { MUTATIONS } from "./mutations.ts";

it("MUTATIONS can each be applied: the text to replace is in its file exactly once", () => {
  for (const { name, file, find } of [...MUTATIONS, ...SUITE_MUTATIONS]) {
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
    assert.equal(source.split(find).length, 2, `${name}: ${file}: ${find}`);
  }
});
