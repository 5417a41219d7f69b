/**
 * The embedded cluster: an in-memory API server, and a simulated cluster that changes its objects.
 * @module
 */

import { parseResource, resourcePath } from "../../meta/resource.ts";
import { InMemoryApiServer } from "../../testing/in_memory_api_server.ts";
import type { Clock } from "../../util/clock.ts";
import { seededRandom } from "../../util/seeded_random.ts";
import type { ClusterWriter } from "./context.ts";
import { LivingCluster } from "./living_cluster.ts";
import type { ClusterObject } from "./objects.ts";

/** Options of {@linkcode newEmbeddedCluster}. */
export interface EmbeddedClusterOptions {
  readonly clock: Clock;
  readonly seed: number;
}

/** An API server with a simulated cluster. */
export interface EmbeddedCluster {
  readonly server: InMemoryApiServer;
  /** Changes the cluster until the signal is aborted, then closes the server. */
  run(signal: AbortSignal): Promise<void>;
}

/** The resources of the embedded cluster; reflected by default. */
export const EMBEDDED_RESOURCES: readonly string[] = [
  "namespaces",
  "nodes",
  "pods",
  "deployments.apps",
  "replicasets.apps",
  "services",
  "configmaps",
  "events",
];

/** Makes the cluster with all its objects; nothing changes until it is run. */
export function newEmbeddedCluster(options: EmbeddedClusterOptions): EmbeddedCluster {
  const { clock, seed } = options;
  const random = seededRandom(seed);
  const server = new InMemoryApiServer({ clock, random, requestLogLimit: 10, gracefulPodDeletion: true });
  const writer = new ServerWriter(server);
  const living = new LivingCluster(writer, { clock, random: seededRandom(seed) });
  living.populate();
  return {
    server,
    async run(signal: AbortSignal): Promise<void> {
      try {
        await living.run(signal);
      } finally {
        server.close();
        await writer.idle();
      }
    },
  };
}

const RESOURCES: Readonly<Record<string, string>> = {
  Namespace: "v1/namespaces",
  Node: "v1/nodes",
  Pod: "v1/pods",
  Deployment: "apps/v1/deployments",
  ReplicaSet: "apps/v1/replicasets",
  Service: "v1/services",
  ConfigMap: "v1/configmaps",
  Event: "v1/events",
};

/** Writes the changes of a living cluster to an in-memory API server. */
export class ServerWriter implements ClusterWriter {
  readonly #server: InMemoryApiServer;
  readonly #ending = new Map<string, Promise<void>>();

  /** @param server Must delete pods gracefully. */
  constructor(server: InMemoryApiServer) {
    this.#server = server;
  }

  /** Creates an object. */
  create(object: ClusterObject): void {
    this.#server.create(RESOURCES[object.kind], object);
  }

  /** Replaces an object; one with a deletionTimestamp is first deleted gracefully, after this call. */
  update(object: ClusterObject): void {
    const { uid, deletionTimestamp } = object.metadata;
    if (!deletionTimestamp) {
      this.#server.update(RESOURCES[object.kind], object);
    } else if (uid && !this.#ending.has(uid)) {
      this.#ending.set(uid, this.#end(object).catch(() => {}));
    }
  }

  /** Deletes an object at once. */
  delete(object: ClusterObject): void {
    const wasEnding = this.#ending.delete(object.metadata.uid ?? "");
    // The server deletes a pod without a node at once.
    if (wasEnding && this.#server.get(RESOURCES[object.kind], object) === undefined) return;
    this.#server.delete(RESOURCES[object.kind], object);
  }

  /** Resolves when no write is pending. */
  async idle(): Promise<void> {
    await Promise.all(this.#ending.values());
  }

  /**
   * Only the server sets a deletionTimestamp, for a DELETE request with a grace period. The terminating state
   * of the pod is written after that. Rejects only when the server is closed, or the pod deleted, first.
   */
  async #end(pod: ClusterObject): Promise<void> {
    const { name, namespace, deletionGracePeriodSeconds } = pod.metadata;
    const path = resourcePath(parseResource(RESOURCES.Pod), { name, namespace });
    const query = `gracePeriodSeconds=${deletionGracePeriodSeconds}`;
    const response = await this.#server.fetch(`http://embedded${path}?${query}`, { method: "DELETE" });
    await response.body?.cancel();
    this.#server.update(RESOURCES.Pod, pod);
  }
}
