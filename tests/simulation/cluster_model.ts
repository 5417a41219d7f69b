/**
 * The content of an etcd: every object with its history.
 * @module
 */

import type { KubernetesObject } from "@listwatch/cache";

/** The objects of this world. */
export interface SimObject extends KubernetesObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    // deno-lint-ignore no-explicit-any
    readonly labels?: any;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields?: readonly unknown[];
  };
  /** An informer that leaves fields out may have only some of them, or none. */
  readonly spec: {
    readonly node?: string;
    readonly value?: number;
    readonly note?: string;
    readonly bad?: boolean;
    readonly containers?: readonly Container[];
  };
}

/** A part of an object that is an array. */
export interface Container {
  readonly args?: readonly string[];
  readonly name?: string;
}

/** What is wrong with an object, if anything. */
export type Flaw = "schema" | "metadata" | "huge";

/** The change at one revision. */
export interface Revision {
  readonly revision: number;
  /** `""` for a write to a resource that no program lists. */
  readonly resource: string;
  readonly key: string;
  readonly kind: "create" | "update" | "delete";
  /** The state it was brought to; for a delete the last state, with the delete's resourceVersion. */
  readonly object: SimObject;
  readonly previous: SimObject | undefined;
  /** Frames of watches, made once. */
  readonly frames: Map<string, Uint8Array>;
}

/**
 * The resources of this world, and the kinds of their objects. Only programs
 * that restart list leases: there may be thousands.
 */
export const RESOURCES: Readonly<Record<string, string>> = {
  pods: "Pod",
  services: "Service",
  leases: "Lease",
};

/** What a list or watch selects. */
export interface Scope {
  readonly resource: string;
  /** `""` for all. */
  readonly namespace: string;
  /** The value that the label `app` must have; `""` for any. */
  readonly app: string;
  /** Whether metadata only is requested. */
  readonly metadataOnly?: boolean;
}

/** Whether an object is within a scope (of its own resource). */
export function isWithin(scope: Scope, object: SimObject): boolean {
  return (scope.namespace === "" || object.metadata.namespace === scope.namespace) &&
    (scope.app === "" || object.metadata.labels?.app === scope.app);
}

