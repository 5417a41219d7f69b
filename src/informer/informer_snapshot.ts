/**
 * What an informer's option `snapshot` takes.
 * @module
 */

import { requireNumbers } from "../util/require_number.ts";
import type { SnapshotStorage } from "./snapshot.ts";

/**
 * Options of a snapshot, whatever it is stored in. All may be left out.
 *
 * @example
 * ```ts
 * import type { SnapshotOptions } from "@listwatch/cache/informer";
 * const options: SnapshotOptions = { intervalMs: 5_000, identity: "transform 3" };
 * ```
 *
 * @category Snapshots
 */
export interface SnapshotOptions {
  /**
   * How long changes are gathered before they are saved, in milliseconds; 1,000 by default. What happens in the last such
   * time before a crash is not saved, and comes again by the watch. Not for a storage that saves in the turn.
   */
  readonly intervalMs?: number;
  /**
   * How long the storage may take to load, in milliseconds; 30,000 by default. Then the snapshot is refused, and
   * everything is listed.
   */
  readonly loadTimeoutMs?: number;
  /** How long a stop waits for the last save, in milliseconds; 10,000 by default. */
  readonly stopTimeoutMs?: number;
  /**
   * A text that changes whenever the same objects of the server are held otherwise: after a change of the transform, of the
   * key function or of the source's schema. A snapshot with another text is refused. Required beside a transform.
   */
  readonly identity?: string;
}

/**
 * What an informer's option `snapshot` takes: a storage and its options. For one informer.
 *
 * @example
 * ```ts
 * import { type InformerSnapshot, newInformerSnapshot, type SnapshotStorage } from "@listwatch/cache/informer";
 * function snapshotIn(storage: SnapshotStorage): InformerSnapshot {
 *   return newInformerSnapshot(storage, { intervalMs: 5_000 });
 * }
 * ```
 *
 * @category Snapshots
 */
export interface InformerSnapshot {
  readonly storage: SnapshotStorage;
  readonly options: SnapshotOptions;
}

/**
 * Makes what an informer's option `snapshot` takes of a storage. The functions that make a storage of the library
 * return it already.
 *
 * @throws {RangeError} A time among the options is negative or `NaN`.
 *
 * @example
 * ```ts
 * import { newInformerSnapshot, type SnapshotStorage } from "@listwatch/cache/informer";
 * const nothingSaved: SnapshotStorage = { load: () => undefined, save() {} };
 * const snapshot = newInformerSnapshot(nothingSaved, { intervalMs: 5_000 });
 * console.log(snapshot.options.intervalMs); // 5000
 * ```
 *
 * @category Snapshots
 */
export function newInformerSnapshot(
  storage: SnapshotStorage,
  options: SnapshotOptions = {},
): InformerSnapshot {
  const { intervalMs, loadTimeoutMs, stopTimeoutMs } = options;
  requireNumbers("keep a snapshot", { intervalMs });
  requireNumbers("keep a snapshot", { loadTimeoutMs, stopTimeoutMs }, { mayBeInfinite: true });
  return { storage, options };
}
