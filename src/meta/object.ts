/**
 * Kubernetes objects: the fields that the cache reads, their versions and keys, and what stands for deleted
 * ones.
 */

import { atOnce, CacheError, errorMessage } from "../util/errors.ts";

/**
 * A reference to the owner of an object.
 *
 * @category Objects and errors
 */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/**
 * An object's metadata. Every field may be missing; a missing `namespace` means cluster-scoped.
 *
 * @category Objects and errors
 */
export interface ObjectMeta {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly uid?: string;
  /** An opaque version; compare with {@linkcode compareResourceVersions} only. */
  readonly resourceVersion?: string;
  readonly generation?: number;
  /** RFC 3339. */
  readonly creationTimestamp?: string | null;
  /** RFC 3339; set as soon as a graceful deletion starts. */
  readonly deletionTimestamp?: string | null;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
  /** The fields of each manager. Clients leave it out unless they are made with `keep: "everything"`. */
  readonly managedFields?: readonly unknown[];
}

/**
 * Any Kubernetes object: the minimum that the cache requires of a type. All readers of the cache share its
 * objects and must not change them.
 *
 * @category Objects and errors
 */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata?: ObjectMeta;
}

/** A list's metadata. */
export interface ListMeta {
  readonly resourceVersion?: string;
  /** The token of the next page; absent or empty on the last page. */
  readonly continue?: string;
  /** How many items come after this page, if the server says so. */
  readonly remainingItemCount?: number;
  /** The `shardSelector` that the server has applied. */
  readonly shardInfo?: { readonly selector?: string };
}

/** The metadata of a value; `undefined` for a value without metadata (a string, a tombstone). */
export function metaOf(value: unknown): ObjectMeta | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const metadata = (value as KubernetesObject).metadata;
  return typeof metadata === "object" && metadata !== null ? metadata : undefined;
}

/** Whether a list or an object is a Table of the server, whose rows are no objects. */
export function isTable({ kind, apiVersion }: { kind?: unknown; apiVersion?: unknown }): boolean {
  return kind === "Table" && (apiVersion === "meta.k8s.io/v1" || apiVersion === "meta.k8s.io/v1beta1");
}

/** The resourceVersion of a value; `""` if its metadata has none, `undefined` if it has no metadata. */
export function resourceVersionOf(value: unknown): string | undefined {
  const metadata = metaOf(value);
  return metadata === undefined ? undefined : metadata.resourceVersion ?? "";
}

/**
 * Whether two states of one object are the same state, by their content. The same uid and resourceVersion do
 * not prove it: a server that was restored from a backup gives versions twice, and one that makes its objects
 * up (`metrics.k8s.io`) may leave the version as it is while they change. Another resourceVersion does prove
 * that it is another state; the content is compared only if both are the same.
 */
export function isSameState<H>(holding: { isSameContent(a: H, b: H): boolean }, a: H, b: H): boolean {
  return a === b || (resourceVersionOf(a) === resourceVersionOf(b) && holding.isSameContent(a, b));
}

/**
 * Compares two resourceVersions: -1 when `a` is older, 0 when they are the same, 1 when `a` is newer.
 *
 * They are decimal numbers of any length without leading zeros: compared by length and then by digits. The
 * empty version is older than every other. Mirrors Kubernetes' `CompareResourceVersion` (KEP-5504).
 *
 * @example
 * ```ts
 * import { compareResourceVersions } from "@listwatch/cache";
 * console.log(compareResourceVersions("9", "10")); // -1
 * console.log(compareResourceVersions("18446744073709551616", "18446744073709551615")); // 1
 * ```
 *
 * @category Objects and errors
 */
export function compareResourceVersions(a: string, b: string): -1 | 0 | 1 {
  if (a === b) return 0;
  if (a.length !== b.length) return a.length < b.length ? -1 : 1;
  return a < b ? -1 : 1;
}

/**
 * Whether a text is a resourceVersion that can be compared: decimal digits without a leading zero.
 *
 * @example
 * ```ts
 * import { isComparableResourceVersion } from "@listwatch/cache/store";
 * console.log(isComparableResourceVersion("42"), isComparableResourceVersion("abc")); // true false
 * ```
 */
export function isComparableResourceVersion(text: string): boolean {
  return /^[1-9][0-9]*$/.test(text);
}

/**
 * The layout of a merged resourceVersion (merged_version.ts), as text; `""` for the version of one server,
 * which has 20 digits at most. Versions of different layouts say nothing about each other.
 */
export function layoutOf(version: string): string {
  return version.length > SERVER_DIGITS ? version.slice(-LAYOUT_DIGITS) : "";
}

// The digits of an API server's greatest version, 2^64 - 1.
const SERVER_DIGITS = 20;
// The digits of the layout itself, and of the number of its sources.
const LAYOUT_DIGITS = 13;

/** Whether a resourceVersion is known to be older: both are numbers, of one layout, and it is the lesser. */
export function isOlder(version: string, than: string): boolean {
  return compareResourceVersions(version, than) < 0 && isComparableResourceVersion(version) &&
    isComparableResourceVersion(than) && layoutOf(version) === layoutOf(than);
}

