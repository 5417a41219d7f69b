/**
 * The interface between an informer and the code that loads and saves its snapshot, which only programs that
 * have a snapshot carry.
 * @module
 */

import type { VersionProof } from "../meta/list_watch.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import type { VersionWaiters } from "../meta/version_waiters.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import type { Quarantine } from "../reflector/quarantine.ts";
import type { ReflectedSnapshot } from "../reflector/reflector_wiring.ts";
import type { ReflectorPhase, ReflectorStatus } from "../reflector/status.ts";
import type { Cache } from "../store/cache.ts";
import type { Held } from "../store/holding.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import type { Pace } from "../util/turns.ts";
import type { StoreEvent } from "./store_event.ts";

/** What a {@linkcode SnapshotRun} needs of its informer. */
export interface SnapshotContext<T> {
  /** For log lines. */
  readonly name: string;
  readonly resource: GroupVersionResource | undefined;
  /** As `ListerWatcher.clusterUid`. */
  readonly clusterUid: ((signal: AbortSignal) => Promise<string>) | undefined;
  /** As `ListerWatcher.identity`. */
  readonly sourceIdentity: string | undefined;
  readonly store: Pick<Cache<T, never>, "held" | "holding">;
  /** Receives each object that is loaded before it is stored: it was transformed before it was saved. */
  readonly accept: ((object: Held<T>) => void) | undefined;
  readonly quarantine: Quarantine;
  /** A source of the versions of the same objects. */
  readonly metadata: ListerWatcher<KubernetesObject> | undefined;
  readonly waiters: VersionWaiters;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  /** The last contact with the server, by the wall clock. */
  lastContactMs(): number | undefined;
  /** As `SharedIndexInformer.proven`. */
  proven(proof: VersionProof): boolean;
  /** The content of the snapshot is in the store. */
  onRestored(): void;
  /** The server has confirmed it; `isComplete` as for `ListWatchLoop.confirmed`. */
  onConfirmed(confirmation: { readonly isComplete: boolean }): void;
}

/**
 * How a snapshot is doing.
 *
 * @category Snapshots
 */
export interface SnapshotStatus {
  /**
   * What came of the load: `none` was there; `refused`: it could not be used, as
   * {@linkcode SnapshotStatus.refusal} says. In both cases everything is listed.
   */
  readonly load: "loading" | "restored" | "none" | "refused";
  /** Why the snapshot was refused. */
  readonly refusal?: string;
  /** What identifies the cluster: the uid of its namespace `kube-system`, once that was read. It is saved. */
  readonly clusterUid?: string;
  /**
   * Why that cannot be read, if so: it may be forbidden. Then another cluster that responds at the same
   * address is detected by its resource versions only, and not if they have passed those of the snapshot.
   */
  readonly clusterUnknown?: string;
  /** The version of the content that was saved last, or loaded. */
  readonly savedResourceVersion?: string;
  /** When that was saved by this informer, in milliseconds since the epoch. */
  readonly lastSaveTimeMs?: number;
  /** How many saves in a row have failed; 0 while all is well. */
  readonly failedSaves: number;
  /** What the last save failed with, if any ever did. */
  readonly lastError?: string;
}

/**
 * How an informer is doing: its reflector, and its snapshot.
 *
 * @category Snapshots
 */
export interface InformerStatus extends ReflectorStatus {
  /** The snapshot whose content the store has, while the server has not confirmed it; `lagMs` is its age. */
  readonly restored?: {
    readonly resourceVersion: string;
    /** The last contact that it reflects, in milliseconds since the epoch. */
    readonly savedAtMs: number;
  };
  /** How its snapshot is doing, if it has one. */
  readonly snapshot?: SnapshotStatus;
}

/** The snapshot of a running informer. */
export interface SnapshotRun<T> extends ReflectedSnapshot {
  /** Whether a list or a confirmation by the server is still due before the informer has synced. */
  readonly isPending: boolean;
  /** Receives every event of the store, in its turn, before any other observer. */
  observe(event: StoreEvent<Held<T>>): void;
  /** The reflector has entered a phase, or made progress within it. */
  entered(phase: ReflectorPhase): void;
  /** Its part of the informer's status. */
  status(): Pick<InformerStatus, "restored" | "snapshot">;
  /** Saves what is not saved yet, and closes the storage. Bounded in time; never rejects. */
  stop(): Promise<void>;
}
