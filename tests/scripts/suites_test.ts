import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { findSuites, NOT_ON } from "../../scripts/lib/suites.ts";

describe("NOT_ON", () => {
  it("names test files that are there, each with its reason", async () => {
    const all = (await findSuites(ROOT, "", "linux")).map(({ path }) => path);
    for (const [system, left] of Object.entries(NOT_ON)) {
      for (const { path, why } of left) {
        assert.ok(all.includes(path), `${path} of ${system} is not there`);
        assert.match(why, /^\w+ /);
      }
      assert.equal(new Set(left.map(({ path }) => path)).size, left.length);
    }
  });
});

describe("findSuites", () => {
  it("leaves out what cannot run on a system, and nothing else", async () => {
    const [linux, windows] = await Promise.all(
      ["linux", "windows"].map(async (system) =>
        (await findSuites(ROOT, "", system)).map(({ path }) => path)
      ),
    );
    assert.deepEqual(linux.filter((path) => !windows.includes(path)), NOT_ON.windows.map(({ path }) => path));
  });
});
