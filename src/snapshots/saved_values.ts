/** What storages save besides the texts of objects. */

import { type SavedVersion, versionOf } from "../informer/snapshot/storage.ts";
import type { ObjectHead } from "../text/object_reader.ts";
import { corrupt } from "./refusals.ts";

/**
 * The version in a value that was read.
 *
 * @throws {SnapshotFault} There is none.
 */
export function readVersion(value: unknown): SavedVersion {
  const { resourceVersion, savedAtMs, needsList, clusterUid } = (value ?? {}) as Partial<SavedVersion>;
  if (
    typeof resourceVersion === "string" && typeof savedAtMs === "number" && typeof needsList === "boolean" &&
    (clusterUid === undefined || typeof clusterUid === "string")
  ) {
    return versionOf({
      resourceVersion,
      savedAtMs,
      needsList,
      ...(clusterUid !== undefined && { clusterUid }),
    });
  }
  throw corrupt("a version in it is none");
}

/** What informers need of a head. */
export function savedHead({ apiVersion, kind, metadata }: ObjectHead): ObjectHead {
  const { name, namespace, uid, resourceVersion, labels } = metadata ?? {};
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion, labels } } as ObjectHead;
}

/**
 * The value of a JSON text.
 *
 * @throws {SnapshotFault} It is no JSON.
 */
export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw corrupt("a value in it is no JSON", error);
  }
}
