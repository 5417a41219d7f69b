import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { mutantOf } from "../mutant.ts";
import { SUITE_MUTATIONS } from "../suite_mutations.ts";
import { MUTATIONS } from "./mutations.ts";
import { TREE_MUTATIONS } from "./tree/tree_mutations.ts";

it("MUTATIONS can each be applied: the text to replace is in its file exactly once", () => {
  const wrong = [...MUTATIONS, ...TREE_MUTATIONS, ...SUITE_MUTATIONS].filter((mutation) => {
    const source = readFileSync(new URL(`../../${mutation.file}`, import.meta.url), "utf8");
    return mutantOf(source, mutation) === undefined;
  });
  assert.deepEqual(wrong.map(({ name, file, find }) => `${name}: ${file}: ${find}`), []);
});
