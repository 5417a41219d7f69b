import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { mutantOf, type Mutation } from "../mutant.ts";
import { SUITE_MUTATIONS } from "../mutations/mod.ts";
import { MUTATIONS } from "./mutations.ts";
import { TREE_MUTATIONS } from "./tree/tree_mutations.ts";

const ALL = [...MUTATIONS, ...TREE_MUTATIONS, ...SUITE_MUTATIONS];

function sourceOf({ file }: Mutation): string {
  return readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
}

it("MUTATIONS can each be applied: the text to replace is in its file exactly once", () => {
  const wrong = ALL.filter((mutation) => mutantOf(sourceOf(mutation), mutation) === undefined);
  assert.deepEqual(wrong.map(({ name, file, find }) => `${name}: ${file}: ${find}`), []);
});

it("MUTATIONS have no private name that their file does not declare: such a mutant does not even load", () => {
  const wrong = ALL.flatMap((mutation) => {
    const source = sourceOf(mutation);
    const names = Array.from(mutation.replace.matchAll(/\.(#\w+)/g), ([, name]) => name);
    return names.filter((name) => !new RegExp(`${name}\\b`).test(source)).map((name) =>
      `${mutation.name}: ${name}`
    );
  });
  assert.deepEqual(wrong, []);
});
