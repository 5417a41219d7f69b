/** Counts the state that the page shows. */

import type { KubernetesObject } from "../../meta/object.ts";
import { briefReason } from "../errors.ts";
import { visibleText } from "../../util/logger.ts";
import type {
  DashboardState,
  IndexCounts,
  NamespaceCounts,
  NodeCount,
  NodeCounts,
  ResourceState,
} from "./dashboard_message.ts";
import { listPath } from "./object_search.ts";
import { isCore, type ReflectedIndex, type ReflectedResource } from "../cluster/reflect.ts";

const MAX_ROWS = 40;

/**
 * Counts the objects of informers. Only resources that changed are counted again: call
 * {@linkcode DashboardCounter.changed} for each.
 */
export class DashboardCounter {
  readonly #resources: readonly ReflectedResource[];
  readonly #onError: (view: string, error: unknown) => void;
  readonly #changed = new Set<ReflectedResource>();
  readonly #watches: (resource: ReflectedResource) => number;
  readonly #byNamespace = new Map<ReflectedResource, ReadonlyMap<string, number>>();
  readonly #indices = new Map<ReflectedResource, readonly IndexCounts[]>();
  #namespaces: NamespaceCounts | undefined;
  #nodes: NodeCounts | undefined;

  constructor(
    resources: readonly ReflectedResource[],
    options: {
      readonly onError?: (view: string, error: unknown) => void;
      /** The number of open watches of readers; 0 by default. */
      readonly watches?: (resource: ReflectedResource) => number;
    } = {},
  ) {
    this.#resources = resources;
    this.#watches = options.watches ?? (() => 0);
    this.#onError = options.onError ?? (() => {});
    for (const resource of resources) this.#changed.add(resource);
  }

  changed(resource: ReflectedResource): void {
    this.#changed.add(resource);
  }

  /** Returns the present counts. The cost is proportional to the objects of the changed resources. */
  count(): Pick<DashboardState, "resources" | "namespaces" | "nodes" | "indices"> {
    if (this.#changed.size > 0) {
      for (const resource of this.#changed) {
        const counts = this.#guarded("indices", () => countIndices(resource));
        if (counts !== undefined) this.#indices.set(resource, counts);
      }
      this.#namespaces = this.#guarded("namespaces", () => this.#countNamespaces());
      this.#nodes = this.#guarded("nodes", () => this.#countNodes());
      this.#changed.clear();
    }
    return {
      resources: this.#resources.map((resource) => ({
        ...resourceState(resource),
        watches: this.#watches(resource),
      })),
      indices: this.#resources.flatMap((resource) => this.#indices.get(resource) ?? []),
      namespaces: this.#namespaces,
      nodes: this.#nodes,
    };
  }

  /** Returns `undefined` for a part that cannot be counted, so that the others are shown. */
  #guarded<R>(view: string, count: () => R): R | undefined {
    try {
      return count();
    } catch (error) {
      this.#onError(view, error);
      return undefined;
    }
  }

  #countNamespaces(): NamespaceCounts | undefined {
    const columns = this.#resources.filter(({ resource }) => resource.namespaced);
    if (columns.length === 0) return undefined;
    const totals = new Map<string, number>();
    for (const reflected of this.#resources) {
      // An empty namespace is a row, too.
      if (!isCore(reflected, "namespaces")) continue;
      for (const name of reflected.informer.indexer.listKeys()) totals.set(name, 0);
    }
    for (const reflected of columns) {
      const { indexer } = reflected.informer;
      let counts = this.#byNamespace.get(reflected);
      if (counts === undefined || this.#changed.has(reflected)) {
        counts = indexer.indexValueCounts("namespace");
        this.#byNamespace.set(reflected, counts);
      }
      for (const [name, count] of counts) totals.set(name, (totals.get(name) ?? 0) + count);
    }
    const { shown, others } = fullest(totals);
    const countsOf = (name: string) => columns.map((column) => this.#byNamespace.get(column)?.get(name) ?? 0);
    const sums: number[] = columns.map(() => 0);
    for (const name of others) countsOf(name).forEach((count, i) => (sums[i] += count));
    return {
      columns: columns.map(({ name }) => shownName(name)),
      rows: shown.map((name) => ({ name: shownName(name), counts: countsOf(name) })),
      others: others.length > 0 ? { namespaces: others.length, counts: sums } : undefined,
    };
  }

  #countNodes(): NodeCounts | undefined {
    const pods = this.#resources.find((reflected) => isCore(reflected, "pods"));
    const nodes = this.#resources.find((reflected) => isCore(reflected, "nodes"));
    if (pods === undefined) return undefined;
    if (this.#nodes !== undefined && !this.#changed.has(pods) && !(nodes && this.#changed.has(nodes))) {
      return this.#nodes;
    }
    const found = new Map<string, NodeCount>();
    for (const node of (nodes?.informer.indexer.list() ?? []) as Node[]) {
      const name = node.metadata?.name ?? "";
      const room = roomOf(node);
      const closed = node.spec?.unschedulable === true;
      found.set(name, { name, pods: 0, ready: 0, ...(room > 0 && { room }), ...(closed && { closed }) });
    }
    const counts = { unassigned: 0, pods: 0, ready: 0 };
    const { indexer } = pods.informer;
    for (const [name, onNode] of indexer.indexValueCounts("byNode")) {
      const ready = indexer.countByIndex("readyByNode", name);
      counts.pods += onNode;
      counts.ready += ready;
      if (name === "") counts.unassigned = onNode;
      else found.set(name, { ...(found.get(name) ?? { name }), pods: onNode, ready });
    }
    const { shown, others } = fullest(new Map([...found].map(([name, node]) => [name, node.pods])));
    const rows = shown.map((name) => ({ ...found.get(name) as NodeCount, name: shownName(name) }));
    return { rows, others: others.length, ...counts };
  }
}

