import {
  type KubernetesObject,
  newCluster,
  parseResource,
  SharedIndexInformer,
  silentLogger,
} from "@listwatch/cache";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import { builtinResource } from "../../../src/protocol/builtin_resources.ts";
import type { ApiResource } from "../../../src/protocol/api_resource.ts";
import {
  type ReflectedIndex,
  reflectedIndexers,
  type ReflectedResource,
} from "../../../src/cli/cluster/select_resources.ts";

/** Informers of an in-memory API server. */
export class Reflection {
  readonly clock: FakeClock = new FakeClock(Date.UTC(2026, 0, 1));
  readonly server: InMemoryApiServer = new InMemoryApiServer({ clock: this.clock });
  readonly resources: ReflectedResource[];
  readonly #stop = new AbortController();
  #running: Promise<void>[] = [];

  constructor(names: readonly string[]) {
    const cluster = newCluster({ server: "http://in-memory", fetch: this.server.fetch, clock: this.clock });
    this.resources = names.map((name) => {
      const resource = builtinResource(parseResource(name)) as ApiResource;
      const informer = new SharedIndexInformer<KubernetesObject, ReflectedIndex>(cluster.resource(resource), {
        indexers: reflectedIndexers({ resource }),
        clock: this.clock,
        logger: silentLogger,
      });
      return { name: resource.resource, resource, informer };
    });
  }

  /** Runs the informers until they have synced. */
  async sync(): Promise<void> {
    this.#running = this.resources.map(({ informer }) => informer.run(this.#stop.signal));
    await Promise.all(this.resources.map(({ informer }) => informer.synced()));
    await this.settle();
  }

  /** Waits until the events of the server have arrived. */
  async settle(): Promise<void> {
    await this.clock.advance(0);
    await this.clock.advance(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
    this.server.close();
  }
}

/** A pod, on a node or not, ready or not. */
export function podOn(
  name: string,
  namespace: string,
  nodeName: string | undefined,
  ready: boolean,
): KubernetesObject {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace },
    spec: { ...(nodeName && { nodeName }), containers: [{ name: "main" }] },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      containerStatuses: [{ name: "main", ready, restartCount: 0, state: { running: {} } }],
    },
  };
  return pod;
}
