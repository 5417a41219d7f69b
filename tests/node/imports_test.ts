import assert from "node:assert/strict";
import { it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { moduleGraph } from "../../scripts/lib/module_graph.ts";

it("src/node/mod.ts loads no package and no server before their first use", async () => {
  const graph = new Map((await moduleGraph(ROOT, ["src/node/mod.ts"])).map((node) => [node.path, node]));
  const loaded = new Set<string>();
  const late = new Set<string>();
  const load = (path: string): void => {
    if (loaded.has(path)) return;
    loaded.add(path);
    for (const { target, isTypeOnly, isDynamic } of graph.get(path)?.imports ?? []) {
      if (isDynamic) late.add(target);
      else if (!isTypeOnly) load(target);
    }
  };
  load("src/node/mod.ts");
  assert.deepEqual([...loaded].filter((path) => /^npm:|^node:(https?|child_process)$/.test(path)), []);
  for (
    const pattern of [/yaml/, /@hono\/node-server/, /^node:https$/, /node_fetch\.ts$/, /run_program\.ts$/]
  ) {
    assert.ok([...late].some((target) => pattern.test(target)), `${pattern} is not imported late`);
  }
});