/** The names with the highest counts, sorted by name, and all other names. */
function fullest(
  counts: ReadonlyMap<string, number>,
): { readonly shown: string[]; readonly others: string[] } {
  const names = [...counts.keys()].sort((a, b) =>
    (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || compare(a, b)
  );
  const shown = names.slice(0, MAX_ROWS).sort(compare);
  return { shown, others: names.slice(MAX_ROWS) };
}

const collator = new Intl.Collator("en", { numeric: true });

function compare(a: string, b: string): number {
  return collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}

const SHOWN_INDICES: readonly ReflectedIndex[] = ["namespace", "byNode"];

function countIndices({ name, informer: { indexer } }: ReflectedResource): IndexCounts[] {
  const found: IndexCounts[] = [];
  for (const index of SHOWN_INDICES) {
    const counts = indexer.indexValueCounts(index);
    let largest = { value: "", objects: 0 };
    for (const [value, objects] of counts) {
      if (objects > largest.objects) largest = { value, objects };
    }
    // Of objects without namespaces, the index by namespace has one value, which says nothing.
    if (counts.size === 0 || (counts.size === 1 && counts.has(""))) continue;
    const { value, objects } = largest;
    found.push({
      resource: shownName(name),
      index: shownName(index),
      values: counts.size,
      largest: { value: shownName(value), objects },
    });
  }
  return found;
}

function resourceState(reflected: ReflectedResource): Omit<ResourceState, "watches"> {
  const { name, informer } = reflected;
  // The paths of snapshots are not for readers.
  const { snapshot: _, ...status } = informer.status();
  const { lastError } = status;
  return {
    ...status,
    ...(lastError && { lastError: { ...lastError, message: briefReason(lastError) } }),
    name: shownName(name),
    path: listPath(reflected),
    objects: informer.indexer.size,
    synced: informer.hasSynced(),
    resourceVersion: informer.indexer.lastStoreSyncResourceVersion(),
  };
}

// The fields may have any type: the body of an object is not validated.
interface Node extends KubernetesObject {
  readonly spec?: { readonly unschedulable?: unknown } | null;
  readonly status?: { readonly allocatable?: { readonly pods?: unknown } | null } | null;
}

/** The number of pods that a node has room for; `NaN` if unknown. */
function roomOf(node: Node): number {
  const pods = node.status?.allocatable?.pods;
  const room = typeof pods === "string" || typeof pods === "number" ? Number(pods) : NaN;
  return Number.isFinite(room) ? room : NaN;
}

// The longest namespace has 63 characters.
const LONGEST_NAME = 64;

export function shownName(name: string): string {
  return visibleText(name, LONGEST_NAME);
}
