/** Kubernetes objects: the fields that the cache reads, their versions, and what stands for deleted ones. */

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

/** A list's metadata. */
export interface ListMeta {
  readonly resourceVersion?: string;
  /** Where the next page begins; absent or empty on the last page. */
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

/** The resourceVersion of a value; `""` if its metadata has none, `undefined` if it has no metadata. */
export function resourceVersionOf(value: unknown): string | undefined {
  const metadata = metaOf(value);
  return metadata === undefined ? undefined : metadata.resourceVersion ?? "";
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

// Of the greatest version that an API server has, 2^64 - 1.
const SERVER_DIGITS = 20;
// The layout itself, and the number of its sources.
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
