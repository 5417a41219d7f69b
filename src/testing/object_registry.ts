import { formatObjectName, type ObjectName } from "../meta/object.ts";
import { formatGroupResource, groupVersion } from "../meta/resource.ts";
import { defined, isSameJson, recordOf } from "../util/json.ts";
import {
  alreadyExists,
  conflict,
  internal,
  invalidAs,
  invalidValue,
  notFound,
  required,
} from "./api_errors.ts";
import type { ClusterState, StoredMeta, StoredObject } from "./cluster_state.ts";
import { type JsonObject, without } from "./json.ts";
import { CRD_ID, CustomDefinitions, establishedStatus, Namespaces } from "./builtin_controllers.ts";
import {
  checkFinalizers,
  checkImmutable,
  checkName,
  checkNamespace,
  checkOwners,
  checkPreconditions,
  checkResourceVersionText,
  checkSameName,
  checkType,
  checkUid,
  finalizersOf,
  hasNoVersion,
  metadataOf,
  metaText,
  nameRequired,
  randomSuffix,
  randomUid,
  SERVER_FIELDS,
  timestamp,
} from "./object_checks.ts";
import { appliedTo, updatedBy } from "./patches/server_side_apply.ts";
import type { ResourceTable, ServedResource } from "./served_resources.ts";
import type { ServerSettings } from "./server_settings.ts";

export interface WriteOptions {
  readonly dryRun?: boolean;
  /**
   * Whether to write the object as given: with its status, and a new one with its uid and creationTimestamp.
   */
  readonly asGiven?: boolean;
}

/** Options of a write that replaces an object. */
export interface UpdateOptions extends WriteOptions {
  readonly subresource?: string;
  readonly manager?: string;
}

export interface DeleteOptions extends WriteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
}

export interface Deletion {
  readonly object: StoredObject;
  /** Whether the object was deleted; otherwise finalizers or a grace period keep it. */
  readonly isRemoved: boolean;
}

/**
 * Writes of an API server. Every method is synchronous and throws a `StatusError` if it refuses the write.
 */
export class ObjectRegistry {
  readonly #state: ClusterState;
  readonly #namespaces: Namespaces;
  readonly #definitions: CustomDefinitions;
  readonly #settings: ServerSettings;

  constructor(state: ClusterState, resources: ResourceTable, settings: ServerSettings) {
    this.#state = state;
    this.#settings = settings;
    const deleteObject = (resource: ServedResource, { metadata }: StoredObject) => {
      const { name, namespace = "" } = metadata;
      this.delete(resource, { name, namespace }, { asGiven: true });
    };
    this.#namespaces = new Namespaces(state, resources, settings, deleteObject);
    this.#definitions = new CustomDefinitions(state, resources, deleteObject);
  }

  create(
    resource: ServedResource,
    object: JsonObject,
    namespace: string,
    options: WriteOptions = {},
  ): StoredObject {
    checkType(resource, object);
    checkNamespace(object, namespace);
    if (namespace !== "") this.#namespaces.checkCreation(resource, namespace);
    const name = metaText(object, "name") || this.#generatedName(resource, object);
    checkName(resource, name);
    checkOwners(resource, object, name);
    if (!options.dryRun && !hasNoVersion(object)) {
      throw internal("resourceVersion should not be set on objects to be created");
    }
    if (resource.isCustom) this.#definitions.checkCreation(resource, name);
    const key = formatObjectName({ namespace, name });
    if (this.#state.get(resource, key) !== undefined) throw alreadyExists(resource, name);
    const isAsGiven = options.asGiven ?? false;
    const metadata = {
      name,
      ...(namespace !== "" && { namespace }),
      uid: (isAsGiven && metaText(object, "uid")) || randomUid(this.#settings.random),
      resourceVersion: "", // of the write, which takes its place
      ...(resource.hasGeneration && { generation: 1 }),
      creationTimestamp: (isAsGiven && metaText(object, "creationTimestamp")) || this.#now(),
      ...settableMetadata(metadataOf(object)),
    };
    const body = isAsGiven ? object : withInitialStatus(resource, object);
    const created = this.#namespaces.complete(resource, typed(resource, { ...body, metadata }));
    if (!options.dryRun) return this.#write(resource, key, created);
    return { ...created, metadata: without(metadata, "resourceVersion") } as unknown as StoredObject;
  }

  /** Replaces an object, or with `subresource` only its status. */
  update(
    resource: ServedResource,
    object: JsonObject,
    address: ObjectName,
    options: UpdateOptions = {},
  ): StoredObject {
    const { name, namespace } = address;
    checkType(resource, object);
    checkSameName(object, name);
    checkNamespace(object, namespace);
    const existing = this.#existing(resource, address);
    this.#checkVersion(resource, object, existing, options);
    if (!options.asGiven) checkImmutable(resource, object, existing);
    const writer = {
      manager: options.manager ?? "unknown",
      subresource: options.subresource ?? "",
      apiVersion: groupVersion(resource),
      time: this.#now(),
    };
    const written = { ...object, metadata: withoutEmpty(metadataOf(object)) };
    return this.#replace(resource, updatedBy(resource, existing, written, writer), address, {
      ...options,
      existing,
    });
  }

