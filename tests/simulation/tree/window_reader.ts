/**
 * A screen in the world of a tree: a window of one node, as the library's own client shows it.
 * @module
 */

import { type Group, openGroups, openWindow, type WindowStore } from "../../../src/screens/mod.ts";
import type { WindowQuery } from "../../../src/screens/window_store.ts";
import { type ClusterModel, type SimObject, stateOf } from "../cluster_model.ts";
import { SeededRandom } from "../seeded_random.ts";
import type { VirtualTime } from "../virtual_time.ts";
import { Link, type LinkState, type Target } from "./link.ts";
import type { TreeNode } from "./node.ts";
import { RESOURCE } from "./origin.ts";

/** What a screen knows of its world. */
export interface WindowReaderWorld {
  readonly time: VirtualTime;
  readonly cluster: ClusterModel;
  /** The nodes that have its namespace. */
  readonly nodes: readonly TreeNode[];
  readonly isInDoubt: () => boolean;
  readonly between: (target: Target) => LinkState;
  readonly violate: (text: string) => void;
  readonly log: (text: string) => void;
}

const NAMESPACE = "a";

type Spec = SimObject["spec"];

/** What a screen asks for, and what it must show of a state. */
interface Shown {
  readonly query: WindowQuery;
  /** All rows, in their order, of the objects of a state in the order of their names. */
  rows(objects: readonly SimObject[]): readonly string[];
  text(row: never): string;
}

const wholeText = (row: SimObject) =>
  `${row.metadata.name} ${stateOf(row)} ${row.spec.node} ${row.spec.value}`;
/** The row of an object with nothing but some fields. */
const cutText = ({ metadata, ...rest }: SimObject) => {
  const { name, namespace, uid, resourceVersion, ...more } = metadata;
  const { kind: _, apiVersion: __, ...fields } = rest;
  return JSON.stringify([name, namespace, uid, resourceVersion, more, fields]);
};
const groupText = (row: Group) => JSON.stringify(row);
const cutTo = (object: SimObject, ...names: (keyof Spec)[]): string => {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  const spec = Object.fromEntries(
    Object.entries(object.spec).filter(([key]) => names.includes(key as never)),
  );
  return JSON.stringify([name, namespace, uid, resourceVersion, {}, { spec }]);
};
const byValue = (a: SimObject, b: SimObject) => a.spec.value! - b.spec.value!;
const groupsOf = (objects: readonly SimObject[]): string[] =>
  [...Map.groupBy(objects, ({ spec }) => spec.node!)].sort(([a], [b]) => a < b ? -1 : 1).map(([node, some]) =>
    JSON.stringify({
      group: { "spec.node": node },
      count: some.length,
      sums: { "spec.value": some.reduce((sum, { spec }) => sum + spec.value!, 0) },
    })
  );

const SHOWN: readonly Shown[] = [
  {
    text: wholeText,
    query: { sortBy: "metadata.name:desc" },
    rows: (objects) => objects.toReversed().map(wholeText),
  },
  {
    text: cutText,
    query: { sortBy: "spec.value", fields: ["spec.value"] },
    rows: (objects) => objects.toSorted(byValue).map((object) => cutTo(object, "value")),
  },
  {
    text: wholeText,
    query: { sortBy: "spec.value,metadata.name:desc", offset: 1, filter: "spec.node!=node-1" },
    rows: (objects) =>
      objects.toReversed().filter(({ spec }) => spec.node !== "node-1").toSorted(byValue).map(wholeText),
  },
  {
    text: cutText,
    query: {
      sortBy: "spec.node",
      fields: ["spec.value", "spec.node"],
      filter: "spec.value>3,metadata.name~N",
    },
    rows: (objects) =>
      objects.filter(({ metadata, spec }) => spec.value! > 3 && metadata.name.includes("n"))
        .toSorted((a, b) => a.spec.node! < b.spec.node! ? -1 : Number(a.spec.node !== b.spec.node))
        .map((object) => cutTo(object, "value", "node")),
  },
  { text: groupText, query: { groupBy: ["spec.node"], sum: ["spec.value"] }, rows: groupsOf },
  {
    text: groupText,
    query: { groupBy: ["spec.node"], sum: ["spec.value"], filter: "spec.value<50,metadata.name!=n1" },
    rows: (objects) =>
      groupsOf(objects.filter(({ metadata, spec }) => spec.value! < 50 && metadata.name !== "n1")),
  },
];

/** Shows some rows of the pods of a namespace, or their groups. */
export class WindowReader {
  readonly link: Link;
  readonly #world: WindowReaderWorld;
  readonly #node: TreeNode;
  readonly #limit: number;
  readonly #shown: Shown;
  readonly #store: WindowStore<never>;
  #wasRestored = false;

  constructor(seed: number, world: WindowReaderWorld) {
    const random = new SeededRandom(seed);
    const { time, log, between } = world;
    this.#world = world;
    this.#node = random.pick(world.nodes);
    this.#limit = random.int(1, 4);
    const link = this.link = new Link({ name: "screen", time, random: random.fork(), log, between });
    const fetch = link.fetchTo(() => this.#node);
    this.#shown = random.pick(SHOWN);
    const { query } = this.#shown;
    const options = {
      ...query,
      url: `http://node/api/v1/namespaces/${NAMESPACE}/${RESOURCE}`,
      clock: time,
      random: () => random.next(),
      fetch: async ({ url, headers, signal }: Request) => await fetch(url, { headers, signal }),
    };
    const store: WindowStore<never> | WindowStore<Group> = query.groupBy === undefined
      ? openWindow<never>({ ...options, limit: this.#limit })
      : openGroups(options);
    this.#store = store as WindowStore<never>;
    this.#store.subscribe(() => this.#check());
  }

  /** The origin was restored: versions that it shows may be of a lost history. */
  forget(): void {
    this.#wasRestored = true;
  }

  /** How what it shows differs from the origin. */
  difference(): string | undefined {
    const { state, rows, total } = this.#store.getSnapshot();
    if (state !== "live") return `the screen at ${this.#node.name} is ${state}`;
    const shown = this.#text(rows, total);
    const is = this.#stateAt(this.#world.cluster.revision);
    return shown === is ? undefined : `the screen at ${this.#node.name} shows ${shown}, not ${is}`;
  }

  stop(): void {
    this.#store.close();
  }

  /** Checks that what is shown, at each time, is a state that was. */
  #check(): void {
    const { state, rows, total, resourceVersion } = this.#store.getSnapshot();
    if (state === "connecting" || state === "closed" || this.#wasRestored) return;
    const shown = this.#text(rows, total);
    const was = this.#stateAt(Number(resourceVersion));
    if (shown === was) return;
    this.#world.violate(
      `the screen at ${this.#node.name}, ${state}, shows ${shown} at ${resourceVersion}, where it was ${was}`,
    );
  }

  #stateAt(revision: number): string {
    const objects = [...this.#world.cluster.stateAt(RESOURCE, revision).values()];
    const rows = this.#shown.rows(objects.filter(({ metadata }) => metadata.namespace === NAMESPACE));
    const { groupBy, offset = 0 } = this.#shown.query;
    if (groupBy !== undefined) return textOf(rows, rows.length);
    return textOf(rows.slice(offset, offset + this.#limit), rows.length);
  }

  #text(rows: readonly never[], total: number): string {
    return textOf(rows.map((row) => this.#shown.text(row)), total);
  }
}

function textOf(rows: readonly string[], total: number): string {
  return `${rows.join(", ")} of ${total}`;
}
