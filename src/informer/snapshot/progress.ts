/** Questions to an API server: about its progress, and which cluster is its own. */

import { type KubernetesObject, layoutOf, metaNamespaceKey, resourceVersionOf } from "../../meta/object.ts";
import type { ListOptions, ListPage, WatchStream } from "../../meta/list_watch.ts";
import type { ListWatchContext } from "../../text/object_text_reader.ts";
import { StatusError, statusErrorOf } from "../../meta/status.ts";
import { withTimeLimit } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import { DecodeError } from "../../meta/request.ts";
import { errorMessage } from "../../util/errors.ts";
import { defined } from "../../util/json.ts";
import type { SnapshotStatus } from "./storage.ts";

/** How long the server may take to answer a question. */
export const ANSWER_MS: number = 30_000;
/** The error of a question that takes longer. */
export const TOO_SLOW: Error = new Error(`no answer within ${ANSWER_MS} ms`);

/** Asks a question, for {@linkcode ANSWER_MS} at most. */
export function inTime<R>(
  ask: (signal: AbortSignal) => Promise<R>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<R> {
  return withTimeLimit(ask, {
    ms: ANSWER_MS,
    newError: () => TOO_SLOW,
    clock,
    signal,
  });
}

/** A client for the metadata of what an informer lists. */
export interface MetadataSource {
  list(options: ListOptions, context: ListWatchContext): Promise<ListPage<KubernetesObject>>;
  watch(options: ListOptions, context: ListWatchContext): Promise<WatchStream<KubernetesObject>>;
}

/** The versions of all objects at one resourceVersion. */
export interface CurrentState {
  readonly resourceVersion: string;
  /** The versions of the objects, by key. */
  readonly versions: ReadonlyMap<string, string>;
}

/** A server's answer about changes after a resourceVersion: none between `lastChange` and `through`. */
export interface ChangesSince {
  /** The resourceVersion of the last change; `""` if there was none. */
  readonly lastChange: string;
  /** Up to this resourceVersion, every change was sent. */
  readonly through: string;
}

/**
 * The server's resourceVersion now: everything that was written before the call has this version or an
 * earlier one. A list without a resourceVersion is read from storage, or from a cache that has caught up with
 * it: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
 */
export async function currentVersion(source: MetadataSource, signal: AbortSignal): Promise<string> {
  const { metadata } = await source.list({ limit: 1 }, { signal });
  if (metadata.resourceVersion) return metadata.resourceVersion;
  throw new Error("the list has no resourceVersion");
}

/** The versions of all objects now; `undefined` if there are too many, or one cannot be read. */
export async function currentState(
  source: MetadataSource,
  { maxObjects, signal }: { readonly maxObjects: number; readonly signal: AbortSignal },
): Promise<CurrentState | undefined> {
  const { metadata, items, quarantined } = await source.list({ limit: maxObjects }, { signal });
  if (metadata.continue || items.length > maxObjects || (quarantined?.length ?? 0) > 0) return undefined;
  const versions = new Map(items.map((item) => [metaNamespaceKey(item), resourceVersionOf(item) ?? ""]));
  return { resourceVersion: metadata.resourceVersion ?? "", versions };
}

/** Whether a store has the objects of a state, each at its version there. */
export function isEqualTo(
  { versions }: CurrentState,
  store: { listKeys(): string[]; getByKey(key: string): unknown },
): boolean {
  const keys = store.listKeys();
  return keys.length === versions.size &&
    keys.every((key) => versions.get(key) === resourceVersionOf(store.getByKey(key)));
}

// kube-apiserver sends a bookmark 2 s before the end of a watch, and looks for due ones once a second:
// https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go
const WATCH_SECONDS = 3;

/** Watches from a resourceVersion up to a bookmark; `undefined` if none comes. */
export async function changesSince(
  source: MetadataSource,
  { resourceVersion, signal }: { readonly resourceVersion: string; readonly signal: AbortSignal },
): Promise<ChangesSince | undefined> {
  const options = { resourceVersion, allowWatchBookmarks: true, timeoutSeconds: WATCH_SECONDS };
  let lastChange = "";
  for await (const batch of await source.watch(options, { signal })) {
    for (const item of batch) {
      if (item.type === "QUARANTINED") {
        lastChange = item.quarantined.resourceVersion ?? lastChange;
        continue;
      }
      if (item.type === "ERROR") throw new StatusError(item.object);
      const version = resourceVersionOf(item.object) ?? "";
      if (item.type === "BOOKMARK") {
        // Behind a change of a merged resource its bookmark says where it was.
        const isPlaced = lastChange === "" || layoutOf(lastChange) === layoutOf(version);
        return { lastChange: isPlaced ? lastChange : version, through: version };
      }
      lastChange = version;
    }
  }
  return undefined;
}

/** The refusals that say nothing about the next question: of credentials, in time, of too many requests. */
const PASSING: ReadonlySet<number> = new Set([401, 408, 429]);

/** Compares the cluster of a content with the one that responds. */
export class ClusterCheck {
  readonly #source: Pick<ListerWatcher<unknown>, "clusterUid">;
  readonly #clock: Clock;
  /** The uid of the loaded snapshot's cluster, if the snapshot has it. */
  #savedUid: string | undefined;
  /** The uid of the cluster that responds, or why it cannot be read. */
  #uid: string | undefined;
  #unknown: string | undefined;
  /** Whether the server refuses to say it, as it will the next time. */
  #isRefused = false;

  constructor({ source, clock }: { readonly source: ListerWatcher<unknown>; readonly clock: Clock }) {
    this.#source = source;
    this.#clock = clock;
  }

  /** A snapshot of this cluster was loaded. */
  loaded(uid: string | undefined): void {
    this.#savedUid = uid;
  }

  /** The uid of the content's cluster, as far as it is known. */
  get uid(): string | undefined {
    return this.#uid ?? this.#savedUid;
  }

  /** Whether the snapshot is of another cluster than the one that responds. */
  get isOther(): boolean {
    return this.#uid !== undefined && this.#savedUid !== undefined && this.#uid !== this.#savedUid;
  }

  /** Whether the uid is not known, and may be known later. */
  get isUndecided(): boolean {
    return this.#source.clusterUid !== undefined && this.#savedUid !== undefined && this.#uid === undefined &&
      !this.#isRefused;
  }

  /**
   * Reads what identifies the cluster that responds, if the source and the server permit that and it is not
   * known yet.
   */
  async read(signal: AbortSignal): Promise<void> {
    if (this.#uid === undefined) await this.#ask(signal);
  }

  /**
   * Reads it after a list, which another cluster may have answered than the one before.
   * @returns Whether it is another one than that of the content was.
   * @throws As {@linkcode ClusterCheck.read}.
   */
  async readAgain(signal: AbortSignal): Promise<boolean> {
    const before = this.uid;
    await this.#ask(signal);
    return this.uid !== before;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const source = this.#source;
    if (source.clusterUid === undefined) return;
    try {
      this.#uid = await inTime((limited) => source.clusterUid!(limited), { clock: this.#clock, signal });
      this.#unknown = undefined;
    } catch (error) {
      const { httpStatus = 0 } = statusErrorOf(error) ?? {};
      this.#isRefused = httpStatus >= 400 && httpStatus < 500 && !PASSING.has(httpStatus);
      // A server, or a proxy, that has no answer to this question may have one to others.
      if (!this.#isRefused && error !== TOO_SLOW && !(error instanceof DecodeError)) throw error;
      this.#unknown = errorMessage(error);
    }
  }

  status(): Pick<SnapshotStatus, "clusterUid" | "clusterUnknown"> {
    return defined({ clusterUid: this.#uid, clusterUnknown: this.#unknown });
  }
}
