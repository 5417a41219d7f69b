/**
 * The types of the npm package `kubernetes-types` work with every part: a resource, an informer with indices,
 * a lister, a factory, the HTTP adapter. Compiled only.
 *
 * @module
 */

import {
  metaNamespaceIndex,
  newCluster,
  newLister,
  type ResourceEventHandler,
  resourceOf,
  SharedIndexInformer,
  SharedInformerFactory,
} from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { newInformer } from "@listwatch/cache/informer";
import type { Deployment } from "kubernetes-types/apps/v1";
import type { Pod } from "kubernetes-types/core/v1";

const cluster = newCluster({ server: "http://127.0.0.1:8001" });

/** Never called. */
export async function useKubernetesTypes(): Promise<void> {
  const pods = new SharedIndexInformer(cluster.resource<Pod>("v1/pods"), {
    indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""], namespace: metaNamespaceIndex },
    transform: (pod) => ({ ...pod, status: undefined }),
  });
  const handler: ResourceEventHandler<Pod> = {
    onAdd: (pod) => console.log(pod.metadata?.creationTimestamp, pod.spec?.containers[0].image),
    onUpdate: (before, after) => console.log(before.status?.phase, after.status?.phase),
    onDelete: (deleted) => console.log(deleted.key, deleted.object?.spec?.nodeName),
  };
  pods.addEventHandler(handler);
  const onNode: Pod[] = pods.indexer.byIndex("byNode", "node-1");
  const [listed]: readonly Pod[] = newLister(pods.indexer, "v1/pods").list("app=web");
  readApi({ resources: [{ informer: pods, resource: "v1/pods" }], allowAnonymous: true });

  const lean = cluster.resource(resourceOf<Pod>("v1/pods"), {
    keep: ["spec.nodeName", "spec.containers[].image", 'metadata.annotations["example.com/team"]'],
    drop: ["metadata.managedFields", "spec.containers[].resources.limits"],
  });
  const image: string | undefined = (await lean.list()).items[0].spec?.containers[0].image;
  // @ts-expect-error -- a Pod has no spec.node
  cluster.resource(resourceOf<Pod>("v1/pods"), { keep: ["spec.node"] });
  // @ts-expect-error -- containers is an array: spec.containers[].image
  cluster.resource(resourceOf<Pod>("v1/pods"), { keep: ["spec.containers.image"] });

  const factory = new SharedInformerFactory(cluster);
  const { lister } = factory.forResource<Deployment>("apps/v1/deployments");
  const replicas: number | undefined = lister.get("shop/web").spec?.replicas;
  const deployments = cluster.resource<Deployment>("apps/v1/deployments");
  const { spec }: Deployment = await deployments.create({
    metadata: { name: "web", namespace: "shop" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      template: { spec: { containers: [{ name: "web" }] } },
    },
  });
  const [store] = newInformer({ listerWatcher: cluster.resource<Pod>("v1/pods"), handler });
  const stored: Pod | undefined = store.getByKey("shop/web-1");
  console.log(onNode, listed, image, replicas, spec, stored);
}
