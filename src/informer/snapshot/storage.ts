/**
 * Snapshots: the content of an informer, saved as it changes and loaded at the next start.
 *
 * These are the types between an informer, the code that loads and saves its snapshot (which only programs
 * that have one carry), and what stores it.
 *
 * @module
 */

import type { ObjectHead } from "../../text/object_reader.ts";
import { CacheError } from "../../util/errors.ts";
import { defined } from "../../util/json.ts";
import type { Reflector } from "../../reflector/reflector.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import type { Quarantine } from "../../reflector/quarantine.ts";
import type { ReflectedSnapshot } from "../../reflector/reflector_options.ts";
import type { ReflectorPhase, ReflectorStatus } from "../../reflector/state.ts";
import type { Cache } from "../../store/cache.ts";
import type { Held } from "../../store/holding.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import type { Metrics } from "../../util/metrics.ts";
import type { Pace } from "../../util/turns.ts";
import type { StoreEvent } from "../events.ts";
import type { InformerWaits } from "../waits.ts";

/**
 * The identity of a snapshot's content. Content of another identity is refused: it may lack objects, or have
 * others.
 */
export interface SnapshotIdentity {
  /** The resource, such as `apps/v1/deployments`; the informer's name where the resource is not known. */
  readonly resource: string;
  /**
   * Everything else that decides what the content is, in one text to compare: server, namespace, selectors,
   * shard, the fields that are kept or dropped, and what the program says of its transform.
   */
  readonly source: string;
}

/** An object of a loaded snapshot. */
export interface SnapshotEntry {
  readonly key: string;
  /**
   * The JSON text as it was saved, a string of its own. Not read where {@linkcode SnapshotEntry.held} is
   * there.
   */
  readonly json: string;
  /**
   * The {@linkcode SnapshotPut.head} of the object when it was saved, if the storage has it. With it, an
   * informer that holds texts (`texts()`, `shortTexts()`) does not parse the JSON text.
   */
  readonly head?: ObjectHead;
  /** The object in the form in which the informer holds it, if the storage is what holds it, too. */
  readonly held?: unknown;
}

/** A snapshot that is there. */
export interface LoadedSnapshot extends SavedVersion {
  /** How many objects there are. */
  readonly count: number;
  /**
   * All objects, in batches of at most a few thousand; called once. If it throws, or returns another number
   * of objects than {@linkcode LoadedSnapshot.count}, the whole snapshot is refused. It may be ended early
   * (`return`).
   */
  entries(): Iterable<readonly SnapshotEntry[]> | AsyncIterable<readonly SnapshotEntry[]>;
}

/**
 * One object to save. It does not change: {@linkcode SnapshotPut.json} may be called at any time until the
 * save has settled, and returns the state at the save's version.
 */
export interface SnapshotPut {
  readonly key: string;
  /** The object in the form in which the informer holds it. */
  readonly held: unknown;
  /** The object's type and metadata, which an informer needs in order to hold its text without reading it. */
  readonly head: ObjectHead;
  /**
   * The object's JSON text; that of the server, if the informer holds texts.
   * @throws {TypeError} The object cannot be written as JSON and read again, as after a transform to dates or
   * maps.
   */
  json(): string;
}

/** The saved part of a content's version. */
export interface SavedVersion {
  /** The version of the content. */
  readonly resourceVersion: string;
  /**
   * The version at which the next watch begins, if it is an earlier one: a list has shown the same content at
   * both, while events of objects that were created and deleted in between may be on their way.
   */
  readonly watchedVersion?: string;
  /**
   * The last contact with the server before this content was read: wall clock, in milliseconds since the
   * epoch.
   */
  readonly savedAtMs: number;
  /**
   * A watch from this version would not be enough, as changes before it were lost, or it is no particular
   * version: the informer that loads the content lists, and compares.
   */
  readonly needsList: boolean;
  /**
   * The identity of the cluster, whatever its address, as `ListerWatcher.clusterUid`; absent if it is not
   * known.
   */
  readonly clusterUid?: string;
}

/**
 * The data of a save: exactly the differences between the content at {@linkcode SavedVersion.resourceVersion}
 * and the content of the save before.
 */
export interface SnapshotChange extends SavedVersion {
  /** The content is exactly {@linkcode SnapshotChange.puts}: nothing that was saved before counts. */
  readonly replaces: boolean;
  readonly puts: readonly SnapshotPut[];
  /** Keys of objects that are no longer there; some may never have been saved. */
  readonly deletes: readonly string[];
}

/** The version alone, of a change or of what was saved. */
export function versionOf(version: SavedVersion): SavedVersion {
  const { resourceVersion, watchedVersion, savedAtMs, needsList, clusterUid } = version;
  return defined({ resourceVersion, watchedVersion, savedAtMs, needsList, clusterUid });
}

/**
 * The storage of an informer's snapshot. One storage serves one informer.
 *
 * Its methods are called one after the other: the load first, which ends when {@linkcode
 * LoadedSnapshot.entries} was read to its end; then saves; then, once, `close`. Each is called when the one
 * before it has settled, however long that takes.
 */
