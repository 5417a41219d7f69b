/** A resource that controllers read and write: its client, and the informer that they share. */

import type { ResourceClient, ResourceDescription } from "../client/resource_client.ts";
import { NotFreshError } from "../informer/errors.ts";
import { SharedIndexInformer } from "../informer/shared_informer.ts";
import {
  compareResourceVersions,
  isComparableResourceVersion,
  type KubernetesObject,
} from "../meta/object.ts";
import { formatResource } from "../meta/resource.ts";
import { type IndexFunc, ownerIndex } from "../store/index_func.ts";
import { abortable, linkedAbort, sleep } from "../util/abort.ts";
import type { Random } from "../util/backoff.ts";
import { type Clock, momentOf } from "../util/clock.ts";
import { AppliedConfigs } from "./applied_config.ts";
import { isMetadataOnly } from "./objects.ts";
import type { Logger } from "../util/logger.ts";
import type { Metrics } from "../util/metrics.ts";
import { changesSince, currentState, currentVersion, isEqualTo } from "../informer/snapshot/progress.ts";
import type { Indexer } from "../store/store.ts";
import { statusErrorOf } from "../meta/status.ts";
import { getOrMake } from "../util/collections.ts";

/** The index by the uids of owners, which every cache of a controller has. */
export const OWNER_INDEX = "listwatch.owners";

// As many objects as one page of a list has.
const MOST_COMPARED = 500;
// Events that are on their way come within this time.
const GRACE_MS = 20;
// The longest pause in which the events of a slow server are awaited.
const LONGEST_PAUSE_MS = 2_000;

export interface CacheSettings {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly metrics: Metrics | undefined;
  /** How often handlers that ask for it may be notified of all objects, in milliseconds; 0: never. */
  readonly resyncPeriodMs: number;
  readonly freezeObjects?: boolean | undefined;
  readonly cluster: string;
}

/** The writes to a resource by the reconciles of one key. */
export interface Written {
  /** The highest version that a write to each namespace returned; to any, under `""`. */
  readonly versions: Map<string, string>;
  readonly deleted: Map<string, string>;
  /** How many writes may have been made: their answers were lost. */
  unseen: number;
  /** How many of those came before a version that is in `versions`. */
  answered: number;
}

/** A part of a cache: all of it, or one namespace of a set. */
interface Part {
  readonly namespace?: string;
  readonly informer: Pick<SharedIndexInformer<KubernetesObject, string>, "waitForVersion" | "proven"> & {
    readonly indexer: Pick<
      Indexer<KubernetesObject>,
      "lastStoreSyncResourceVersion" | "listKeys" | "getByKey"
    >;
  };
  readonly hasReached: (version: string) => boolean;
}

export class CachedResource {
  readonly client: ResourceClient<KubernetesObject>;
  readonly informer: SharedIndexInformer<KubernetesObject, string>;
  /** `v1/configmaps in shop (app=web)`, for texts and metrics. */
  readonly name: string;
  readonly applied: AppliedConfigs = new AppliedConfigs();
  /** Whether the cache has everything written before this process reconciles; until then it is not read. */
  isCaughtUp = false;
  readonly #clock: Clock;
  #description: ResourceDescription | undefined;
  #described: Promise<ResourceDescription> | undefined;

  constructor(client: ResourceClient<KubernetesObject>, settings: CacheSettings) {
    const { clock, random, logger, metrics, cluster, resyncPeriodMs, freezeObjects } = settings;
    this.client = client;
    const title = `${cluster && `${cluster}: `}${formatResource(client.resource)}`;
    const where = client.namespaces ? `${client.namespaces.names.length} namespaces` : client.namespace;
    const { selection } = client;
    this.name = [title, where && `in ${where}`, selection && `(${selection})`].filter(Boolean).join(" ");
    this.#clock = clock;
    this.informer = new SharedIndexInformer<KubernetesObject, string>(client, {
      name: this.name,
      indexers: { [OWNER_INDEX]: ownerIndex() },
      clock,
      logger,
      reflector: { random },
      // Handlers come when it runs, and are then notified no more often than this.
      resyncPeriodMs,
      freezeObjects,
      ...(metrics && { metrics }),
    });
    this.informer.observeHeld((event) => {
      for (const change of "changes" in event ? event.changes : [event]) {
        if (change.type === "deleted") this.applied.forget(change.key);
      }
    });
  }