  #replace(
    resource: ServedResource,
    object: JsonObject,
    address: ObjectName,
    options: UpdateOptions & { readonly existing: StoredObject },
  ): StoredObject {
    const { existing } = options;
    const key = formatObjectName(address);
    const updated = this.#updated(resource, object, existing, options);
    checkFinalizers(resource, updated, existing);
    checkOwners(resource, updated, address.name);
    if (isSameJson(updated, existing) || options.dryRun) return updated as StoredObject;
    if (existing.metadata.deletionTimestamp && isReleased(updated)) {
      this.#remove(resource, key, existing);
      return updated as StoredObject;
    }
    return this.#write(resource, key, updated);
  }

  /**
   * Replaces an object, or creates it if objects of its kind are made so, too.
   * @returns The object, and whether it is new.
   */
  put(
    resource: ServedResource,
    object: JsonObject,
    address: ObjectName,
    options: UpdateOptions,
  ): { readonly object: StoredObject; readonly isNew: boolean } {
    const isNew = resource.createsOnUpdate && !options.subresource &&
      this.#state.get(resource, formatObjectName(address)) === undefined;
    if (!isNew) return { object: this.update(resource, object, address, options), isNew };
    checkSameName(object, address.name);
    checkUid(resource, object, { ...address, uid: "" });
    return { object: this.create(resource, withoutVersion(object), address.namespace, options), isNew };
  }

  patch(
    resource: ServedResource,
    address: ObjectName,
    change: (existing: StoredObject) => JsonObject,
    options: UpdateOptions = {},
  ): StoredObject {
    const existing = this.#existing(resource, address);
    const changed = change(existing);
    if (!options.asGiven) checkImmutable(resource, changed, existing);
    return this.update(resource, changed, address, options);
  }

  /**
   * Applies a configuration: creates the object, or changes the fields that are in the configuration
   * and those that the manager has applied before.
   * @returns The object, and whether it is new.
   */
  apply(
    resource: ServedResource,
    config: JsonObject,
    address: ObjectName,
    options: WriteOptions & {
      readonly subresource: string;
      readonly manager: string;
      readonly force: boolean;
    },
  ): { readonly object: StoredObject; readonly isNew: boolean } {
    const { manager, force, subresource } = options;
    if (manager === "") {
      throw invalidAs("PatchOptions.meta.k8s.io", {
        group: "meta.k8s.io",
        kind: "PatchOptions",
        causes: [required("fieldManager", "is required for apply patch")],
      });
    }
    checkType(resource, config);
    const existing = this.#state.get(resource, formatObjectName(address));
    if (existing === undefined || metaText(config, "name") !== "") checkSameName(config, address.name);
    checkNamespace(config, address.namespace);
    const writer = { manager, force, subresource, apiVersion: groupVersion(resource), time: this.#now() };
    if (existing !== undefined) {
      this.#checkVersion(resource, config, existing, { asGiven: true });
      const applied = appliedTo(resource, existing, config, writer);
      const object = applied === existing
        ? existing
        : this.#replace(resource, applied, address, { ...options, existing });
      return { object, isNew: false };
    }
    if (subresource !== "") throw notFound(resource, address.name);
    checkUid(resource, config, { ...address, uid: "" });
    const applied = appliedTo(resource, undefined, withoutVersion(config), writer);
    return { object: this.create(resource, applied, address.namespace, options), isNew: true };
  }

  delete(resource: ServedResource, address: ObjectName, options: DeleteOptions = {}): Deletion {
    const existing = this.#existing(resource, address);
    checkPreconditions(resource, existing, options);
    const key = formatObjectName(address);
    const { dryRun } = options;
    if (resource.id === "v1/namespaces" && !dryRun) return this.#namespaces.delete(resource, existing);
    const held = resource.id === CRD_ID && !dryRun ? this.#definitions.deleteObjects(existing) : undefined;
    const last = held ?? existing;
    const isHeld = finalizersOf(last).length > 0;
    const graceSeconds = this.#graceSeconds(resource, existing, options);
    const isRemoved = !isHeld && !graceSeconds;
    const marked = isHeld || graceSeconds !== undefined ? this.#marked(last, graceSeconds ?? 0) : last;
    if (dryRun) return { object: marked, isRemoved };
    const object = marked === last ? last : this.#write(resource, key, marked);
    return isRemoved ? this.#remove(resource, key, object) : { object, isRemoved };
  }

  #marked(existing: StoredObject, graceSeconds: number): StoredObject {
    const { metadata } = existing;
    const { deletionTimestamp, deletionGracePeriodSeconds = 0, generation } = metadata;
    if (deletionTimestamp && deletionGracePeriodSeconds <= graceSeconds) return existing;
    return {
      ...existing,
      metadata: {
        ...metadata,
        ...(generation !== undefined && !deletionTimestamp && { generation: generation + 1 }),
        deletionTimestamp: this.#now(graceSeconds),
        deletionGracePeriodSeconds: graceSeconds,
      },
    };
  }

  #existing(resource: ServedResource, address: ObjectName): StoredObject {
    const existing = this.#state.get(resource, formatObjectName(address));
    if (existing === undefined) throw notFound(resource, address.name);
    return existing;
  }

  #checkVersion(
    resource: ServedResource,
    object: JsonObject,
    existing: StoredObject,
    options: WriteOptions,
  ): void {
    const { name, namespace = "", uid, resourceVersion } = existing.metadata;
    const version = metaText(object, "resourceVersion");
    checkResourceVersionText(version);
    if (resource.needsVersion && hasNoVersion(object) && !options.asGiven) {
      throw invalidAs(formatGroupResource(resource), {
        name,
        group: resource.group,
        kind: resource.resource,
        causes: [invalidValue("metadata.resourceVersion", 0, "must be specified for an update")],
      });
    }
    checkUid(resource, object, { name, namespace, uid });
    if (!hasNoVersion(object) && version !== resourceVersion) throw conflict(resource, name);
  }

  #updated(
    resource: ServedResource,
    object: JsonObject,
    existing: StoredObject,
    options: UpdateOptions,
  ): JsonObject {
    const isStatus = options.subresource === "status";
    const keepsStatus = resource.statusSubresource && !isStatus && !options.asGiven;
    const source = isStatus ? withStatus(existing, object.status) : object;
    const body = keepsStatus ? withStatus(source, existing.status) : source;
    const before = existing.metadata;
    const { managedFields } = metadataOf(object);
    const given = isStatus && resource.isCustom ? { ...before, managedFields } : metadataOf(object);
    const isChanged = !isStatus && (wishesDiffer(resource, body, existing) ||
      resource.resource === "deployments" && !isSameJson(given.annotations, before.annotations));
    const generation = before.generation !== undefined && isChanged
      ? before.generation + 1
      : before.generation;
    const kept = SERVER_FIELDS.map((field) => [field, metadataOf(existing)[field]]);
    const own = { ...Object.fromEntries(kept), generation };
    const metadata = { ...defined(own), ...settableMetadata(given) };
    return this.#namespaces.complete(resource, typed(resource, { ...body, metadata }));
  }

  /** The grace period of an object; `undefined`: its kind has none. */
  #graceSeconds(
    resource: ServedResource,
    existing: StoredObject,
    options: DeleteOptions,
  ): number | undefined {
    if (!this.#settings.gracefulPodDeletion || resource.id !== "v1/pods" || options.asGiven) return undefined;
    const spec = recordOf(existing.spec);
    const status = recordOf(existing.status);
    const isRunning = Boolean(spec.nodeName) && status.phase !== "Failed" && status.phase !== "Succeeded";
    const { deletionGracePeriodSeconds } = existing.metadata;
    if (!isRunning && deletionGracePeriodSeconds === undefined) return 0;
    const seconds = options.gracePeriodSeconds ?? deletionGracePeriodSeconds ??
      Number(spec.terminationGracePeriodSeconds ?? 30);
    return seconds < 0 ? 1 : seconds; // as kube-apiserver does
  }

  #write(resource: ServedResource, key: string, object: JsonObject): StoredObject {
    return this.#state.write(
      resource,
      key,
      (resourceVersion) =>
        ({ ...object, metadata: { ...metadataOf(object), resourceVersion } }) as unknown as StoredObject,
    );
  }

  #remove(resource: ServedResource, key: string, existing: StoredObject): Deletion {
    const change = this.#state.remove(resource, key);
    const metadata: StoredMeta = { ...existing.metadata, resourceVersion: String(change?.revision) };
    if (existing.metadata.namespace) this.#namespaces.finish(existing.metadata.namespace);
    this.#definitions.finish(resource);
    return { object: { ...existing, metadata }, isRemoved: true };
  }

  #generatedName(resource: ServedResource, object: JsonObject): string {
    const base = metaText(object, "generateName");
    if (base === "") throw nameRequired(resource);
    return base.slice(0, 58) + randomSuffix(this.#settings.random);
  }

  #now(plusSeconds = 0): string {
    return timestamp(this.#settings.clock.now() + plusSeconds * 1000);
  }
}

