/**
 * Holds `docs/fidelity.md` against client-go's names, the package's exports, and the tests. Needs the
 * sources and `deno doc`, so other runtimes skip it.
 * @module
 */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { CLIENT_GO_NAMES, OTHER_NAMES } from "./client_go_names.ts";
import { readFidelityPage } from "./fidelity_page.ts";
import { publicNames } from "./public_names.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string) => readFileSync(root + path, "utf8");

const isDeno = "Deno" in globalThis;

describe("docs/fidelity.md", { skip: !isDeno }, () => {
  if (!isDeno) return;
  const page = readFidelityPage(read("docs/fidelity.md"));
  const exported = exportedNames();

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

  it("gives every name its counterpart here, or the reason why there is none", () => {
    for (const { theirs, ours, verdict, why } of page.names) {
      assert.ok(["same", "better", "left out"].includes(verdict), `${theirs}: ${verdict}`);
      assert.equal(ours.length > 0, verdict !== "left out", `${theirs}`);
      if (verdict === "left out") assert.ok(why !== "", `${theirs}: why?`);
    }
  });

  it("names everything of ours where it is exported", async () => {
    const missing: string[] = [];
    for (const { ours } of page.names) {
      for (const { name: span, entry } of ours) {
        const [name, member] = span.split(".");
        const members = (await exported).get(entry)?.get(name);
        if (!(member === undefined ? members !== undefined : members?.has(member))) {
          missing.push(`${span} of ${entry}`);
        }
      }
    }
    assert.deepEqual(missing, []);
  });

  it("names in its reasons nothing of ours that is not exported", async () => {
    const missing: string[] = [];
    for (const { why, theirs } of page.names) {
      for (const [, name, member] of why.matchAll(/`([A-Z][A-Za-z]+)\.([a-z][A-Za-z]+)`/g)) {
        const isThere = [...(await exported).values()].some((names) => names.get(name)?.has(member));
        if (!isThere) missing.push(`${name}.${member} (${theirs})`);
      }
    }
    assert.deepEqual(missing, []);
  });

  it("lists every name under its entry point, and none twice", async () => {
    const listOf = (entry: string, names: Iterable<string>) =>
      `- \`${entry}\`: ${[...names].sort().map((name) => `\`${name}\``).join(", ")}`;
    for (const [entry, names] of await exported) {
      assert.equal(listOf(entry, page.entries.get(entry) ?? []), listOf(entry, names.keys()));
    }
    assert.deepEqual([...page.entries.keys()], [...(await exported).keys()]);
    const all = [...page.entries.values()].flat();
    assert.deepEqual(all.filter((name, at) => all.indexOf(name) !== at), []);
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

/** The names of every entry point of `deno.json`, each with its members. */
async function exportedNames(): Promise<Map<string, ReadonlyMap<string, ReadonlySet<string>>>> {
  const { exports } = JSON.parse(read("deno.json")) as { exports: Record<string, string> };
  const names = await Promise.all(Object.values(exports).map((file) => publicNames(root, file)));
  return new Map(
    Object.keys(exports).map((subpath, at) => [`@listwatch/cache${subpath.slice(1)}`, names[at]]),
  );
}
