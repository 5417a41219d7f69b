/**
 * The contestant of ours: the controller of `examples/widget_controller.ts` on a `Manager`. It takes its
 * connection from KUBECONFIG, prints a line of JSON when it has reconciled so many different Widgets as
 * its argument says, and runs until it is killed.
 *
 * @module
 */

import process from "node:process";
import { type ControllerDefinition, Manager } from "@listwatch/cache/controller";
import { loadCluster, runManager } from "@listwatch/cache/node";
import { widgetController } from "../../examples/widget_controller.ts";
import type { Reconciled } from "./contestants.ts";

const expected = Number(process.argv[2]);
const cluster = await loadCluster();

/** Counts the keys that were reconciled, and changes nothing else. */
function counted({ name, parts }: ControllerDefinition): ControllerDefinition {
  const seen = new Set<string>();
  return {
    name,
    parts: {
      ...parts,
      async reconcile(object, context) {
        const result = await parts.reconcile(object, context);
        if (seen.size < expected && seen.add(context.key).size === expected) {
          const line: Reconciled = { reconciled: expected, pid: process.pid };
          process.stdout.write(`${JSON.stringify(line)}\n`);
        }
        return result;
      },
    },
  };
}

await runManager(new Manager(cluster, { controllers: [counted(widgetController(cluster))] }));
