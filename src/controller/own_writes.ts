/**
 * What the reconciles of one key have written, until the caches have it: a reconcile that acted on an older
 * state would create what is there, and undo what it did.
 */

import { compareResourceVersions, isComparableResourceVersion } from "../meta/object.ts";
import { statusErrorOf } from "../meta/status.ts";
import type { CachedResource, Written } from "./cached_resource.ts";
import { getOrMake } from "../util/collections.ts";

export class OwnWrites {
  readonly #written = new Map<CachedResource, Written>();
  /** The resources whose caches did not catch up in time; the next reconcile reads them from the server. */
  readonly #readThrough = new Set<CachedResource>();

  get isEmpty(): boolean {
    return this.#written.size === 0 && this.#readThrough.size === 0;
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
   * @throws What the request fails with that finds out about a lost answer; the signal's reason.
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
