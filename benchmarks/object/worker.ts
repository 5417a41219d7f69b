/**
 * The Worker that is measured: one object that keeps a copy of all pods, with two indices.
 * @module
 */

import { fieldIndex, type KubernetesObject, metaNamespaceIndex, newCluster } from "@listwatch/cache";
import { ReflectorObject, type ReflectorSettings } from "@listwatch/cache/workers";

interface Environment {
  readonly KUBERNETES: { fetch: typeof fetch };
  readonly PODS: {
    idFromName(name: string): unknown;
    get(id: unknown): { fetch(request: Request): Promise<Response> };
  };
}

/** The object. */
export class Pods extends ReflectorObject<Environment> {
  protected override settings({ KUBERNETES }: Environment): ReflectorSettings {
    const fetch: typeof globalThis.fetch = (input, init) => KUBERNETES.fetch(input, init);
    const cluster = newCluster({ server: "http://kubernetes", fetch });
    return {
      source: cluster.resource<KubernetesObject>("v1/pods", { keep: "everything" }),
      resource: "v1/pods",
      informer: { indexers: { namespace: metaNamespaceIndex, node: fieldIndex("spec.nodeName") } },
      readApi: { freshness: "as-is" },
    };
  }
}

export default {
  fetch: (request: Request, { PODS }: Environment): Promise<Response> =>
    PODS.get(PODS.idFromName("cluster")).fetch(request),
};
