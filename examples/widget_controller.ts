// A controller: each Widget gets a ConfigMap of its color, a status, and a finalizer that cleans up.
// widget_manager.ts runs it; widget_controller_test.ts tests it.
import type { Cluster, KubernetesObject } from "@listwatch/cache";
import { type ControllerDefinition, defineController, ownedBy } from "@listwatch/cache/controller";

/** A custom resource of `example.com/v1`. */
export interface Widget extends KubernetesObject {
  spec?: { color?: string; size?: number };
  status?: { ready?: boolean; observedGeneration?: number; message?: string };
}

interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
}

const configMapName = (widget: Widget) => `widget-${widget.metadata?.name}`;

/** What keeps Widgets. */
export function widgetController(cluster: Cluster): ControllerDefinition {
  return defineController({
    name: "widgets",
    for: cluster.resource<Widget>("example.com/v1/widgets"),
    owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps") },
    workers: 4,
    timeoutMs: 30_000,
    when: "generationOrMetadata", // not for the status that it writes itself

    // The Widget's cluster may have no garbage collector.
    finalizer: "example.com/widget",
    async finalize(widget, { configMaps }) {
      await configMaps.deleteIfExists(configMapName(widget));
    },

    async reconcile(widget, { configMaps, events, metrics }) {
      const { color = "none", size = 0 } = widget.spec ?? {};
      const { changed } = await configMaps.apply({
        metadata: { name: configMapName(widget), ...ownedBy(widget) },
        data: { color, size: String(size) },
      });
      if (changed) {
        events.normal("Configured", `color ${color}`);
        metrics.count("widgets_configured_total");
      }
      return { status: { ready: true, observedGeneration: widget.metadata?.generation, message: color } };
    },
  });
}
