/** What makes a controller reconcile: the changes of its objects, and of those that it owns and watches. */

import type { ResourceEventHandler } from "../informer/events.ts";
import type { HandlerRegistration } from "../informer/shared_informer_options.ts";
import { formatObjectName, type KubernetesObject, metaNamespaceKey } from "../meta/object.ts";
import { callGuarded, errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import type { CachedResource } from "./cached_resource.ts";
import { type AnyController, type Caches, checkedKey } from "./definition.ts";
import { controllerOf } from "./objects.ts";
import type { Urgency } from "./work_order.ts";

export interface LoopCaches {
  readonly self: CachedResource;
  /** The resources that the controller owns and watches, by their names there. */
  readonly resources: ReadonlyMap<string, CachedResource>;
}

interface Enqueue {
  /** Receives a key of the controller's own cluster. */
  readonly enqueue: (key: string, urgency: Urgency) => void;
  /** Receives a key that may name another cluster. */
  readonly enqueueAnywhere: (key: string, urgency: Urgency) => void;
}

/** Adds the handlers of a controller to its informers. */
export function addTriggers(
  controller: AnyController,
  { self, resources }: LoopCaches,
  { enqueue, enqueueAnywhere, logger }: Enqueue & { readonly logger: Logger },
): HandlerRegistration[] {
  const { name, resyncPeriodMs, owns, watches } = controller;
  const add = (to: CachedResource, handler: ResourceEventHandler<KubernetesObject>, resyncPeriodMs = 0) =>
    to.informer.addEventHandler(handler, { name, resyncPeriodMs });
  // A function of the user's may throw: in a handler that would be a pause before the next change.
  const guarded =
    <V, A extends KubernetesObject[]>(otherwise: V, what: string, ask: (...of: A) => V) => (...of: A): V => {
      let answer = otherwise;
      callGuarded(() => void (answer = ask(...of)), (error) => {
        const which = `${of[0].kind ?? "the object"} ${metaNamespaceKey(of[0])}`;
        logger.error(`${name} cannot ${what} ${which}: ${errorMessage(error)}`, { error });
      });
      return answer;
    };
  const filter = ({ isChange }: Pick<AnyController, "isChange">) => guarded(true, "filter", isChange);
  const isChange = filter(controller);
  const own = add(self, {
    onAdd: (object, isInInitialList) =>
      enqueue(metaNamespaceKey(object), isInInitialList ? "resync" : "change"),
    onUpdate: (before, after) => {
      if (isChange(before, after)) enqueue(metaNamespaceKey(after), urgencyOf(before, after));
    },
    onDelete: ({ key }) => enqueue(key, "change"),
  }, resyncPeriodMs);
  const keysOf = (object: KubernetesObject) => keysOfOwner(object, self);
  const owned = Object.keys(owns).map((name) => add(resources.get(name)!, byBothStates(keysOf, enqueue)));
  const caches: Caches = Object.fromEntries(
    [["self", self] as const, ...resources].map(([name, { informer }]) => [name, informer.indexer]),
  );
  const watched = Object.entries(watches).map(([name, watch]) => {
    const keysOf = guarded([], "map", (object) => [...watch.keys(object, caches)].map(checkedKey));
    return add(resources.get(name)!, byBothStates(keysOf, enqueueAnywhere, filter(watch)));
  });
  return [own, ...owned, ...watched];
}

/** The key of the controlling owner, if that is one of the objects of its resource. */
function keysOfOwner(object: KubernetesObject, { informer }: CachedResource): readonly string[] {
  const owner = controllerOf(object);
  if (owner === undefined) return [];
  const { namespace = "" } = object.metadata ?? {};
  // An owner that is not there yet is enqueued when it comes.
  for (const key of new Set([formatObjectName({ namespace, name: owner.name }), owner.name])) {
    if (informer.indexer.getByKey(key)?.metadata?.uid === owner.uid) return [key];
  }
  return [];
}

/**
 * A handler of objects for which others are reconciled. On a change it enqueues the keys of both states, each
 * once, as an object may move from one owner to another.
 */
export function byBothStates(
  keysOf: (object: KubernetesObject) => readonly string[],
  enqueue: (key: string, urgency: Urgency) => void,
  isChange: (before: KubernetesObject, after: KubernetesObject) => boolean = () => true,
): ResourceEventHandler<KubernetesObject> {
  const enqueueAll = (keys: readonly string[], urgency: Urgency) => {
    for (const key of new Set(keys)) enqueue(key, urgency);
  };
  return {
    onAdd: (object, isInInitialList) => enqueueAll(keysOf(object), isInInitialList ? "resync" : "change"),
    onUpdate: (before, after) => {
      if (!isChange(before, after)) return;
      enqueueAll([...keysOf(before), ...keysOf(after)], urgencyOf(before, after));
    },
    onDelete: ({ object }) => {
      if (object !== undefined) enqueueAll(keysOf(object), "change");
    },
  };
}

/** The urgency of a change: a change that changed nothing is no more urgent than a resync. */
export function urgencyOf(before: KubernetesObject, after: KubernetesObject): Urgency {
  return before.metadata?.resourceVersion === after.metadata?.resourceVersion ? "resync" : "change";
}
