import assert from "node:assert/strict";
import { it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { moduleGraph } from "../../scripts/lib/module_graph.ts";

it("loadSchemas loads zod with the first request: an import of `.` opens no package", async () => {
  const modules = new Map((await moduleGraph(ROOT, ["mod.ts"])).map((node) => [node.path, node]));
  const opened = new Set(["mod.ts"]);
  for (const path of opened) {
    for (const { target, isTypeOnly, isDynamic } of modules.get(path)?.imports ?? []) {
      if (!isTypeOnly && !isDynamic) opened.add(target);
    }
  }
  assert.ok(opened.has("src/client/schemas.ts"));
  assert.deepEqual([...opened].filter((path) => !path.startsWith("src/") && path !== "mod.ts"), []);
});
