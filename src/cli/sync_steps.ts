/**
 * What is worth telling about informers while they sync and run.
 * @module
 */

import type { ReflectorStatus } from "../reflector/status.ts";
import { type Clock, monotonicNow } from "../util/clock.ts";
import type { ReflectedResource } from "./dashboard/reflected_resource.ts";
import { briefReason } from "./errors.ts";
import type { ServeStep, SyncProgress } from "./serve_options.ts";

// One failed try is an API server that restarts; it is not worth a line.
const TRIES_BEFORE_TROUBLE = 2;

/**
 * Tells the steps `syncing`, `synced`, `trouble` and `recovered` of informers that are about to run.
 *
 * An outage is one trouble, however many resources suffer of it: it is told once per kind of error, and over when every
 * resource is read again.
 *
 * @returns How to stop.
 */
export function tellSteps(
  resources: readonly ReflectedResource[],
  clock: Clock,
  tell: (step: ServeStep) => void,
): () => void {
  const startMs = monotonicNow(clock);
  const inTrouble = new Set<ReflectedResource>();
  const told = new Set<string>();
  let isOver = false;
  let isSynced = false;

  const progress = (): SyncProgress[] =>
    resources.map(({ name, informer }) => {
      const { progress } = informer.status();
      return {
        resource: name,
        synced: informer.hasSynced(),
        items: informer.hasSynced() ? informer.indexer.size : progress?.items ?? 0,
        ...(progress?.remaining !== undefined && { remaining: progress.remaining }),
      };
    });
  const onStatus = (resource: ReflectedResource, status: ReflectorStatus): void => {
    if (!isSynced) tell({ type: "syncing", progress: progress() });
    const { outage, lastError } = status;
    if (outage !== undefined && outage.failedTries >= TRIES_BEFORE_TROUBLE && lastError !== undefined) {
      inTrouble.add(resource);
      if (told.has(lastError.code)) return;
      told.add(lastError.code);
      tell({ type: "trouble", resource: resource.name, message: briefReason(lastError) });
    } else if (outage === undefined && inTrouble.delete(resource) && inTrouble.size === 0) {
      told.clear();
      tell({ type: "recovered", resource: resource.name });
    }
  };
  const unlisten = resources.map((resource) =>
    resource.informer.onStatus((status) => onStatus(resource, status))
  );
  const onSynced = (): void => {
    if (isOver) return;
    isSynced = true;
    const objects = resources.reduce((sum, { informer }) => sum + informer.indexer.size, 0);
    tell({ type: "synced", objects, durationMs: Math.round(monotonicNow(clock) - startMs) });
  };
  // Rejected when an informer is stopped before: there is nothing to tell then.
  Promise.all(resources.map(({ informer }) => informer.synced())).then(onSynced, () => {});
  return () => {
    isOver = true;
    for (const stop of unlisten) stop();
  };
}
