/**
 * An API server in memory, and informers of `./compat/client-node` in front of it.
 * @module
 */

import {
  type KubeConfigLike,
  type ListWatch,
  type ListWatchOptions,
  makeInformer,
} from "@listwatch/cache/compat/client-node";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import type { Pod } from "kubernetes-types/core/v1";
import { LogRecorder } from "../log_recorder.ts";

/** The path of all pods. */
export const PODS = "/api/v1/pods";

/** A `KubeConfig`, as far as the adapter reads it. */
export const kubeConfig: Required<KubeConfigLike> = {
  getCurrentCluster: () => ({ server: "http://in-memory" }),
  getCurrentContext: () => "here",
  getContextObject: (name) => name === "here" ? { namespace: "shop" } : null,
  applyToHTTPSOptions: (options: { headers?: Record<string, string> }) => {
    options.headers = { Authorization: "Bearer of-the-config" };
    return Promise.resolve();
  },
};

/** A server, an informer of its pods that records what its callbacks receive, and the time. */
export class World {
  readonly clock: FakeClock = new FakeClock(1_000_000);
  readonly server: InMemoryApiServer = new InMemoryApiServer({ clock: this.clock });
  readonly logger: LogRecorder = new LogRecorder();
  readonly calls: string[] = [];

  make(
    options: ListWatchOptions<Pod> & { path?: string; labels?: string; fields?: string } = {},
  ): ListWatch<Pod> {
    const { path = PODS, labels, fields, ...more } = options;
    const informer = makeInformer<Pod>(kubeConfig, path, undefined, labels, fields, {
      fetch: this.server.fetch,
      clock: this.clock,
      logger: this.logger,
      ...more,
    });
    for (const verb of ["add", "update", "delete"] as const) {
      informer.on(verb, (object) => this.calls.push(`${verb} ${object.metadata?.name}`));
    }
    informer.on("connect", () => this.calls.push("connect"));
    informer.on("error", (error) => this.calls.push(`error ${error.statusCode ?? error.code}`));
    return informer;
  }

  /** What the callbacks received since the last time. */
  async received(): Promise<string[]> {
    await this.clock.advance(0);
    return this.calls.splice(0);
  }

  create(name: string, labels: Record<string, string> = {}): void {
    this.server.create("v1/pods", pod(name, { namespace: "shop", labels }));
  }

  update(name: string, labels: Record<string, string>): void {
    const before = this.server.get<Pod>("v1/pods", `shop/${name}`)!;
    this.server.update("v1/pods", { ...before, metadata: { ...before.metadata, labels } });
  }

  delete(name: string): void {
    this.server.delete("v1/pods", `shop/${name}`);
  }

  [Symbol.dispose](): void {
    this.server.close();
  }
}
