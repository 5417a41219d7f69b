/**
 * The contestant that is ours. Runs on Deno from source, and bundled on Node and Bun.
 *
 * Its variants: `all` keeps every field, `default` drops what the library drops unless it is told otherwise
 * (managedFields and the last-applied annotation), `encoded` holds the objects as bytes besides.
 *
 * @module
 */

import {
  type KubernetesObject,
  newCluster,
  type ResourceOptions,
  SharedIndexInformer,
} from "@listwatch/cache";
import type { Task } from "../lib/measurement.ts";
import { type Contestant, measure } from "./harness.ts";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string };
}

function newContestant(task: Task): Contestant {
  const cluster = newCluster({ server: task.server });
  const options: ResourceOptions<Pod> & { drop?: [] } = task.variant === "all" ? { drop: [] } : {};
  const pods = cluster.resource<Pod>("v1/pods", options);
  const indexers: Record<string, (pod: Pod) => string[]> = {};
  if (task.indices >= 1) indexers.node = (pod) => [pod.spec?.nodeName ?? ""];
  if (task.indices >= 2) indexers.namespace = (pod) => [pod.metadata?.namespace ?? ""];
  // Of the kind that a program with many indices has: a label or two each.
  for (let i = 2; i < task.indices; i++) {
    indexers[`more-${i}`] = (pod) => [`${pod.metadata?.labels?.["app.kubernetes.io/name"]}/${i}`];
  }
  const informer = new SharedIndexInformer<Pod, string>(pods, {
    indexers,
    ...(task.variant === "encoded" && { storage: "encoded" }),
  });
  const { indexer } = informer;
  const lookUp = (name: string) => {
    let found = 0;
    for (const value of indexer.listIndexFuncValues(name)) found += indexer.byIndex(name, value).length;
    return found;
  };
  let first: string | undefined;
  return {
    async start(hooks) {
      const registrations = [];
      for (let i = 0; i < task.handlers; i++) {
        const counts = { added: 0, updated: 0, deleted: 0 };
        const isLast = i === task.handlers - 1;
        registrations.push(informer.addEventHandler({
          onAdd: () => void counts.added++,
          onUpdate: (_old, pod) => {
            counts.updated++;
            if (isLast) hooks.onUpdate(pod.metadata?.resourceVersion ?? "");
          },
          onDelete: () => void counts.deleted++,
        }));
      }
      informer.start();
      await informer.synced();
      return { handled: Promise.all(registrations.map(({ synced }) => synced)) };
    },
    size: () => indexer.listKeys().length,
    lookUpNodes: () => lookUp("node"),
    lookUpNamespaces: () => lookUp("namespace"),
    sample: () => indexer.getByKey(first ??= indexer.listKeys()[0]),
  };
}

await measure(newContestant);
