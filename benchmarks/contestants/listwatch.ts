/**
 * The contestant that is ours. Runs on Deno from source, and bundled on Node and Bun.
 *
 * Its variants: `all` keeps every field, `default` drops what the library drops by default
 * (managedFields and the last-applied annotation), `encoded` holds those as short texts, `every`
 * keeps every field and has handlers that read each member of each object, `every-plain` does
 * that with objects that are parsed as they come.
 *
 * @module
 */

import {
  type IndexFunc,
  type KubernetesObject,
  metaNamespaceKey,
  newCluster,
  SharedIndexInformer,
  shortTexts,
} from "@listwatch/cache";
import type { ListerWatcher } from "@listwatch/cache/reflector";
import { type NewHolding, ObjectHolding } from "../../src/store/holding.ts";
import type { Task } from "../lib/measurement.ts";
import { type Contestant, measure } from "./harness.ts";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string };
}

/** Objects that the source parses as a whole. */
const plainObjects: NewHolding = (keyFunc) => new ObjectHolding(keyFunc);

/** Reads each member of an object, and of its metadata. */
function readMembers(pod: Pod): void {
  for (const member of Object.values(pod)) if (member === undefined) throw new Error("a member has no value");
  Object.values(pod.metadata ?? {});
}

type Managed = { metadata?: { managedFields?: unknown } } | undefined;

function newContestant(task: Task): Contestant {
  const cluster = newCluster({ server: task.server });
  const readsAll = task.variant === "every" || task.variant === "every-plain";
  const isWhole = task.variant === "all" || readsAll;
  const pods: ListerWatcher<Pod> = isWhole
    ? cluster.resource<Pod>("v1/pods", { keep: "everything" })
    : cluster.resource<Pod>("v1/pods");
  const indexers: Record<string, IndexFunc<Pod>> = {};
  if (task.indices >= 1) {
    indexers.node = (pod) => [pod.spec?.nodeName ?? ""];
  }
  if (task.indices >= 2) {
    indexers.namespace = (pod) => [pod.metadata?.namespace ?? ""];
  }
  // A program with many indices has such ones: a label or two each.
  for (let i = 2; i < task.indices; i++) {
    indexers[`more-${i}`] = (pod) => [`${pod.metadata?.labels?.["app.kubernetes.io/name"]}/${i}`];
  }
  const informer = new SharedIndexInformer<Pod, string>(pods, {
    indexers,
    ...(task.variant === "encoded" && { storage: shortTexts() }),
    ...(task.variant === "every-plain" && { storage: plainObjects }),
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
          onAdd: (pod: Pod) => {
            counts.added++;
            if (readsAll) readMembers(pod);
          },
          onUpdate: (_old: unknown, pod: Pod) => {
            counts.updated++;
            metaNamespaceKey(pod);
            if (readsAll) readMembers(pod);
            if (isLast) hooks.onUpdate(pod.metadata?.resourceVersion ?? "");
          },
          onDelete: () => void counts.deleted++,
        };
        registrations.push(informer.addEventHandler(handler));
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
    // A short text is another object each time.
    ...(task.variant !== "encoded" && { sample: first }),
  };
}

await measure(newContestant);
