/** Answers to readers: objects, pages of lists and events. */

import type { FieldSelector } from "../meta/fields.ts";
import { formatObjectName, type KubernetesObject, type ListMeta, type ObjectName } from "../meta/object.ts";
import type { LabelSelector } from "../meta/labels.ts";
import { INITIAL_EVENTS_END_ANNOTATION, type ListOptions } from "../meta/list_watch.ts";
import { groupVersion } from "../meta/resource.ts";
import type { ShardSelector } from "../meta/shard_hash.ts";
import { type Status, StatusError } from "../meta/status.ts";
import { decodeContinue, encodeContinue, LATEST } from "../protocol/continue_token.ts";
import { type ObjectShape, partialMetadata } from "../protocol/representations.ts";
import { selectableFields } from "../protocol/selectable_fields.ts";
import { continueTooOld, isStatus, tooLargeResourceVersion } from "../protocol/statuses.ts";
import { onOneLine } from "../text/json_walk.ts";
import { getOrMake, lowerBound } from "../util/collections.ts";
import { failure, internal, notFound } from "./api_errors.ts";
import type { Change, ClusterState, Snapshot, StoredObject } from "./cluster_state.ts";
import type { JsonObject } from "./json.ts";
import type { ServedResource } from "./served_resources.ts";
import type { ServerSettings } from "./server_settings.ts";

/** Objects of one resource: those of a namespace, or of all, that match the selectors. */
export interface Selection {
  readonly resource: ServedResource;
  readonly keyPrefix: string;
  readonly isNarrowed: boolean;
  /** The name that the fields demand, if they do. */
  readonly onlyName: string | undefined;
  readonly shard: ShardSelector | undefined;
  matches(object: StoredObject): boolean;
}

export interface SelectionOptions {
  /** `""` or absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string;
  readonly labels?: LabelSelector | undefined;
  readonly fields?: FieldSelector | undefined;
  readonly shard?: ShardSelector | undefined;
}

export function newSelection(resource: ServedResource, options: SelectionOptions): Selection {
  const { namespace = "", labels, fields, shard } = options;
  const read = selectableFields(resource);
  return {
    resource,
    keyPrefix: namespace === "" ? "" : `${namespace}/`,
    isNarrowed: labels !== undefined || fields !== undefined || shard !== undefined,
    onlyName: fields?.requiresExactMatch("metadata.name"),
    shard,
    matches: (object) =>
      (namespace === "" || object.metadata.namespace === namespace) &&
      (labels === undefined || labels.matches(object.metadata.labels)) &&
      (fields === undefined || fields.matches(read(object))) &&
      shard?.matches(object) !== false,
  };
}

export interface Page {
  readonly metadata: ListMeta;
  readonly items: readonly StoredObject[];
}

export class ObjectReader {
  readonly #state: ClusterState;
  readonly #settings: ServerSettings;

  constructor(state: ClusterState, settings: ServerSettings) {
    this.#state = state;
    this.#settings = settings;
  }

  /** Returns an object, not older than `resourceVersion`. */
  async get(
    resource: ServedResource,
    name: ObjectName,
    options: { readonly resourceVersion?: string; readonly signal?: AbortSignal } = {},
  ): Promise<StoredObject> {
    const { resourceVersion = "", signal } = options;
    if (!/^[0-9]*$/.test(resourceVersion)) {
      const quoted = JSON.stringify(resourceVersion);
      throw internal(
        `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`,
      );
    }
    if (resourceVersion !== "") await this.waitFor(BigInt(resourceVersion), signal);
    const object = this.#state.get(resource, formatObjectName(name));
    if (object === undefined) throw notFound(resource, name.name);
    return object;
  }

