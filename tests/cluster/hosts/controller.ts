/**
 * Two controllers on Deno, Node or Bun: a program for the tests. Its argument is the options as JSON; it
 * prints a line when it runs, and ends with its standard input.
 *
 * @module
 */

import process from "node:process";
import type { Cluster, KubernetesObject } from "@listwatch/cache";
import { type ControllerDefinition, defineController, Manager, ownedBy } from "@listwatch/cache/controller";
import { loadCluster, runManager } from "@listwatch/cache/node";
import { type Widget, widgetController } from "../../../examples/widget_controller.ts";

/** The argument of the program. */
export interface ControllerOptions {
  readonly kubeconfig: string;
  readonly identity: string;
  readonly lease: string;
}

/** Makes one Secret for each Widget, with a name that the server chooses: what is made twice, stays. */
function tokenController(cluster: Cluster): ControllerDefinition {
  return defineController({
    name: "tokens",
    for: cluster.resource<Widget>("example.com/v1/widgets"),
    owns: { secrets: cluster.resource<KubernetesObject>("v1/secrets") },
    workers: 4,
    async reconcile(widget, { secrets, self }) {
      const owned = await secrets.owned();
      if (owned.length > 0) return;
      const name = widget.metadata?.name ?? "";
      await secrets.create({
        metadata: { generateName: `${name}-`, labels: { widget: name }, ...ownedBy(widget) },
      });
      // A second reconcile follows at once.
      await self.patch(name, { metadata: { annotations: { "example.com/token": "made" } } });
    },
  });
}

const stopping = new AbortController();
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();

const { kubeconfig, identity, lease }: ControllerOptions = JSON.parse(process.argv[2]);
const cluster = await loadCluster({ kubeconfig });
// A failing test shows the last lines.
const line = (level: string) => (message: string) => console.error(new Date().toISOString(), level, message);
const logger = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
const manager = new Manager(cluster, {
  logger,
  controllers: [widgetController(cluster), tokenController(cluster)],
  leader: { lease, identity, leaseMs: 3_000, renewDeadlineMs: 2_000, retryMs: 400 },
});
stopping.signal.throwIfAborted();
console.log("started");
await runManager(manager);
