/**
 * A custom resource to test with.
 * @module
 */

import { type KubernetesObject, parseResource, type ResourceClient } from "@listwatch/cache";
import type { TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { widgetDefinition } from "../widgets.ts";

/** The definition takes anything for a spec; a schema on this side may not. */
export interface Widget extends KubernetesObject {
  readonly spec?: { readonly size?: unknown; readonly note?: string };
}

/** Makes a widget. */
export function newWidget(
  group: string,
  name: string,
  { namespace, size }: { readonly namespace: string; readonly size: unknown },
): Widget {
  const spec = { size, note: "naïve 日本語" };
  return { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name, namespace }, spec };
}

/** Defines widgets in an API group, until the connection is closed, and waits until the server takes some. */
export async function defineWidgets(
  connection: TestConnection,
  group: string,
  version: Readonly<Record<string, unknown>> = {},
): Promise<ResourceClient<Widget>> {
  const definitions = connection.cluster.resource("apiextensions.k8s.io/v1/customresourcedefinitions");
  const definition = widgetDefinition({ group, version });
  await definitions.create(definition);
  connection.onClose(() => definitions.delete(definition.metadata.name));
  const widgets = connection.cluster.resource<Widget>(parseResource(`${group}/v1/widgets`));
  const trial = newWidget(group, "trial", { namespace: "default", size: 0 });
  await eventually(() => widgets.create(trial, { query: { dryRun: "All" } }));
  return widgets;
}

/** Takes the definition away, and with it all widgets. */
export async function removeWidgets(connection: TestConnection, group: string): Promise<void> {
  await connection.cluster.resource("apiextensions.k8s.io/v1/customresourcedefinitions").delete(
    `widgets.${group}`,
  );
}
