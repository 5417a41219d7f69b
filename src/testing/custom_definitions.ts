/**
 * CustomResourceDefinitions.
 * @module
 */

import type { ClusterState, StoredObject } from "./cluster_state.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { metaText } from "./object_checks.ts";
import type { CustomResource, ResourceTable } from "./served_resources.ts";

/** The resource of the definitions. */
export const CRD_ID = "apiextensions.k8s.io/v1/customresourcedefinitions";

/**
 * Serves the resources of the present CustomResourceDefinitions; of a definition with several versions only
 * its storage version.
 */
export class CustomDefinitions {
  readonly #state: ClusterState;
  readonly #resources: ResourceTable;

  constructor(state: ClusterState, resources: ResourceTable) {
    this.#state = state;
    this.#resources = resources;
    state.subscribe(resources.named(CRD_ID), ({ object, previous }) => {
      const before = previous && customResource(previous);
      const now = object && customResource(object);
      if (before !== undefined && before.version !== now?.version) resources.remove(before);
      if (now !== undefined) resources.addCustom(now);
    });
  }

  /** Deletes the objects of a definition before the definition itself is deleted. */
  deleteObjects(definition: StoredObject): void {
    const described = customResource(definition);
    const resource = described && this.#resources.find(described);
    if (resource === undefined) return;
    for (const key of this.#state.snapshot(resource)?.keys.slice() ?? []) this.#state.remove(resource, key);
  }
}

/** The status of a definition that is served. */
export function establishedStatus(definition: JsonObject): JsonObject {
  const { names, versions } = specOf(definition);
  return {
    acceptedNames: names,
    conditions: [
      { type: "NamesAccepted", status: "True", reason: "NoConflicts" },
      { type: "Established", status: "True", reason: "InitialNamesAccepted" },
    ],
    storedVersions: versions.filter((version) => version.storage).map((version) => version.name),
  };
}

interface DefinitionSpec {
  readonly group: string;
  readonly scope: string;
  readonly names: JsonObject;
  readonly versions: readonly JsonObject[];
}

function specOf(definition: JsonObject): DefinitionSpec {
  const spec = isJsonObject(definition.spec) ? definition.spec : {};
  return {
    group: String(spec.group ?? ""),
    scope: String(spec.scope ?? "Namespaced"),
    names: isJsonObject(spec.names) ? spec.names : {},
    versions: Array.isArray(spec.versions) ? spec.versions.filter(isJsonObject) : [],
  };
}

function customResource(definition: StoredObject): CustomResource | undefined {
  const { group, scope, names, versions } = specOf(definition);
  const version = versions.find((candidate) => candidate.storage) ?? versions[0];
  const name = metaText(definition, "name");
  const resource = String(names.plural ?? name.slice(0, name.indexOf(".")));
  if (version === undefined || version.served === false || group === "" || !names.kind) return undefined;
  const subresources = isJsonObject(version.subresources) ? version.subresources : {};
  const fields = Array.isArray(version.selectableFields) ? version.selectableFields.filter(isJsonObject) : [];
  return {
    group,
    version: String(version.name),
    resource,
    kind: String(names.kind),
    namespaced: scope === "Namespaced",
    ...(names.singular !== undefined && { singularName: String(names.singular) }),
    ...(Array.isArray(names.shortNames) && { shortNames: names.shortNames.map(String) }),
    ...(Array.isArray(names.categories) && { categories: names.categories.map(String) }),
    statusSubresource: subresources.status !== undefined,
    fieldSelectors: [
      "metadata.name",
      "metadata.namespace",
      ...fields.map(({ jsonPath }) => String(jsonPath).replace(/^\./, "")),
    ],
  };
}
