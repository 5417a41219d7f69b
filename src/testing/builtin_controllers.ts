/** The work of an API server and its controllers on namespaces and CustomResourceDefinitions. */

import { formatGroupResource } from "../meta/resource.ts";
import { lowerBound } from "../util/collections.ts";
import { failure, notFound } from "./api_errors.ts";
import type { ClusterState, StoredObject } from "./cluster_state.ts";
import { isRecord, recordOf } from "../util/json.ts";
import type { JsonObject } from "./json.ts";
import { finalizersOf, metadataOf, metaText, timestamp } from "./object_checks.ts";
import type { CustomResource, ResourceTable, ServedResource } from "./served_resources.ts";
import type { ServerSettings } from "./server_settings.ts";

type DeleteObject = (resource: ServedResource, object: StoredObject) => void;

/** The admission plugin NamespaceLifecycle and the namespace controller, in one. */
export class Namespaces {
  readonly #state: ClusterState;
  readonly #resources: ResourceTable;
  readonly #settings: ServerSettings;
  readonly #deleteObject: DeleteObject;

  constructor(
    state: ClusterState,
    resources: ResourceTable,
    settings: ServerSettings,
    deleteObject: DeleteObject,
  ) {
    this.#state = state;
    this.#resources = resources;
    this.#settings = settings;
    this.#deleteObject = deleteObject;
  }

  /** Refuses a new object in a namespace that does not exist or is being deleted. */
  checkCreation(resource: ServedResource, name: string): void {
    const namespaces = this.#resources.named("v1/namespaces");
    const namespace = this.#state.get(namespaces, name);
    if (namespace === undefined) {
      if (this.#settings.requireNamespaces) throw notFound(namespaces, name);
    } else if (namespace.metadata.deletionTimestamp) {
      const message = `unable to create new content in namespace ${name} because it is being terminated`;
      throw failure(403, "Forbidden", `${resource.resource} is forbidden: ${message}`, {
        kind: resource.resource,
        causes: [{ reason: "NamespaceTerminating", message }],
      });
    }
  }

  /** Sets the label of namespaces that has their name; other objects stay as they are. */
  complete(resource: ServedResource, object: JsonObject): JsonObject {
    if (resource.id !== "v1/namespaces") return object;
    const metadata = metadataOf(object);
    const labels = {
      ...(isRecord(metadata.labels) && metadata.labels),
      "kubernetes.io/metadata.name": metaText(object, "name"),
    };
    return { ...object, metadata: { ...metadata, labels } };
  }

  /** Marks a namespace as Terminating, deletes its objects, and deletes the namespace once it is empty. */
  delete(namespaces: ServedResource, existing: StoredObject): { object: StoredObject; isRemoved: boolean } {
    const { name, deletionTimestamp } = existing.metadata;
    if (deletionTimestamp) return { object: existing, isRemoved: false };
    const now = timestamp(this.#settings.clock.now());
    const object = this.#state.write(namespaces, name, (resourceVersion) => ({
      ...existing,
      metadata: { ...existing.metadata, resourceVersion, deletionTimestamp: now },
      status: { ...(isRecord(existing.status) && existing.status), phase: "Terminating" },
    }));
    for (const resource of this.#resources.all) {
      if (!resource.namespaced) continue;
      for (const key of this.#keysIn(resource, name)) {
        const item = this.#state.get(resource, key);
        if (item !== undefined && !item.metadata.deletionTimestamp) this.#deleteObject(resource, item);
      }
    }
    this.finish(name);
    return { object, isRemoved: this.#state.get(namespaces, name) === undefined };
  }

  finish(name: string): void {
    const namespaces = this.#resources.named("v1/namespaces");
    const namespace = this.#state.get(namespaces, name);
    if (!namespace?.metadata.deletionTimestamp || finalizersOf(namespace).length > 0) return;
    const isEmpty = this.#resources.all.every((resource) =>
      !resource.namespaced || this.#keysIn(resource, name).length === 0
    );
    if (isEmpty) this.#state.remove(namespaces, name);
  }

  #keysIn(resource: ServedResource, namespace: string): string[] {
    const keys = this.#state.snapshot(resource)?.keys ?? [];
    const prefix = `${namespace}/`;
    const start = lowerBound(keys, prefix);
    let end = start;
    while (end < keys.length && keys[end].startsWith(prefix)) end++;
    return keys.slice(start, end);
  }
}