/**
 * A tombstone: the object was deleted, and the cache did not see the delete. A list no longer had the object,
 * so {@linkcode DeletedFinalStateUnknown.object} is the last state that the cache knew, which may be stale,
 * or `undefined`. Mirrors client-go's `DeletedFinalStateUnknown`.
 *
 * @example
 * ```ts
 * import { DeletedFinalStateUnknown } from "@listwatch/cache";
 * const tombstone = new DeletedFinalStateUnknown("shop/web-1", { metadata: { name: "web-1", namespace: "shop" } });
 * console.log(tombstone.key, tombstone.finalStateUnknown); // shop/web-1 true
 * ```
 *
 * @category Informers
 */
export class DeletedFinalStateUnknown<T> {
  /** Always true; distinguishes a tombstone from a delete that was seen. */
  readonly finalStateUnknown = true as const;
  readonly key: string;
  /** The last known state, if there is one. */
  readonly object: T | undefined;

  constructor(key: string, object: T | undefined) {
    this.key = key;
    this.object = object;
  }
}

/**
 * A delete that the cache saw: {@linkcode Deleted.object} is the object's final state, as the server sent it.
 *
 * @category Informers
 */
export interface Deleted<T> {
  readonly finalStateUnknown: false;
  readonly key: string;
  readonly object: T;
}

/**
 * The argument of a delete handler: a delete that was seen, or a tombstone. `finalStateUnknown` distinguishes
 * them and narrows the type: `object` may be `undefined` in a tombstone only.
 * Mirrors client-go's `DeletedObject`, which replaces a type assertion that many handlers lacked.
 *
 * @category Informers
 */
export type DeletedObject<T> = Deleted<T> | DeletedFinalStateUnknown<T>;

/**
 * Computes the key of a value; must always return the same key for the same object.
 * @throws Anything; stores wrap it in a {@linkcode KeyError}.
 *
 * @category Keys, indices, listers
 */
export type KeyFunc = (value: unknown) => string;

/** A key function was called with a value that has no metadata. */
export class NoMetaError extends CacheError {
  constructor(value: unknown) {
    super("NoMeta", `object has no meta: ${describeValue(value)} is not a Kubernetes object with metadata`);
  }
}

/**
 * A store or queue could not compute the key of an object; `cause` is what the key function threw. The call
 * that threw it changed nothing. Mirrors client-go's `KeyError`.
 */
export class KeyError extends CacheError {
  readonly object: unknown;
  /** The operation that needed the key, such as `add`. */
  readonly operation: string;

  constructor(object: unknown, operation: string, cause: unknown) {
    const why = `couldn't create key for ${describeValue(object)}: ${errorMessage(cause)}`;
    super("KeyError", `Cannot ${operation} an object: ${why}`, { cause });
    this.object = object;
    this.operation = operation;
  }
}

/** A key has more than one slash. */
export class UnexpectedKeyFormatError extends CacheError {
  readonly key: string;

  constructor(key: string) {
    const given = JSON.stringify(key);
    super("UnexpectedKeyFormat", `unexpected key format: ${given} (want "namespace/name" or "name")`);
    this.key = key;
  }
}

/**
 * A value whose key is the given text: for methods of a store that accept an object, when only its key is
 * known. Mirrors client-go's `ExplicitKey`.
 */
export class ExplicitKey {
  readonly key: string;

  constructor(key: string) {
    this.key = key;
  }
}

/**
 * An object in another form than its own: immutable, and as good as the object where only its key and this
 * metadata matter (`metaOf` and `resourceVersionOf` read it).
 */
export abstract class HeldObject {
  /** The key of the object, as the key function returns it. */
  abstract readonly key: string;
  /** `undefined` for an object without metadata. */
  abstract readonly metadata: {
    readonly uid: string | undefined;
    readonly resourceVersion: string | undefined;
    readonly namespace: string | undefined;
    readonly labels: Readonly<Record<string, string>> | undefined;
  } | undefined;
}

/**
 * `namespace/name`, or `name` for a cluster-scoped object; the key of an {@linkcode ExplicitKey}. A tombstone
 * is refused: see {@linkcode deletionHandlingMetaNamespaceKey}. Mirrors client-go's `MetaNamespaceKeyFunc`.
 * @throws {NoMetaError} The value has no metadata.
 *
 * @example
 * ```ts
 * import * as cache from "@listwatch/cache";
 * console.log(cache.metaNamespaceKey({ metadata: { namespace: "shop", name: "web-1" } })); // shop/web-1
 * console.log(cache.metaNamespaceKey({ metadata: { name: "node-1" } })); // node-1
 * const tombstone = new cache.DeletedFinalStateUnknown("shop/web-1", undefined);
 * console.log(cache.splitMetaNamespaceKey(cache.deletionHandlingMetaNamespaceKey(tombstone)).name); // web-1
 * ```
 *
 * @category Keys, indices, listers
 */
export function metaNamespaceKey(value: unknown): string {
  const metadata = metaOf(value);
  if (metadata === undefined) {
    if (value instanceof ExplicitKey) return value.key;
    throw new NoMetaError(value);
  }
  const { namespace, name = "" } = metadata;
  return namespace ? `${namespace}/${name}` : name;
}