  /**
   * Adds indices before the informer runs.
   *
   * @throws {TypeError} Another index has this name.
   */
  addIndexers(indexers: Readonly<Record<string, IndexFunc<KubernetesObject>>>): void {
    const present: Readonly<Record<string, IndexFunc<KubernetesObject>>> = this.informer.indexer
      .getIndexers();
    const added: Record<string, IndexFunc<KubernetesObject>> = {};
    for (const [name, indexFunc] of Object.entries(indexers)) {
      if (!Object.hasOwn(present, name)) added[name] = indexFunc;
      else if (present[name] !== indexFunc) {
        throw new TypeError(
          `Cannot index ${this.name} by ${
            JSON.stringify(name)
          }: two controllers have different functions of this name; ` +
            "give both the same `indexed(...)`, or two names",
        );
      }
    }
    this.informer.addIndexers(added);
  }

  /** Kind and scope of the resource: as any object in the cache has them, or requested once. */
  async description(signal: AbortSignal): Promise<ResourceDescription> {
    const known = this.#description ??= this.#describedByCache();
    if (known !== undefined) return known;
    // Without the signal of this caller: other callers may have more time.
    const described = this.#described ??= this.client.describe();
    try {
      return this.#description = await abortable(described, signal);
    } catch (error) {
      if (!signal.aborted) this.#described = undefined;
      throw error;
    }
  }