export const CRD_ID = "apiextensions.k8s.io/v1/customresourcedefinitions";
/** What keeps a definition that is being deleted while it has objects. */
const CLEANUP = "customresourcecleanup.apiextensions.k8s.io";

/**
 * Serves the resources of the present CustomResourceDefinitions; only the storage version, if a definition
 * has several.
 */
export class CustomDefinitions {
  readonly #state: ClusterState;
  readonly #resources: ResourceTable;
  readonly #deleteObject: DeleteObject;

  constructor(state: ClusterState, resources: ResourceTable, deleteObject: DeleteObject) {
    this.#state = state;
    this.#resources = resources;
    this.#deleteObject = deleteObject;
    state.subscribe(resources.named(CRD_ID), ({ object, previous }) => {
      const before = previous && customResource(previous);
      const now = object && customResource(object);
      if (before !== undefined && before.version !== now?.version) resources.remove(before);
      if (now !== undefined) resources.addCustom(now);
    });
  }

  /** Refuses a new object whose definition is being deleted. */
  checkCreation(resource: ServedResource, name: string): void {
    if (!this.#definitionOf(resource)?.metadata.deletionTimestamp) return;
    const why = "create not allowed while custom resource definition is terminating";
    const { group, resource: kind } = resource;
    const message = `${formatGroupResource(resource)} ${JSON.stringify(name)} is forbidden: ${why}`;
    throw failure(403, "Forbidden", message, { name, group, kind });
  }

  /**
   * Deletes the objects of a definition before the definition itself is deleted.
   * @returns The definition as it is to be marked, if finalizers hold some of them.
   */
  deleteObjects(definition: StoredObject): StoredObject | undefined {
    const described = customResource(definition);
    const resource = described && this.#resources.find(described);
    if (resource === undefined) return undefined;
    for (const key of this.#keysOf(resource)) this.#deleteObject(resource, this.#state.get(resource, key)!);
    if (this.#keysOf(resource).length === 0) return undefined;
    const finalizers = [...new Set([...finalizersOf(definition), CLEANUP])];
    return { ...definition, metadata: { ...definition.metadata, finalizers } };
  }

  /** An object was deleted: a definition that has waited for the last one is deleted, too. */
  finish(resource: ServedResource): void {
    const definition = resource.isCustom ? this.#definitionOf(resource) : undefined;
    if (!definition?.metadata.deletionTimestamp || this.#keysOf(resource).length > 0) return;
    const definitions = this.#resources.named(CRD_ID);
    const { name } = definition.metadata;
    const finalizers = finalizersOf(definition).filter((finalizer) => finalizer !== CLEANUP);
    if (finalizers.length === 0) return void this.#state.remove(definitions, name);
    this.#state.write(definitions, name, (resourceVersion) => ({
      ...definition,
      metadata: { ...definition.metadata, resourceVersion, finalizers },
    }));
  }

  #definitionOf({ resource, group }: ServedResource): StoredObject | undefined {
    return this.#state.get(this.#resources.named(CRD_ID), `${resource}.${group}`);
  }

  #keysOf(resource: ServedResource): readonly string[] {
    return this.#state.snapshot(resource)?.keys.slice() ?? [];
  }
}

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
  const spec = recordOf(definition.spec);
  return {
    group: String(spec.group ?? ""),
    scope: String(spec.scope ?? "Namespaced"),
    names: recordOf(spec.names),
    versions: Array.isArray(spec.versions) ? spec.versions.filter(isRecord) : [],
  };
}

function customResource(definition: StoredObject): CustomResource | undefined {
  const { group, scope, names, versions } = specOf(definition);
  const version = versions.find((candidate) => candidate.storage) ?? versions[0];
  const name = metaText(definition, "name");
  const resource = String(names.plural ?? name.slice(0, name.indexOf(".")));
  if (version === undefined || version.served === false || group === "" || !names.kind) return undefined;
  const subresources = recordOf(version.subresources);
  const fields = Array.isArray(version.selectableFields) ? version.selectableFields.filter(isRecord) : [];
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
