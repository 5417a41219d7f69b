/**
 * The Worker of `object.capnp`: an object that keeps a copy of a cluster's pods.
 * @module
 */

import { type KubernetesObject, newCluster } from "@listwatch/cache";
import { ReflectorObject, type ReflectorSettings } from "@listwatch/cache/workers";

interface Environment {
  readonly KUBERNETES: { fetch: typeof fetch };
  readonly API_TOKEN: string;
  readonly PODS: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

/** The object. */
export class Pods extends ReflectorObject<Environment> {
  protected override settings({ KUBERNETES, API_TOKEN }: Environment): ReflectorSettings {
    const cluster = newCluster({
      // The binding decides where requests go, and takes path and query of the URL.
      server: "https://kubernetes.default.svc",
      token: API_TOKEN.trim(),
      fetch: (input, init) => KUBERNETES.fetch(input, init),
    });
    return { source: cluster.resource<KubernetesObject>("v1/pods"), resource: "v1/pods" };
  }
}

export default {
  // A Worker that is reached from elsewhere decides here who may read.
  fetch: (request: Request, { PODS }: Environment): Promise<Response> =>
    PODS.get(PODS.idFromName("cluster")).fetch(request),
};
