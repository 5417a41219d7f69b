import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { buildProgram } from "../../scripts/lib/bundle.ts";
import { installTools } from "../../scripts/lib/tools.ts";

describe("buildProgram", () => {
  it("never shows a program half written: one that starts while another build ends would run nothing", {
    timeout: 120_000,
  }, async () => {
    const tools = await installTools();
    const build = () =>
      buildProgram(tools, "tests/cluster/hosts/serve_command.ts", { name: "bundle_test", platform: "node" });
    const path = await build();
    const { length } = await Deno.readFile(path);
    assert.ok(length > 100_000);
    let isOver = false;
    const builds = (async () => {
      for (let i = 0; i < 10; i++) assert.equal(await build(), path);
    })().finally(() => isOver = true);
    const lengths = new Set<number>();
    while (!isOver) lengths.add((await Deno.stat(path)).size);
    await builds;
    assert.deepEqual([...lengths], [length]);
    const files = await Array.fromAsync(Deno.readDir(path.slice(0, path.lastIndexOf("/"))));
    assert.deepEqual(files.filter(({ name }) => /^bundle_test\.mjs./.test(name)), []);
    await Deno.remove(path);
  });
});
