/** The custom resource of the tests: Widgets of `example.com/v1`. */

import type { KubernetesObject } from "@listwatch/cache";

export const WIDGETS = "example.com/v1/widgets";

/** The description of Widgets, for a server in memory. */
export const WIDGET_RESOURCE = {
  group: "example.com",
  version: "v1",
  resource: "widgets",
  kind: "Widget",
  namespaced: true,
};

type Fields = Readonly<Record<string, unknown>>;

interface WidgetDefinition extends KubernetesObject {
  readonly metadata: { readonly name: string };
  readonly spec: Fields & { readonly versions: readonly Fields[] };
}

/** The definition of Widgets; takes anything for a spec. */
export function widgetDefinition(
  { group = "example.com", names = {}, version = {}, olderVersions = [] }: {
    readonly group?: string;
    /** More names. */
    readonly names?: Fields;
    /** More of its version, or other members. */
    readonly version?: Fields;
    readonly olderVersions?: readonly Fields[];
  } = {},
): WidgetDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList", ...names },
      versions: [...olderVersions, {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        ...version,
      }],
    },
  };
}