/**
 * As {@linkcode metaNamespaceKey}, but the key of a tombstone is the one it was made with. Informers use this
 * one. Mirrors client-go's `DeletionHandlingMetaNamespaceKeyFunc`.
 * @throws {NoMetaError} The value is no tombstone and has no metadata.
 *
 * @category Keys, indices, listers
 */
export function deletionHandlingMetaNamespaceKey(value: unknown): string {
  return value instanceof DeletedFinalStateUnknown ? value.key : metaNamespaceKey(value);
}

/**
 * A namespace and a name. Mirrors client-go's `ObjectName`.
 *
 * @category Keys, indices, listers
 */
export interface ObjectName {
  /** Empty for a cluster-scoped object. */
  readonly namespace: string;
  readonly name: string;
}

/** The key of an object name, in the format of {@linkcode metaNamespaceKey}. */
export function formatObjectName(objectName: ObjectName): string {
  return objectName.namespace === "" ? objectName.name : `${objectName.namespace}/${objectName.name}`;
}

/**
 * Splits a key of {@linkcode metaNamespaceKey}.
 *
 * Mirrors client-go's `SplitMetaNamespaceKey`: `""` has two empty parts, `"a/"` the namespace `a` and no
 * name.
 * @throws {UnexpectedKeyFormatError} There is more than one slash.
 *
 * @category Keys, indices, listers
 */
export function splitMetaNamespaceKey(key: string): ObjectName {
  const slash = key.indexOf("/");
  if (slash < 0) return { namespace: "", name: key };
  if (key.indexOf("/", slash + 1) >= 0) throw new UnexpectedKeyFormatError(key);
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/**
 * Parses a key into an object name; the same as {@linkcode splitMetaNamespaceKey}, by client-go's newer name.
 * @throws {UnexpectedKeyFormatError} There is more than one slash.
 */
export function parseObjectName(key: string): ObjectName {
  return splitMetaNamespaceKey(key);
}

/**
 * The name of an object. Unlike {@linkcode metaNamespaceKey} it does not accept an {@linkcode ExplicitKey}.
 * Mirrors client-go's `ObjectToName`.
 * @throws {NoMetaError} The value has no metadata.
 *
 * @example
 * ```ts
 * import { DeletedFinalStateUnknown, metaNamespaceKey } from "@listwatch/cache";
 * import * as store from "@listwatch/cache/store";
 * console.log(store.objectToName({ metadata: { namespace: "shop", name: "web-1" } }).name); // web-1
 * const tombstone = new DeletedFinalStateUnknown("shop/web-1", undefined);
 * console.log(store.deletionHandlingObjectToName(tombstone).namespace); // shop
 * console.log(store.formatObjectName(store.parseObjectName("shop/web-1"))); // shop/web-1
 * console.log(metaNamespaceKey(new store.ExplicitKey("shop/web-1"))); // shop/web-1
 * ```
 */
export function objectToName(value: unknown): ObjectName {
  const metadata = metaOf(value);
  if (metadata === undefined) throw new NoMetaError(value);
  return { namespace: metadata.namespace ?? "", name: metadata.name ?? "" };
}

/**
 * As {@linkcode objectToName}, but the name of a tombstone is the one in its key.
 * Mirrors client-go's `DeletionHandlingObjectToName`.
 * @throws {NoMetaError} The value is no tombstone and has no metadata.
 * @throws {UnexpectedKeyFormatError} The tombstone's key does not parse.
 */
export function deletionHandlingObjectToName(value: unknown): ObjectName {
  return value instanceof DeletedFinalStateUnknown ? parseObjectName(value.key) : objectToName(value);
}

/**
 * Calls a key function, unless the object knows its key, and wraps what it throws, so that every store and
 * queue reports it in the same way.
 */
export function keyOf(keyFunc: KeyFunc, value: unknown, operation: string): string {
  if (value instanceof HeldObject) return value.key;
  let key: unknown;
  try {
    key = keyFunc(value);
  } catch (error) {
    throw error instanceof KeyError ? error : new KeyError(value, operation, error);
  }
  if (typeof key === "string") return key;
  throw new KeyError(
    value,
    operation,
    new TypeError(`the key function returned ${typeof atOnce(key)}, not a string`),
  );
}

/** A value in the words of error texts: its kind and name if it has them, else its type. */
export function describeValue(value: unknown): string {
  if (value instanceof ExplicitKey) return `the key ${JSON.stringify(value.key)}`;
  if (value instanceof DeletedFinalStateUnknown) return `the tombstone of ${JSON.stringify(value.key)}`;
  const metadata = metaOf(value);
  if (metadata !== undefined) {
    const { kind = "object" } = value as { kind?: string };
    const name = metaNamespaceKey(value);
    return name === "" ? `${kind} without a name` : `${kind} ${JSON.stringify(name)}`;
  }
  if (value === null) return "null";
  return typeof value === "string"
    ? `the string ${JSON.stringify(value.slice(0, 80))}`
    : `a value of type ${typeof value}`;
}