function typed(resource: ServedResource, object: JsonObject): JsonObject {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object;
  return { kind: resource.kind, apiVersion: groupVersion(resource), metadata, ...rest };
}

/** The metadata that a writer sets. */
function settableMetadata(metadata: JsonObject): JsonObject {
  return without(withoutEmpty(metadata), ...SERVER_FIELDS);
}

/** Metadata without members that have nothing in them, which a server does not keep. */
function withoutEmpty(metadata: JsonObject): JsonObject {
  const isSet = (value: unknown) => typeof value !== "object" || Object.keys(value ?? {}).length > 0;
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => isSet(value)));
}

function withoutVersion(object: JsonObject): JsonObject {
  return { ...object, metadata: without(metadataOf(object), "resourceVersion") };
}

function withStatus(object: JsonObject, status: unknown): JsonObject {
  const rest = without(object, "status");
  return status === undefined ? rest : { ...rest, status };
}

// The server decides on the status of a new object.
function withInitialStatus(resource: ServedResource, object: JsonObject): JsonObject {
  if (!resource.statusSubresource) return object;
  if (resource.id === CRD_ID) return withStatus(object, establishedStatus(object));
  const phase = resource.id === "v1/pods"
    ? "Pending"
    : resource.id === "v1/namespaces"
    ? "Active"
    : undefined;
  return withStatus(object, phase === undefined ? undefined : { phase });
}

function wishesDiffer(resource: ServedResource, a: JsonObject, b: JsonObject): boolean {
  const aside = resource.statusSubresource
    ? ["kind", "apiVersion", "metadata", "status"]
    : ["kind", "apiVersion", "metadata"];
  return !isSameJson(without(a, ...aside), without(b, ...aside));
}

// Whether nothing keeps an object that is marked for deletion.
function isReleased(object: JsonObject): boolean {
  return finalizersOf(object).length === 0 && !metadataOf(object).deletionGracePeriodSeconds;
}