export interface SnapshotStorage {
  /**
   * The snapshot, or `undefined` if there is none. Called once, before anything is saved; later saves are of
   * this identity.
   * @param signal The informer no longer waits: it has stopped, or the load takes too long. Nothing is saved
   * before the load has settled, so a storage that may wait for long should then reject.
   * @throws {SnapshotRefusedError} The stored content cannot be used. The informer reports that, lists,
   * and saves everything.
   */
  load(
    identity: SnapshotIdentity,
    signal?: AbortSignal,
  ): LoadedSnapshot | undefined | Promise<LoadedSnapshot | undefined>;
  /**
   * Saves all of a change or nothing of it, also when the process is killed meanwhile. Not called again
   * before it has settled. If it fails, the next change {@linkcode SnapshotChange.replaces} everything.
   */
  save(change: SnapshotChange): void | Promise<void>;
  /**
   * `true`: every change of the content is saved in the turn that it happens, before readers can see it, by a
   * {@linkcode SnapshotStorage.save} that is synchronous. Otherwise changes are gathered.
   */
  readonly savesInTurn?: boolean;
  /** Called once, when the informer has stopped, and also after a load that was refused. */
  close?(): void | Promise<void>;
}

/**
 * Why a snapshot is refused.
 *
 * - `torn`: a write was cut off, and nothing before it can be used. `truncated`: its end is missing.
 *   `corrupt`: a checksum or a text is wrong.
 * - `foreign`: it is no snapshot. `newer-format`: a later version of the library wrote it.
 * - `other-identity`: it is of another resource or source. `in-use`: another informer has it. `unreadable`:
 *   the storage failed. `timeout`: it took too long.
 */
export type SnapshotRefusal =
  | "torn"
  | "truncated"
  | "corrupt"
  | "foreign"
  | "newer-format"
  | "other-identity"
  | "in-use"
  | "unreadable"
  | "timeout";

/** A snapshot cannot be used. The informer reports it and lists. */
export class SnapshotRefusedError extends CacheError {
  /** Why, in a word. */
  readonly reason: SnapshotRefusal;

  /** Makes the error; `detail` says what was found, and where. */
  constructor(reason: SnapshotRefusal, detail: string, { cause }: { readonly cause?: unknown } = {}) {
    super("SnapshotRefused", `Cannot use the snapshot: ${detail} (${reason})`, { cause });
    this.reason = reason;
  }
}

export interface SnapshotContext<T> {
  /** The name in log lines. */
  readonly name: string;
  readonly source: ListerWatcher<unknown>;
  readonly store: Pick<Cache<T, never>, "held" | "holding">;
  /** The informer's options. */
  readonly informer: { readonly transform?: unknown; readonly freezeObjects?: boolean };
  /** The objects that were transformed: those that are loaded were, before they were saved. */
  readonly accepted: WeakSet<WeakKey>;
  readonly quarantine: Quarantine;
  readonly waits: InformerWaits;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  /** The reflector that fills the store; there once the informer runs. */
  reflector(): Pick<Reflector<unknown>, "status" | "proven" | "confirmed">;
  /** The server has confirmed the content of the snapshot. */
  onConfirmed(): void;
}

/** The status of a snapshot. */
export interface SnapshotStatus {
  /**
   * The result of the load: `none`: there was no snapshot; `refused`: it could not be used, as {@linkcode
   * SnapshotStatus.refusal} says. In both cases everything is listed.
   */
  readonly load: "loading" | "restored" | "none" | "refused";
  /** Why the snapshot was refused. */
  readonly refusal?: string;
  /** The uid of the cluster's namespace `kube-system`, once it was read. It is saved. */
  readonly clusterUid?: string;
  /**
   * Why the uid was not read, if so. Where the server refuses to say it, such as by 403, another cluster that
   * responds at the same address is detected by its resource versions only, and not if they have passed those
   * of the snapshot. The question is sent again if it had no answer, and after some tries all is listed.
   */
  readonly clusterUnknown?: string;
  /** The version of the content that was saved last, or loaded. */
  readonly savedResourceVersion?: string;
  /** When this informer saved that version, in milliseconds since the epoch. */
  readonly lastSaveTimeMs?: number;
  /** How many saves in a row have failed; 0 while all is well. */
  readonly failedSaves: number;
  /** The error of the last failed save, if any ever failed. */
  readonly lastError?: string;
}

/** How an informer is doing: its reflector, and its snapshot. */
export interface InformerStatus extends ReflectorStatus {
  /** The snapshot whose content the store has, while the server has not confirmed it; `lagMs` is its age. */
  readonly restored?: {
    readonly resourceVersion: string;
    /** The last contact that it reflects, in milliseconds since the epoch. */
    readonly savedAtMs: number;
  };
  /** The status of the informer's snapshot, if it has one. */
  readonly snapshot?: SnapshotStatus;
}

export interface SnapshotRun<T> extends ReflectedSnapshot {
  /** Whether a list or a confirmation by the server is still due before the informer has synced. */
  readonly isPending: boolean;
  /** Receives every event of the store, in its turn, before any other observer. */
  observe(event: StoreEvent<Held<T>>): void;
  /** The reflector has entered a phase, or made progress within it. */
  entered(phase: ReflectorPhase): void;
  /** The snapshot's part of the informer's status. */
  status(): Pick<InformerStatus, "restored" | "snapshot">;
  /** Saves what is not saved yet, and closes the storage. Bounded in time; never rejects. */
  stop(): Promise<void>;
}
