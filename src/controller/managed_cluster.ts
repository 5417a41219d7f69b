/**
 * A manager's part in one cluster: the caches of its controllers, and their loops. Each cluster begins when
 * its own caches are complete, so that a cluster that is away holds up no other.
 */

import type { ClientSource, ResourceClient } from "../client/resource_client.ts";
import { waitForCacheSync } from "../informer/waits.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { formatResource } from "../meta/resource.ts";
import { abortable, sleep } from "../util/abort.ts";
import { getOrMake } from "../util/collections.ts";
import { errorMessage } from "../util/errors.ts";
import { CachedResource, type CacheSettings } from "./cached_resource.ts";
import type { AnyController, Indexed } from "./definition.ts";
import type { EventRecorder } from "./event_recorder.ts";
import { type LoopSettings, ReconcileLoop } from "./reconcile_loop.ts";
import type { LoopCaches } from "./triggers.ts";

type Source = Indexed<KubernetesObject, string>;

export interface BegunSettings extends Omit<LoopSettings, "recorder" | "cluster" | "clusters" | "loopOf"> {
  readonly newRecorder: () => EventRecorder;
  readonly all: readonly ManagedCluster[];
  /** The time up to which earlier writes must be in the caches. */
  readonly sinceMs: number;
  /** No key is taken from then on. */
  readonly stop: AbortSignal;
  /** Aborted when running reconciles are given up. */
  readonly abandon: AbortSignal;
  readonly onBegin: () => void;
}

/** A cluster of a manager; the only one has the name `""`. */
export class ManagedCluster {
  readonly name: string;
  readonly #cluster: ClientSource | undefined;
  readonly #settings: CacheSettings;
  readonly #resources = new Map<string, CachedResource>();
  readonly #controllers = new Map<AnyController, LoopCaches>();
  readonly #loops = new Map<AnyController, ReconcileLoop>();
  readonly #known: object[] = [];
  /** The recorder of the cluster's events, while it reconciles. */
  recorder: EventRecorder | undefined;

  /** @param cluster Whose objects are read, in place of those of each resource's own cluster. */
  constructor(name: string, cluster: ClientSource | undefined, settings: Omit<CacheSettings, "cluster">) {
    this.name = name;
    this.#cluster = cluster;
    this.#settings = { ...settings, cluster: name };
  }

  get caches(): readonly CachedResource[] {
    return [...this.#resources.values()];
  }

  get hasSynced(): boolean {
    return this.caches.every(({ informer }) => informer.hasSynced());
  }

  get isReconciling(): boolean {
    return this.#loops.size > 0;
  }

  get pending(): number {
    let sum = this.recorder?.pending ?? 0;
    for (const loop of this.#loops.values()) sum += loop.pending;
    return sum;
  }

  prepare(controllers: readonly AnyController[]): void {
    // Managed fields show what a controller has applied before it was started.
    const withFields = (source: Source) => this.#here(source.resource).managedFields();
    const owned = new Set(
      controllers.flatMap(({ owns }) => Object.values(owns).map((source) => this.#keyOf(withFields(source)))),
    );
    const cached = (source: Source) => {
      const isOwned = owned.has(this.#keyOf(withFields(source)));
      return this.#cached(source, isOwned ? withFields(source) : this.#here(source.resource));
    };
    for (const controller of controllers) {
      const self = cached(controller.for);
      const watched = Object.entries(controller.watches).map(([name, { resource }]) =>
        [name, resource] as const
      );
      const resources = new Map(
        [...Object.entries(controller.owns), ...watched].map(([name, source]) => [name, cached(source)]),
      );
      this.#controllers.set(controller, { self, resources });
    }
  }

  problems(maxLagMs: number): string[] {
    return this.caches.flatMap(({ informer, name }) => {
      // A namespace that has joined a set may not be there yet.
      if (!informer.hasSynced() || informer.lagMs() === undefined) {
        const failure = informer.failure();
        return [`the cache of ${name} is not complete${failure ? `: ${errorMessage(failure.error)}` : ""}`];
      }
      return informer.isFresh(maxLagMs)
        ? []
        : [`the cache of ${name} is ${informer.lagMs()} ms behind the server`];
    });
  }

  /** Resolves when every cache is complete; rejects with the signal's reason. */
  async synced(signal: AbortSignal): Promise<void> {
    await waitForCacheSync(this.caches.map(({ informer }) => informer), signal);
    signal.throwIfAborted();
  }

  /**
   * Reconciles once its caches have everything, until it is stopped.
   *
   * @throws The reason of `stop`, if that came before.
   */
  async reconcile(settings: BegunSettings): Promise<void> {
    const { sinceMs, stop, abandon, newRecorder, onBegin, all } = settings;
    await this.synced(stop);
    await this.#caughtUp(sinceMs, stop);
    const recorder = this.recorder = newRecorder();
    for (const [controller, caches] of this.#controllers) {
      const clusters = new Map(all.map((cluster) => [cluster.name, cluster.#controllers.get(controller)!]));
      const loopOf = (name: string) => {
        const cluster = all.find((one) => one.name === name);
        return cluster && cluster.#loops.get(controller);
      };
      const own = { ...settings, recorder, cluster: this.name, clusters, loopOf };
      this.#loops.set(controller, new ReconcileLoop(controller, caches, own));
    }
    onBegin();
    await Promise.all([...this.#loops.values()].map((loop) => loop.run({ stop, abandon })));
  }

  ended(): void {
    this.#loops.clear();
  }

  #here(client: ResourceClient<KubernetesObject>): ResourceClient<KubernetesObject> {
    return this.#cluster === undefined ? client : client.on(this.#cluster);
  }

  #cached(source: Source, client: ResourceClient<KubernetesObject>): CachedResource {
    const key = this.#keyOf(client);
    const resource = getOrMake(this.#resources, key, () => new CachedResource(client, this.#settings));
    resource.addIndexers(source.indexers);
    return resource;
  }

  #keyOf(client: ResourceClient<KubernetesObject>): string {
    return JSON.stringify([
      formatResource(client.resource),
      client.identity,
      this.#numberOf(client.cluster),
      client.namespaces === undefined ? "" : this.#numberOf(client.namespaces),
    ]);
  }

  /** Distinguishes clusters, and sets of namespaces. */
  #numberOf(one: object): number {
    if (!this.#known.includes(one)) this.#known.push(one);
    return this.#known.indexOf(one);
  }

  /**
   * Waits until every cache has all that was written before this process began to lead, or to run if nothing
   * is elected: by the leader before it, or before a list that a server answered from an old state.
   */
  async #caughtUp(sinceMs: number, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#settings;
    await Promise.all(this.caches.map(async (resource) => {
      for (let tries = 0;; tries++) {
        try {
          await abortable(resource.caughtUp(sinceMs, signal), signal);
          resource.isCaughtUp = true;
          return;
        } catch (error) {
          signal.throwIfAborted();
          if (tries === 0) {
            const why = errorMessage(error);
            logger.warn(`Cannot confirm the cache of ${resource.name}, and tries again: ${why}`, { error });
          }
          await sleep(Math.min(1_000 * 2 ** tries, 15_000), { clock, signal });
        }
      }
    }));
  }
}
