/** Helpers for reconcilers: owners, conditions, patches, conflicts. */

import type { KubernetesObject, OwnerReference } from "../meta/object.ts";
import { isConflict } from "../meta/status.ts";
import { type Clock, realClock } from "../util/clock.ts";
import { sleep } from "../util/abort.ts";
import { isRecord, isSameJson } from "../util/json.ts";

/**
 * The part of an object's metadata that makes another object its controlling owner: the server deletes the
 * object with its owner, and a change of the object reconciles the owner.
 *
 * Mirrors controller-runtime's `SetControllerReference`.
 *
 * @throws {TypeError} The owner has no `apiVersion`, `kind`, name or uid: it was not read from a server.
 * Or only its metadata was read (`metadataOnly`), which does not say its kind.
 *
 * @example
 * ```ts
 * import { ownedBy } from "@listwatch/cache/controller";
 * const widget = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "a", namespace: "shop", uid: "u-1" } };
 * const metadata = { name: "widget-a", ...ownedBy(widget) };
 * console.log(metadata.ownerReferences[0].controller); // true
 * ```
 */
export function ownedBy(owner: KubernetesObject): { readonly ownerReferences: readonly OwnerReference[] } {
  const { apiVersion, kind, metadata: { name, uid } = {} } = owner;
  if (isMetadataOnly(owner)) {
    throw new TypeError(
      `Cannot make ${
        JSON.stringify(name ?? "")
      } an owner: only its metadata was read (metadataOnly), without its kind; give it with its own ` +
        "apiVersion and kind",
    );
  }
  if (!apiVersion || !kind || !name || !uid) {
    throw new TypeError(
      `Cannot make ${
        JSON.stringify(name ?? "")
      } an owner: apiVersion, kind, metadata.name and metadata.uid are needed; ` +
        "give the object as it was read",
    );
  }
  return { ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }] };
}

/** Whether only the metadata of an object was read: its kind is that, whatever its own kind is. */
export function isMetadataOnly({ kind }: KubernetesObject): boolean {
  return kind === "PartialObjectMetadata";
}

export function controllerOf(object: KubernetesObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

/**
 * A condition of a status.
 *
 * Mirrors `metav1.Condition`.
 */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  /** The reason, as one word in CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** When `status` changed last; RFC 3339. */
  readonly lastTransitionTime?: string;
  /** The generation of the object that the condition is about. */
  readonly observedGeneration?: number;
}

/**
 * The conditions of a status with one of them set. Its `lastTransitionTime` is the present one's while its
 * `status` stays the same, so that setting it again changes nothing.
 *
 * Mirrors `meta.SetStatusCondition` of k8s.io/apimachinery.
 *
 * @param options.now The time for a status that has changed, such as `new Date(clock.now())` with the `clock`
 *   of the reconcile; that of the system by default.
 *
 * @example
 * ```ts
 * import { withCondition } from "@listwatch/cache/controller";
 * const ready = { type: "Ready", status: "True", reason: "Configured", message: "" } as const;
 * const first = withCondition([], ready, { now: new Date(0) });
 * const second = withCondition(first, { ...ready, message: "still" }, { now: new Date(1_000) });
 * console.log(second[0].message, second[0].lastTransitionTime); // still 1970-01-01T00:00:00.000Z
 * ```
 */
export function withCondition(
  conditions: readonly Condition[] | undefined,
  condition: Condition,
  options: { readonly now?: Date } = {},
): Condition[] {
  const present = conditions?.find(({ type }) => type === condition.type);
  const { now = new Date(realClock.now()) } = options;
  const isSame = present?.status === condition.status;
  const lastTransitionTime = (isSame ? present.lastTransitionTime : undefined) ??
    condition.lastTransitionTime ?? now.toISOString();
  const set = { ...condition, lastTransitionTime };
  if (present === undefined) return [...conditions ?? [], set];
  return conditions!.map((other) => other === present ? set : other);
}

/**
 * Does something again while it fails with a conflict: reads the object, changes it, writes it.
 *
 * Mirrors `retry.RetryOnConflict` of client-go with its `DefaultRetry`: five tries, 10 ms apart.
 *
 * @throws The error of the last try, or any other.
 *
 * @example
 * ```ts
 * import { retryOnConflict } from "@listwatch/cache/controller";
 * console.log(await retryOnConflict(() => Promise.resolve("written"))); // written
 * ```
 */
export async function retryOnConflict<R>(
  write: () => Promise<R>,
  options: { readonly signal?: AbortSignal; readonly clock?: Clock } = {},
): Promise<R> {
  for (let left = 4;; left--) {
    try {
      return await write();
    } catch (error) {
      if (left === 0 || !isConflict(error)) throw error;
      await sleep(10, options);
    }
  }
}

/**
 * The JSON merge patch from one state of an object to another; `undefined` if they are equal.
 *
 * @see https://www.rfc-editor.org/rfc/rfc7396
 */
export function mergePatch(from: unknown, to: unknown): unknown {
  if (isSameJson(from, to)) return undefined;
  if (!isRecord(from) || !isRecord(to)) return to;
  const patch = new Map<string, unknown>();
  for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [before, after] = [from, to].map((object) =>
      Object.hasOwn(object, name) ? object[name] : undefined
    );
    const part = after === undefined ? (before === undefined ? undefined : null) : mergePatch(before, after);
    if (part !== undefined) patch.set(name, part);
  }
  return Object.fromEntries(patch); // keeps a field named __proto__ a field
}

/** Whether a merge patch would leave a value as it is. */
export function isPatched(patch: unknown, value: unknown): boolean {
  if (!isRecord(patch)) {
    return patch === null ? value === undefined || value === null : isSameJson(patch, value);
  }
  if (!isRecord(value)) {
    return value === undefined && Object.values(patch).every((part) => isPatched(part, undefined));
  }
  return Object.entries(patch).every(([name, part]) =>
    part === undefined || isPatched(part, Object.hasOwn(value, name) ? value[name] : undefined)
  );
}
