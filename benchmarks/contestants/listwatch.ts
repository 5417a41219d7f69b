/**
 * The contestant that is ours. Runs on Deno from source, and bundled on Node and Bun.
 *
 * Its variants: `all` keeps every field, `default` drops what the library drops by default
 * (managedFields and the last-applied annotation), `encoded` holds those as short texts. `texts` and `short-texts` keep
 * every field, hold the objects as text, read the indices from it, and have handlers that do not read the objects.
 *
 * @module
 */

import {
  fieldIndex,
  type IndexFunc,
  type KubernetesObject,
  metaNamespaceIndex,
  newCluster,
  SharedIndexInformer,
  shortTexts,
  texts,
} from "@listwatch/cache";
import type { ListerWatcher } from "@listwatch/cache/reflector";
import type { Task } from "../lib/measurement.ts";
import { type Contestant, measure } from "./harness.ts";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string };
}

type Managed = { metadata?: { managedFields?: unknown } } | undefined;

function newContestant(task: Task): Contestant {
  const cluster = newCluster({ server: task.server });
  const isText = task.variant === "texts" || task.variant === "short-texts";
  const isWhole = task.variant === "all" || isText;
  const pods: ListerWatcher<Pod> = isWhole
    ? cluster.resource<Pod>("v1/pods", { keep: "everything" })
    : cluster.resource<Pod>("v1/pods");
  const indexers: Record<string, IndexFunc<Pod>> = {};
  if (task.indices >= 1) {
    indexers.node = isText ? fieldIndex<Pod>("spec.nodeName") : (pod) => [pod.spec?.nodeName ?? ""];
  }
  if (task.indices >= 2) {
    indexers.namespace = isText ? metaNamespaceIndex : (pod) => [pod.metadata?.namespace ?? ""];
  }
  // Of the kind that a program with many indices has: a label or two each.
  for (let i = 2; i < task.indices; i++) {
    indexers[`more-${i}`] = (pod) => [`${pod.metadata?.labels?.["app.kubernetes.io/name"]}/${i}`];
  }
  const informer = new SharedIndexInformer<Pod, string>(pods, {
    indexers,
    ...(task.variant === "texts" && { storage: texts() }),
    ...((task.variant === "encoded" || task.variant === "short-texts") && { storage: shortTexts() }),
  });
  const { indexer } = informer;
  const lookUp = (name: string) => {
    let found = 0;
    for (const value of indexer.listIndexFuncValues(name)) found += indexer.byIndex(name, value).length;
    return found;
  };
  let firstKey: string | undefined;
  const first = () => indexer.getByKey(firstKey ??= indexer.listKeys()[0]);
  return {
    async start(hooks) {
      const registrations = [];
      for (let i = 0; i < task.handlers; i++) {
        const counts = { added: 0, updated: 0, deleted: 0 };
        const isLast = i === task.handlers - 1;
        const handler = {
          onAdd: () => void counts.added++,
          onUpdate: (_old: unknown, pod: Pod) => {
            counts.updated++;
            if (isLast) hooks.onUpdate(pod.metadata?.resourceVersion ?? "");
          },
          onDelete: () => void counts.deleted++,
        };
        registrations.push(
          isText
            ? informer.addEventHandler(handler, { receives: "heads" })
            : informer.addEventHandler(handler),
        );
      }
      informer.start();
      await informer.synced();
      const pod = first() as Managed;
      if (pod !== undefined && (pod.metadata?.managedFields !== undefined) !== isWhole) {
        throw new Error(`the variant is ${task.variant}, but it is ${!isWhole} that managedFields were kept`);
      }
      return { handled: Promise.all(registrations.map((registration) => registration.synced())) };
    },
    size: () => indexer.listKeys().length,
    lookUpNodes: () => lookUp("node"),
    lookUpNamespaces: () => lookUp("namespace"),
    // Texts are parsed when they are read, and may be another object each time.
    ...((task.variant === "all" || task.variant === "default") && { sample: first }),
  };
}

await measure(newContestant);
