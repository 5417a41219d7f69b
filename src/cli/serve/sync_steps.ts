/** Reports the progress and outages of informers. */

import type { ReflectorStatus } from "../../reflector/status.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import type { ReflectedResource } from "../dashboard/reflected_resource.ts";
import { briefReason } from "../errors.ts";
import type { ServeStep, SyncProgress } from "./serve_options.ts";

// A single failed attempt, such as while an API server restarts, is not reported.
const TRIES_BEFORE_TROUBLE = 2;

/**
 * Reports the steps `syncing`, `synced`, `trouble` and `recovered` of informers that will run.
 *
 * An outage is reported once per error code for all resources together, and is over when no resource fails.
 *
 * @returns A function that stops the reports.
 */
export function reportSteps(
  resources: readonly ReflectedResource[],
  options: {
    readonly clock: Clock;
    readonly report: (step: ServeStep) => void;
    /** Resolves when readers receive every resource's first list. */
    readonly synced: () => Promise<void>;
  },
): () => void {
  const { clock, report } = options;
  const startMs = monotonicNow(clock);
  const inTrouble = new Set<ReflectedResource>();
  const reported = new Set<string>();
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
    if (!isSynced) report({ type: "syncing", progress: progress() });
    const { outage, lastError } = status;
    if (outage !== undefined && outage.failedTries >= TRIES_BEFORE_TROUBLE && lastError !== undefined) {
      inTrouble.add(resource);
      if (reported.has(lastError.code)) return;
      reported.add(lastError.code);
      report({ type: "trouble", resource: resource.name, message: briefReason(lastError) });
    } else if (outage === undefined && inTrouble.delete(resource) && inTrouble.size === 0) {
      reported.clear();
      report({ type: "recovered", resource: resource.name });
    }
  };
  const unlisten = resources.map((resource) =>
    resource.informer.onStatus((status) => onStatus(resource, status))
  );
  const onSynced = (): void => {
    if (isOver) return;
    isSynced = true;
    const objects = resources.reduce((sum, { informer }) => sum + informer.indexer.size, 0);
    report({ type: "synced", objects, durationMs: Math.round(monotonicNow(clock) - startMs) });
  };
  // Rejects when an informer is stopped first: there is nothing to report then.
  options.synced().then(onSynced, () => {});
  return () => {
    isOver = true;
    for (const stop of unlisten) stop();
  };
}
