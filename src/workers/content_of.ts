import {
  type InformerSnapshot,
  newInformerSnapshot,
  type SnapshotOptions,
} from "../informer/snapshot/informer_snapshot.ts";
import type { SharedIndexInformer } from "../informer/shared_informer.ts";
import {
  type LoadedSnapshot,
  type SnapshotEntry,
  type SnapshotIdentity,
  SnapshotRefusedError,
} from "../informer/snapshot/storage.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { formatResource } from "../meta/resource.ts";
import type { Cache } from "../store/cache.ts";
import { type Clock, realClock } from "../util/clock.ts";

/**
 * Lets an informer begin with the content of an earlier one of the same source, and continue by a watch: for
 * Workers, where the runtime freezes an informer soon after the request that has started it. Nothing is
 * copied, and nothing is saved.
 *
 * Until the API server has confirmed it, the content is served as what it is: with its age, and
 * `Cache-Synced: false`.
 *
 * @param previous The earlier informer, which may be frozen, or still run for a while; `undefined`: there is
 * none. It must hold its objects in the same form (`storage`).
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { contentOf } from "@listwatch/cache/workers";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const first = new SharedIndexInformer(pods, { snapshot: contentOf(undefined) });
 * await first.run(AbortSignal.timeout(10));
 * const second = new SharedIndexInformer(pods, { snapshot: contentOf(first) });
 * console.log(second.isRestored()); // false: it does not run yet
 * ```
 */
export function contentOf<T extends KubernetesObject, I extends string>(
  previous: SharedIndexInformer<T, I> | undefined,
  options: SnapshotOptions & { readonly clock?: Clock } = {},
): InformerSnapshot {
  const { clock = realClock, ...rest } = options;
  let earlier = previous;
  const load = (identity: SnapshotIdentity) => {
    const informer = earlier;
    earlier = undefined; // not held any longer than it is needed
    return informer && contentNow(informer, identity, clock);
  };
  // The informer itself is what the next one takes it from.
  return newInformerSnapshot({ load, save() {} }, rest);
}

function contentNow<T extends KubernetesObject, I extends string>(
  previous: SharedIndexInformer<T, I>,
  identity: SnapshotIdentity,
  clock: Clock,
): LoadedSnapshot | undefined {
  if (!previous.hasSynced() && !previous.isRestored()) return undefined;
  const { resource, indexer } = previous;
  if (resource !== undefined && formatResource(resource) !== identity.resource) {
    throw new SnapshotRefusedError(
      "other-identity",
      `the earlier informer has ${formatResource(resource)}`,
    );
  }
  const { held } = indexer as Cache<T, I>;
  const entries = held.listKeys().map((key): SnapshotEntry => ({
    key,
    json: "",
    held: held.getByKey(key),
  }));
  const { lagMs = 0, snapshot: { clusterUid } = {} } = previous.status();
  return {
    resourceVersion: indexer.lastStoreSyncResourceVersion(),
    savedAtMs: clock.now() - lagMs,
    needsList: false,
    ...(clusterUid !== undefined && { clusterUid }),
    count: entries.length,
    entries: () => [entries],
  };
}
