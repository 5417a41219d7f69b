import { join } from "node:path";
import { installNodePeers } from "../../../benchmarks/lib/programs.ts";
import { ROOT } from "../../../scripts/lib/gate.ts";
import { installTools } from "../../../scripts/lib/tools.ts";
import { describeSuite, runSuite } from "./go_suite.ts";

// The package on npm does not have its tests, so these are our own, by the names of
// theirs. Two of theirs call functions that no server reaches (`deleteObject`,
// `deleteItems`), and one a method with a wrong argument.
describeSuite({
  name: "client-node",
  title: "the cases of @kubernetes/client-node's informer",
  timeoutMs: 5 * 60_000,
  scope: { outOfScope: [], differs: [] },
  isParallel: true,
  async run(kubeconfigPath) {
    const { node } = await installTools();
    const cwd = await installNodePeers(console.log);
    return await runSuite([node, join(ROOT, "tests/cluster/suites/client_node_cases.mjs"), kubeconfigPath], {
      cwd,
    });
  },
});
