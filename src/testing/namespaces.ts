/**
 * Rules of namespaces: objects need theirs, and are deleted with it.
 * @module
 */

import type { Clock } from "../util/clock.ts";
import { failure, notFound } from "./api_errors.ts";
import { lowerBound } from "../util/collections.ts";
import type { ClusterState, StoredObject } from "./cluster_state.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { finalizersOf, metadataOf, metaText, timestamp } from "./object_checks.ts";
import type { ResourceTable, ServedResource } from "./served_resources.ts";

/** Options of {@linkcode Namespaces}. */
export interface NamespacesOptions {
  readonly clock: Clock;
  readonly requireNamespaces: boolean;
}

/** The admission plugin NamespaceLifecycle and the namespace controller, in one. */
export class Namespaces {
  readonly #state: ClusterState;
  readonly #resources: ResourceTable;
  readonly #options: NamespacesOptions;

  constructor(state: ClusterState, resources: ResourceTable, options: NamespacesOptions) {
    this.#state = state;
    this.#resources = resources;
    this.#options = options;
  }

  /** Refuses a new object in a namespace that does not exist or is being deleted. */
  checkCreation(resource: ServedResource, name: string): void {
    const namespaces = this.#resources.named("v1/namespaces");
    const namespace = this.#state.get(namespaces, name);
    if (namespace === undefined) {
      if (this.#options.requireNamespaces) throw notFound(namespaces, name);
    } else if (namespace.metadata.deletionTimestamp) {
      const message = `unable to create new content in namespace ${name} because it is being terminated`;
      throw failure(403, "Forbidden", `${resource.resource} is forbidden: ${message}`, {
        kind: resource.resource,
        causes: [{ reason: "NamespaceTerminating", message }],
      });
    }
  }

  /** Adds the label that the server sets on a new namespace; other objects stay as they are. */
  complete(resource: ServedResource, object: JsonObject): JsonObject {
    if (resource.id !== "v1/namespaces") return object;
    const metadata = metadataOf(object);
    const labels = {
      "kubernetes.io/metadata.name": metaText(object, "name"),
      ...(isJsonObject(metadata.labels) && metadata.labels),
    };
    return { ...object, metadata: { ...metadata, labels } };
  }

  /** Marks a namespace as Terminating, deletes its objects, and deletes the namespace once it is empty. */
  delete(namespaces: ServedResource, existing: StoredObject): { object: StoredObject; isRemoved: boolean } {
    const { name, deletionTimestamp } = existing.metadata;
    if (deletionTimestamp) return { object: existing, isRemoved: false };
    const now = timestamp(this.#options.clock.now());
    const object = this.#state.write(namespaces, name, (resourceVersion) => ({
      ...existing,
      metadata: { ...existing.metadata, resourceVersion, deletionTimestamp: now },
      status: { ...(isJsonObject(existing.status) && existing.status), phase: "Terminating" },
    }));
    for (const resource of this.#resources.all) {
      if (!resource.namespaced) continue;
      for (const key of this.#keysIn(resource, name)) {
        const item = this.#state.get(resource, key);
        if (item === undefined || item.metadata.deletionTimestamp) continue;
        if (finalizersOf(item).length === 0) this.#state.remove(resource, key);
        else {
          this.#state.write(resource, key, (resourceVersion) => ({
            ...item,
            metadata: {
              ...item.metadata,
              resourceVersion,
              deletionTimestamp: now,
              deletionGracePeriodSeconds: 0,
            },
          }));
        }
      }
    }
    this.finish(name);
    return { object, isRemoved: this.#state.get(namespaces, name) === undefined };
  }

  /** Removes a namespace that is Terminating and empty. */
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