  async list(selection: Selection, options: ListOptions, signal?: AbortSignal): Promise<Page> {
    const { resourceVersion = "", limit, continue: token } = options;
    const pageSize = limit === undefined ? undefined : Math.min(limit, this.#settings.maxPageSize);
    if (token !== undefined) {
      const from = decodeContinue(token);
      if (isStatus(from)) throw new StatusError(from);
      const { resourceVersion: version, start } = from;
      const startKey = selection.keyPrefix + start;
      const revision = version === LATEST ? this.#state.revision : BigInt(version);
      await this.waitFor(revision, signal);
      const snapshot = this.#state.snapshot(selection.resource, revision);
      if (snapshot === undefined) {
        throw new StatusError(continueTooOld(encodeContinue({ resourceVersion: LATEST, start })));
      }
      return page(selection, snapshot, { pageSize, startKey });
    }
    if (resourceVersion === "" || resourceVersion === "0") {
      const isWhole = resourceVersion === "0" && this.#settings.watchCache;
      return page(selection, this.#newest(selection.resource), { pageSize: isWhole ? undefined : pageSize });
    }
    const revision = BigInt(resourceVersion);
    await this.waitFor(revision, signal);
    // A limit without resourceVersionMatch means an exact version, as before that option existed.
    const isExact = options.resourceVersionMatch === "Exact" ||
      (options.resourceVersionMatch === undefined && limit !== undefined);
    if (!isExact) return page(selection, this.#newest(selection.resource), { pageSize });
    const snapshot = this.#state.snapshot(selection.resource, revision);
    if (snapshot === undefined) {
      throw failure(410, "Expired", "The resourceVersion for the provided list is too old.");
    }
    return page(selection, snapshot, { pageSize });
  }

  /**
   * Waits until a revision is reached.
   * @throws {StatusError} 504: it is not reached in time.
   * @throws The signal's reason.
   */
  async waitFor(revision: bigint, signal: AbortSignal | undefined): Promise<void> {
    if (revision <= this.#state.revision) return;
    const { futureWaitMs } = this.#settings;
    await this.#state.waiters.wait(String(revision), { timeoutMs: futureWaitMs, signal });
    signal?.throwIfAborted();
    if (revision <= this.#state.revision) return;
    throw new StatusError(tooLargeResourceVersion(String(revision), String(this.#state.revision)));
  }

  #newest(resource: ServedResource): Snapshot {
    return this.#state.snapshot(resource)!; // the present revision is never compacted
  }
}

/** The objects of a selection at a snapshot, in the storage's order. */
export function select(selection: Selection, snapshot: Snapshot): readonly StoredObject[] {
  return page(selection, snapshot, {}).items;
}

function page(
  selection: Selection,
  snapshot: Snapshot,
  options: { readonly pageSize?: number; readonly startKey?: string },
): Page {
  const { keyPrefix, isNarrowed, onlyName, shard } = selection;
  const { pageSize = Infinity, startKey = keyPrefix } = options;
  const { keys, revision } = snapshot;
  const items: StoredObject[] = [];
  let i = lowerBound(keys, startKey);
  for (; i < keys.length && keys[i].startsWith(keyPrefix) && items.length < pageSize; i++) {
    const object = snapshot.get(keys[i]);
    if (object !== undefined && selection.matches(object)) items.push(object);
  }
  const end = lowerBound(keys, `${keyPrefix}\uffff`);
  const resourceVersion = String(revision);
  const info = shard && { shardInfo: { selector: String(shard) } };
  const last = keys[i - 1]?.slice(keyPrefix.length);
  // Nothing comes after the only object of a name: in one namespace, or of a cluster-scoped resource.
  if (i >= end || last === onlyName) return { metadata: { resourceVersion, ...info }, items };
  const next = encodeContinue({ resourceVersion, start: `${last}\0` });
  return {
    metadata: {
      resourceVersion,
      continue: next,
      ...(!isNarrowed && { remainingItemCount: end - i }),
      ...info,
    },
    items,
  };
}

/**
 * An object in the shape that a client asks for. This server makes no Tables; a client that accepts one
 * accepts the object, too.
 */
export function shaped(object: KubernetesObject, shape: ObjectShape): KubernetesObject {
  return shape.kind === "PartialObjectMetadata" ? partialMetadata(object, shape.apiVersion) : object;
}

export function listDocument(
  resource: ServedResource,
  { metadata, items }: Page,
  shape: ObjectShape,
): JsonObject {
  if (shape.kind === "PartialObjectMetadata") {
    const { apiVersion } = shape;
    const partial = items.map((item) => partialMetadata(item, apiVersion));
    const none = partial.length === 0;
    return { kind: "PartialObjectMetadataList", apiVersion, metadata, items: none ? null : partial };
  }
  return {
    kind: `${resource.kind}List`,
    apiVersion: groupVersion(resource),
    metadata,
    // Only items of custom resources have kind and apiVersion.
    items: resource.isCustom ? items : items.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item),
  };
}

type EventType = "ADDED" | "MODIFIED" | "DELETED";

const encoder = new TextEncoder();

// Each change is encoded once for all watchers: at most three events per shape, as they depend on the
// selector.
const encodedChanges = new WeakMap<Change, Map<string, Uint8Array>>();

/**
 * The event of a change for the watchers of a selection; `undefined` if the change is outside of it. An
 * object that enters the selection is ADDED; one that leaves it is DELETED, with its state before and the
 * resourceVersion of the change.
 */
export function encodeChange(
  change: Change,
  selection: Selection,
  shape: ObjectShape,
): Uint8Array | undefined {
  const { object, previous } = change;
  const isIn = object !== undefined && selection.matches(object);
  const wasIn = previous !== undefined && selection.matches(previous);
  if (!isIn && !wasIn) return undefined;
  const type = !isIn ? "DELETED" : wasIn ? "MODIFIED" : "ADDED";
  const encoded = getOrMake(encodedChanges, change, () => new Map<string, Uint8Array>());
  const name = `${type} ${shape.kind === "PartialObjectMetadata" ? shape.apiVersion : ""}`;
  const shown = () => shaped(isIn ? object : lastState(change, previous!), shape);
  return getOrMake(encoded, name, () => encodeEvent(type, shown()));
}

function lastState(change: Change, previous: StoredObject): StoredObject {
  return { ...previous, metadata: { ...previous.metadata, resourceVersion: String(change.revision) } };
}

export function encodeEvent(type: EventType | "BOOKMARK" | "ERROR", object: unknown): Uint8Array {
  return encoder.encode(`{"type":"${type}","object":${onOneLine(JSON.stringify(object))}}\n`);
}

/** A bookmark; the one after the initial events has an annotation. */
export function encodeBookmark(
  resource: ServedResource,
  revision: bigint,
  options: { readonly shape: ObjectShape; readonly endsInitialEvents?: boolean },
): Uint8Array {
  const bookmark = {
    kind: resource.kind,
    apiVersion: groupVersion(resource),
    metadata: {
      resourceVersion: String(revision),
      ...(options.endsInitialEvents && { annotations: { [INITIAL_EVENTS_END_ANNOTATION]: "true" } }),
    },
  };
  return encodeEvent("BOOKMARK", shaped(bookmark, options.shape));
}

export function encodeError(status: Status): Uint8Array {
  return encodeEvent("ERROR", status);
}
