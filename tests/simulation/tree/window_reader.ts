/**
 * A screen in the world of a tree: a window of one node, as the library's own client shows it.
 * @module
 */

import { openWindow, type WindowStore } from "../../../src/screens/mod.ts";
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

/** Shows the first pods of a namespace, by their names from the end. */
export class WindowReader {
  readonly link: Link;
  readonly #world: WindowReaderWorld;
  readonly #node: TreeNode;
  readonly #limit: number;
  readonly #store: WindowStore<SimObject>;
  #wasRestored = false;

  constructor(seed: number, world: WindowReaderWorld) {
    const random = new SeededRandom(seed);
    const { time, log, between } = world;
    this.#world = world;
    this.#node = random.pick(world.nodes);
    this.#limit = random.int(1, 4);
    const link = this.link = new Link({ name: "screen", time, random: random.fork(), log, between });
    const fetch = link.fetchTo(() => this.#node);
    this.#store = openWindow<SimObject>({
      url: `http://node/api/v1/namespaces/${NAMESPACE}/${RESOURCE}`,
      sortBy: "metadata.name:desc",
      limit: this.#limit,
      clock: time,
      random: () => random.next(),
      fetch: async ({ url, headers, signal }) => await fetch(url, { headers, signal }),
    });
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

  /** What it shows, at each time, is a state that was. */
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
    const all = [...this.#world.cluster.stateAt(RESOURCE, revision)].filter(([key]) =>
      key.startsWith(`${NAMESPACE}/`)
    ).map(([, object]) => object);
    return this.#text(all.toReversed().slice(0, this.#limit), all.length);
  }

  #text(rows: readonly SimObject[], total: number): string {
    return `${rows.map((row) => `${row.metadata.name} ${stateOf(row)}`).join(", ")} of ${total}`;
  }
}