/** The key of an object. */
export function keyOfObject({ metadata }: SimObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** An object's state in few words. */
export function stateOf(object: SimObject | undefined): string {
  return object === undefined ? "nothing" : `${object.metadata.uid}@${object.metadata.resourceVersion}`;
}

/** One history of all objects, which any number of API servers read. */
export class ClusterModel {
  readonly #first: number;
  readonly #history: Revision[] = [];
  readonly #objects = new Map<string, Map<string, SimObject>>();
  readonly #flaws = new WeakMap<SimObject, Flaw>();
  /** The number of histories so far: one more with each restore. */
  epoch = 0;
  /**
   * The number of clusters at this address so far: the uid of the
   * present one's namespace `kube-system` says it.
   */
  replaced = 0;
  /** Called with each revision, in order. */
  onRevision: (revision: Revision) => void = () => {};
  /** Revisions before this cannot be read any more. */
  compactedRevision: number;
  #uids = 0;

  constructor(firstRevision: number) {
    this.#first = firstRevision;
    this.compactedRevision = firstRevision;
    for (const resource of Object.keys(RESOURCES)) this.#objects.set(resource, new Map());
  }

  /** The last revision. */
  get revision(): number {
    return this.#first + this.#history.length;
  }

  /** What happened at a revision. */
  at(revision: number): Revision {
    return this.#history[revision - this.#first - 1];
  }

  /** The current objects. */
  objects(resource: string): ReadonlyMap<string, SimObject> {
    return this.#objects.get(resource)!;
  }

  /** The objects at a revision, in the order of keys. */
  stateAt(resource: string, revision: number): Map<string, SimObject> {
    const state = new Map<string, SimObject>();
    for (const one of this.#history) {
      if (one.revision > revision) break;
      if (one.resource !== resource) continue;
      if (one.kind === "delete") state.delete(one.key);
      else state.set(one.key, one.object);
    }
    return new Map([...state].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** What is wrong with an object that was written. */
  flawOf(object: SimObject): Flaw | undefined {
    return this.#flaws.get(object);
  }

  /** Creates or updates an object. */
  put(
    resource: string,
    key: string,
    change: { app: string; node: string; value: number; flaw?: Flaw },
  ): void {
    const [namespace, name] = key.split("/");
    const previous = this.#objects.get(resource)!.get(key);
    const revision = this.revision + 1;
    const { app, node, value, flaw } = change;
    const object: SimObject = {
      apiVersion: "v1",
      kind: RESOURCES[resource],
      metadata: {
        name,
        namespace,
        uid: previous?.metadata.uid ?? `uid-${++this.#uids}`,
        resourceVersion: String(revision),
        labels: flaw === "metadata" ? { app, broken: 7 } : labelsOf(app, value),
        annotations: ANNOTATIONS[value % ANNOTATIONS.length],
        managedFields: MANAGED_FIELDS,
      },
      spec: {
        node,
        ...CONTAINERS[value % CONTAINERS.length],
        value,
        note: flaw === "huge" ? "ü".repeat(HUGE_TEXT) : `"é\n${value}`,
        ...(flaw === "schema" ? { bad: true } : {}),
      },
    };
    if (flaw !== undefined) this.#flaws.set(object, flaw);
    this.#objects.get(resource)!.set(key, object);
    this.#record(resource, key, previous === undefined ? "create" : "update", object, previous);
  }

  /** Deletes an object, if it exists. */
  delete(resource: string, key: string): void {
    const previous = this.#objects.get(resource)!.get(key);
    if (previous === undefined) return;
    this.#objects.get(resource)!.delete(key);
    const object: SimObject = {
      ...previous,
      metadata: { ...previous.metadata, resourceVersion: String(this.revision + 1) },
    };
    const flaw = this.flawOf(previous);
    if (flaw !== undefined) this.#flaws.set(object, flaw);
    this.#record(resource, key, "delete", object, previous);
  }

  /** A write to a resource that no program lists. */
  tick(): void {
    this.#record("", "", "update", NOBODYS, undefined);
  }

  /** Goes back by some revisions: their changes are lost, and their numbers are assigned again. */
  restore(back: number): void {
    const revision = Math.max(this.#first, this.revision - back);
    this.#history.length = revision - this.#first;
    this.compactedRevision = Math.min(this.compactedRevision, revision);
    this.epoch++;
    for (const resource of this.#objects.keys()) {
      this.#objects.set(resource, this.stateAt(resource, revision));
    }
  }

  /** Another cluster takes the place of this one: it has nothing of it. */
  replace(): void {
    this.replaced++;
    this.restore(Infinity);
  }

  /** What identifies the cluster. */
  get uid(): string {
    return `cluster-${this.replaced}`;
  }

  /** Compacts the history before a revision. */
  compact(revision: number): void {
    this.compactedRevision = Math.max(this.compactedRevision, Math.min(revision, this.revision));
  }

  #record(
    resource: string,
    key: string,
    kind: Revision["kind"],
    object: SimObject,
    previous: SimObject | undefined,
  ): void {
    const revision = {
      revision: this.revision + 1,
      resource,
      key,
      kind,
      object,
      previous,
      frames: new Map<string, Uint8Array>(),
    };
    this.#history.push(revision);
    this.onRevision(revision);
  }
}

// Labels that come, change and go as an object is written again.
function labelsOf(app: string, value: number): Readonly<Record<string, string>> {
  const tier = TIERS[value % TIERS.length];
  return tier === undefined ? { app } : { app, tier };
}

const TIERS = ["front", "back", undefined];

// Difficult input for a scanner of JSON: brackets, braces, quotes and backslashes in strings; empty arrays.
const ANNOTATIONS: readonly Readonly<Record<string, string>>[] = [
  { "kubectl.kubernetes.io/last-applied-configuration": '{"a":["]"]}', "example.com/notes": "]" },
  { "example.com/notes": '\\"]}' },
];
const MANAGED_FIELDS = [{ manager: "writer", fieldsV1: { "f:spec": { 'k:{"name":"["}': [] } } }];
const CONTAINERS: readonly { readonly containers?: readonly Container[] }[] = [
  { containers: [{ name: "app", args: ["--port", "1"] }] },
  { containers: [{ args: ["]},{", ":["], name: "app" }] },
  {},
  { containers: [{ args: ["["], name: "]" }, { name: "side" }, {}] },
  { containers: [] },
];

/** Longer than the frames that some informers accept. */
const HUGE_TEXT = 3_000;
/** The limit that some informers set on a watch's frames, in bytes. */
export const SMALL_FRAME_BYTES = 4_096;

const NOBODYS: SimObject = {
  metadata: { name: "", namespace: "", uid: "", resourceVersion: "" },
  spec: { node: "", value: 0, note: "" },
};
