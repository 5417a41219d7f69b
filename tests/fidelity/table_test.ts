/**
 * Holds `docs/fidelity.md` against client-go's names, the package's exports, and the tests. Needs the sources and
 * `deno doc`, so it has nothing to say on other runtimes.
 * @module
 */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { CLIENT_GO_NAMES, OTHER_NAMES } from "./client_go_names.ts";
import { readFidelityPage } from "./fidelity_page.ts";
import { publicNames } from "./public_names.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(root + path, "utf8");

const isDeno = "Deno" in globalThis;

describe("docs/fidelity.md", { skip: !isDeno }, () => {
  if (!isDeno) return;
  const page = readFidelityPage(read("docs/fidelity.md"));

  it("has a row for every name that client-go exports, and for no other", () => {
    const known = (goPackage: string) =>
      [...(CLIENT_GO_NAMES[goPackage] ?? []), ...(OTHER_NAMES[goPackage] ?? [])].sort();
    for (const goPackage of Object.keys(CLIENT_GO_NAMES)) {
      const rows = page.names.filter((row) => row.goPackage === goPackage);
      assert.deepEqual(rows.flatMap((row) => row.theirs).sort(), known(goPackage), goPackage);
    }
    const packages = new Set(page.names.map((row) => row.goPackage));
    assert.deepEqual([...packages].sort(), Object.keys(CLIENT_GO_NAMES).sort());
  });

  it("says of every name what became of it: what it is here, or why it is not", () => {
    for (const { theirs, ours, verdict, why } of page.names) {
      assert.ok(["same", "better", "left out"].includes(verdict), `${theirs}: ${verdict}`);
      assert.equal(ours.length > 0, verdict !== "left out", `${theirs}`);
      if (verdict === "left out") assert.ok(why !== "", `${theirs}: why?`);
    }
  });

  it("names nothing as ours that is not exported", async () => {
    const { exports } = JSON.parse(read("deno.json")) as { exports: Record<string, string> };
    const missing: string[] = [];
    for (const entry of new Set(page.names.map((row) => row.entry))) {
      const file = exports[entry.replace("@listwatch/cache", ".")];
      assert.ok(file !== undefined, `deno.json has no entry point ${entry}`);
      // deno-lint-ignore no-await-in-loop -- one after the other
      const names = await publicNames(root, file);
      assert.ok(names.size > 0);
      for (const { ours } of page.names.filter((row) => row.entry === entry)) {
        for (const span of ours) {
          const [name, member] = span.split(".");
          const isThere = member === undefined ? names.has(name) : names.get(name)?.has(member);
          if (!isThere) missing.push(`${span} of ${entry}`);
        }
      }
    }
    assert.deepEqual(missing, []);
  });

  it("names in its reasons nothing of ours that is not exported", async () => {
    const names = await publicNames(root, "mod.ts");
    const missing: string[] = [];
    for (const { why, theirs } of page.names) {
      for (const [, name, member] of why.matchAll(/`([A-Z][A-Za-z]+)\.([a-z][A-Za-z]+)`/g)) {
        if (!names.get(name)?.has(member)) missing.push(`${name}.${member} (${theirs})`);
      }
    }
    assert.deepEqual(missing, []);
  });

  it("numbers its differences, and refers to all of them and no others", () => {
    assert.deepEqual(page.differences, page.differences.map((_, index) => `D${index + 1}`));
    const referred = new Set<string>();
    for (const { why } of page.names) {
      for (const [, first, last] of why.matchAll(/\bD([0-9]+)(?: to D([0-9]+))?/g)) {
        for (let i = Number(first); i <= Number(last ?? first); i++) referred.add(`D${i}`);
      }
    }
    assert.deepEqual(page.differences.filter((difference) => !referred.has(difference)), []);
    assert.deepEqual([...referred].filter((difference) => !page.differences.includes(difference)), []);
  });

  it("calls better only what refers to a difference, and nothing else", () => {
    for (const { theirs, verdict, why } of page.names) {
      if (verdict === "better") assert.match(why, /\bD[0-9]+/, `${theirs}`);
    }
  });

  it("has a test for every difference, and it is there", () => {
    const tested = new Set(page.tests.map(({ difference }) => difference));
    assert.deepEqual(page.differences.filter((difference) => !tested.has(difference)), []);
    for (const { difference, file, sentence } of page.tests) {
      assert.ok(existsSync(root + file), `${difference}: there is no ${file}`);
      const isThere = read(file).replaceAll(/\\(["'`])/g, "$1").includes(`"${sentence}"`);
      assert.ok(isThere, `${difference}: ${file} has no test ${JSON.stringify(sentence)}`);
    }
  });
});
