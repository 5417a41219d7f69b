/**
 * Kubernetes objects: the fields that the cache reads.
 * @module
 */

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
  /** Which manager owns which field. Clients leave it out unless they are made with `keep: "everything"`. */
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

/**
 * A list's metadata.
 *
 * @category Objects and errors
 */
export interface ListMeta {
  readonly resourceVersion?: string;
  /** Where the next page begins; absent or empty on the last page. */
  readonly continue?: string;
  /** How many items come after this page, if the server says so. */
  readonly remainingItemCount?: number;
  /** The `shardSelector` that the server has applied. */
  readonly shardInfo?: { readonly selector?: string };
}

/**
 * The metadata of a value; `undefined` for a value without metadata (a string, a tombstone).
 */
export function metaOf(value: unknown): ObjectMeta | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const metadata = (value as KubernetesObject).metadata;
  return typeof metadata === "object" && metadata !== null ? metadata : undefined;
}

/** The resourceVersion of a value; `""` if its metadata has none, `undefined` if it has no metadata. */
export function resourceVersionOf(value: unknown): string | undefined {
  const metadata = metaOf(value);
  return metadata === undefined ? undefined : metadata.resourceVersion ?? "";
}
