// Runs the controller of widget_controller.ts until SIGTERM, beside other copies of which one leads.
//
//     deno run -A examples/widget_manager.ts
//
// It finds the cluster by KUBECONFIG, ~/.kube/config, or in a pod; on Node and Bun, too.
import { Manager } from "@listwatch/cache/controller";
import { PrometheusMetrics } from "@listwatch/cache/metrics";
import { loadCluster, runManager } from "@listwatch/cache/node";
import { widgetController } from "./widget_controller.ts";

const metrics = new PrometheusMetrics();
const cluster = await loadCluster({ metrics });
const manager = new Manager(cluster, {
  controllers: [widgetController(cluster)],
  leader: { lease: "widget-controller" },
  metrics,
});
await runManager(manager, { port: 8080 }); // /healthz, /readyz, /metrics
