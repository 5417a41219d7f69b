import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { installOnce } from "../../scripts/lib/tools.ts";

describe("installOnce", () => {
  it("installs once for callers that come at once, and lets them wait for it", async () => {
    const dir = await Deno.makeTempDir();
    try {
      const modules = join(dir, "node_modules");
      let installations = 0;
      const install = async () => {
        installations++;
        await Deno.mkdir(modules);
        await Promise.resolve();
        await Deno.writeTextFile(join(modules, "tool"), "");
      };
      await Promise.all([1, 2, 3].map(async () => {
        await installOnce(dir, "a", install);
        assert.ok(await Deno.stat(join(modules, "tool")), "it did not wait");
      }));
      assert.equal(installations, 1);
      await assert.rejects(
        installOnce(dir, "b", () => Promise.reject(new Error("no network"))),
        /no network/,
      );
      await installOnce(dir, "b", () => Promise.resolve(void installations++));
      assert.equal(installations, 2);
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  });
});