  #describedByCache(): ResourceDescription | undefined {
    const { indexer } = this.informer;
    const [key] = indexer.listKeys();
    const { apiVersion, kind, metadata } = (key !== undefined && indexer.getByKey(key)) || {};
    if (!apiVersion || !kind || isMetadataOnly({ kind })) return undefined;
    return { apiVersion, kind, isNamespaced: Boolean(metadata?.namespace) };
  }

  covers(namespace: string): boolean {
    const { namespaces, namespace: one } = this.client;
    return namespaces?.has(namespace) ?? (one === "" || one === namespace);
  }

  /**
   * The version of the resource now, from the server itself and not from a cache of it; all namespaces have
   * the versions of one server.
   *
   * @throws {Error} The answer has no version: nothing could be waited for.
   */
  async presentVersion(signal: AbortSignal): Promise<string> {
    const { client, client: { namespaces } } = this;
    if (namespaces?.names.length === 0) return "1"; // nothing is read
    const one = namespaces === undefined ? client : client.inNamespace(namespaces.names[0]);
    return await currentVersion(one.metadata(), signal);
  }

  /**
   * Waits until the cache has all that was written before a moment, by the monotonic clock.
   *
   * @throws The error of a request; the signal's reason.
   */
  async caughtUp(sinceMs: number, signal: AbortSignal): Promise<void> {
    const consistentMs = this.informer.consistentMs();
    if (consistentMs !== undefined && consistentMs >= sinceMs) return;
    const version = await this.presentVersion(signal);
    await Promise.all(
      this.#parts("").map(async (part) => {
        if (!part.hasReached(version)) await this.#catchUp(part, version, signal);
      }),
    );
  }

  /**
   * Waits until a part has reached a version that the server has: after the writes of an earlier leader, or
   * as another server is ahead of the one that answered.
   *
   * Versions count the changes of all resources, so that a quiet resource reaches the server's version only
   * with the next bookmark, a minute later. Sooner proofs that nothing is missing are the versions of all
   * objects, if they are few, or a short watch on which nothing comes.
   */
  async #catchUp(part: Part, version: string, signal: AbortSignal): Promise<void> {
    const proving = linkedAbort(signal);
    try {
      await Promise.race([
        part.informer.waitForVersion(version, { signal: proving.signal }),
        this.#proveUntilReached(part, proving.signal),
      ]);
    } finally {
      proving.abort();
      proving.unlink();
    }
  }

  /** Looks for proofs until the wait for the version ends, with what it fails with. */
  async #proveUntilReached(part: Part, signal: AbortSignal): Promise<never> {
    for (let delayMs = GRACE_MS;; delayMs = Math.min(2 * delayMs, LONGEST_PAUSE_MS)) {
      await sleep(delayMs, { clock: this.#clock, signal });
      await this.#proveOnce(part, signal);
    }
  }

  async #proveOnce({ informer, namespace }: Part, signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    const metadata = (namespace === undefined ? this.client : this.client.inNamespace(namespace)).metadata();
    const from = informer.indexer.lastStoreSyncResourceVersion();
    const asked = momentOf(clock);
    const state = await currentState(metadata, { maxObjects: MOST_COMPARED, signal });
    if (state !== undefined) {
      await sleep(GRACE_MS, { clock, signal });
      if (!isEqualTo(state, informer.indexer)) return;
      const after = informer.indexer.lastStoreSyncResourceVersion();
      informer.proven({ after, through: state.resourceVersion, asked, byState: true });
      return;
    }
    const changes = await changesSince(metadata, { resourceVersion: from, signal });
    if (changes === undefined) return;
    const after = changes.lastChange || from;
    await informer.waitForVersion(after, { signal });
    informer.proven({ after, through: changes.through, asked });
  }

  has({ versions, deleted, unseen, answered }: Written): boolean {
    if (unseen > answered) return false;
    for (const [namespace, version] of versions) {
      if (!this.#parts(namespace).every((part) => part.hasReached(version))) return false;
    }
    for (const [key, uid] of deleted) if (!this.#hasSeenDelete(key, uid)) return false;
    return true;
  }

  /** Waits until the cache has what was written; `false` if it does not in time, or the signal is aborted. */
  async waitFor(
    written: Written,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<boolean> {
    if (this.has(written)) return true;
    const link = linkedAbort(signal);
    const timer = this.#clock.setTimeout(() => link.abort(), timeoutMs);
    try {
      const waits = [...written.deleted].map(([key, uid]) => this.#deleteSeen(key, uid, link.signal));
      for (const [namespace, version] of written.versions) {
        for (const { informer } of this.#parts(namespace)) {
          waits.push(informer.waitForVersion(version, { signal: link.signal }));
        }
      }
      await Promise.all(waits);
      return true;
    } catch (error) {
      if (link.signal.aborted || error instanceof NotFreshError) return false;
      throw error;
    } finally {
      this.#clock.clearTimeout(timer);
      link.abort();
      link.unlink();
    }
  }

  /** The parts of the cache that have a version of their own and that a write to a namespace comes to. */
  #parts(namespace: string): readonly Part[] {
    const { informer, informer: { sources } } = this;
    if (sources === undefined) {
      if (namespace !== "" && !this.covers(namespace)) return [];
      const hasReached = (version: string) =>
        compareResourceVersions(informer.indexer.lastStoreSyncResourceVersion(), version) >= 0;
      return [{ informer, hasReached }];
    }
    return sources.filter(({ name }) => namespace === "" || name === namespace)
      .map(({ name, informer }) => ({
        namespace: name,
        informer,
        hasReached: (version) => informer.hasReached(version),
      }));
  }

  // An object with finalizers stays for a while, and shows that it is being deleted.
  #hasSeenDelete(key: string, uid: string): boolean {
    const metadata = this.informer.indexer.getByKey(key)?.metadata;
    return metadata?.uid !== uid || Boolean(metadata.deletionTimestamp);
  }

  async #deleteSeen(key: string, uid: string, signal: AbortSignal): Promise<void> {
    if (this.#hasSeenDelete(key, uid)) return;
    const seen = Promise.withResolvers<void>();
    const unobserve = this.informer.observe(() => {
      if (this.#hasSeenDelete(key, uid)) seen.resolve();
    });
    try {
      await abortable(seen.promise, signal);
    } finally {
      unobserve();
    }
  }
}

/**
 * The writes by the reconciles of one key, until the caches have them: a reconcile that acted on an older
 * state would create what is there, and undo what it did.
 */
export class OwnWrites {
  readonly #written = new Map<CachedResource, Written>();
  /** The resources whose caches did not catch up in time; the next reconcile reads them from the server. */
  readonly #readThrough = new Set<CachedResource>();

  get isEmpty(): boolean {
    return this.#written.size === 0;
  }

  /** A write to this namespace, or to any if it is empty, returned this version. */
  wrote(resource: CachedResource, version: string, namespace = ""): void {
    const written = this.#of(resource);
    const { versions } = written;
    if (!isComparableResourceVersion(version)) written.unseen++;
    else if (compareResourceVersions(version, versions.get(namespace) ?? "") > 0) {
      versions.set(namespace, version);
    }
  }

  deleted(resource: CachedResource, key: string, uid: string): void {
    this.#of(resource).deleted.set(key, uid);
  }

  /** Something was written at an unknown version; the next reconcile asks the server for one after it. */
  unseen(resource: CachedResource): void {
    this.#of(resource).unseen++;
  }

  /** A write failed; it was not made if the server says so. */
  failed(resource: CachedResource, error: unknown): void {
    const code = statusErrorOf(error)?.status.code ?? 0;
    if (code < 400 || code >= 500 || code === 408) this.unseen(resource);
  }

  readsThrough(resource: CachedResource): boolean {
    return this.#readThrough.has(resource);
  }

  /** Whether every cache that is read has everything, so that the next reconcile may begin at once. */
  isInCaches(): boolean {
    for (const [resource, written] of this.#written) {
      if (this.#readThrough.has(resource)) continue;
      if (!resource.has(written)) return false;
      this.#written.delete(resource);
    }
    return true;
  }

  /**
   * Waits until the cache of a resource, of all by default, has
   * everything; after `timeoutMs` it is read through.
   *
   * @throws The error of the request that finds out about a lost answer; the signal's reason.
   */
  async settle(
    { resource, timeoutMs, signal }: {
      readonly resource?: CachedResource;
      readonly timeoutMs: number;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const waits = [...this.#written].filter(([of]) => resource === undefined || of === resource);
    await Promise.all(waits.map(async ([of, written]) => {
      const { unseen } = written;
      if (unseen > written.answered) {
        // A consistent read is past every write that was made before it.
        this.wrote(of, await of.presentVersion(signal));
        written.answered = Math.max(unseen, written.answered);
      }
      if (await of.waitFor(written, { timeoutMs, signal })) {
        // The reconcile may have written more meanwhile, which the next read waits for.
        if (this.#written.get(of) === written && of.has(written)) this.#written.delete(of);
        return;
      }
      this.#readThrough.add(of);
      // The versions that were waited for may never come: the server may have been restored from a backup.
      const given = new Map(written.versions);
      const version = await of.presentVersion(signal);
      for (const [namespace, up] of given) {
        if (written.versions.get(namespace) === up) written.versions.delete(namespace);
      }
      this.wrote(of, version);
    }));
  }

  /** A reconcile has ended: the next one waits for the caches again. */
  ended(): void {
    this.#readThrough.clear();
  }

  #of(resource: CachedResource): Written {
    const none = () => ({ versions: new Map(), deleted: new Map(), unseen: 0, answered: 0 });
    return getOrMake(this.#written, resource, none);
  }
}
