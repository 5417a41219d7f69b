/** Counts and sums of objects by the values of their fields. */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import type { ScreenPath } from "../../protocol/screen_syntax.ts";
import { getOrMake } from "../../util/collections.ts";
import type { Steps } from "../../util/turns.ts";
import { type Block, mergedBlocks, withChanges } from "../content/states.ts";
import type { Content } from "../content/content.ts";
import type { Selection } from "../content/selection.ts";
import { type FollowedObject, FollowedObjects, type HasRoom } from "./followed_objects.ts";
import { aggregate, eachValue, sortText } from "./order_spec.ts";

export const SCREENS_VERSION = "screens.listwatch/v1";

/** A group as it is sent. Never changes. */
export interface Group {
  /** The value of each field, by its path; `null` for objects without it. */
  readonly group: Readonly<Record<string, unknown>>;
  readonly count: number;
  /** The sum of each field, by its path. */
  readonly sums?: Readonly<Record<string, number>>;
}

export interface GroupsOptions {
  readonly groupBy: readonly ScreenPath[];
  readonly sum: readonly ScreenPath[];
  readonly selection: Selection | undefined;
  readonly hasRoom: HasRoom;
}

interface Tally {
  readonly place: string;
  readonly values: readonly unknown[];
  count: number;
  readonly sums: readonly Sum[];
}

/** A sum of doubles with what was lost in it (Neumaier's): small numbers outlive a large one. */
class Sum {
  #sum = 0;
  #lost = 0;

  get value(): number {
    return this.#sum + this.#lost;
  }

  add(number: number): void {
    const before = this.#sum;
    this.#sum += number;
    const [large, small] = Math.abs(before) >= Math.abs(number) ? [before, number] : [number, before];
    this.#lost += large - this.#sum + small;
  }
}

interface Share {
  readonly tallies: readonly Tally[];
  readonly sums: readonly number[];
}

// An object is in one group for each combination of its values.
const MOST_OF_ONE = 100;
// An object's share; a group and its row, without the values, which its place and its row have, too; a sum.
const SHARE_BYTES = 250;
const TALLY_BYTES = 1_000;
const VALUES_TIMES = 3;
const SUM_BYTES = 16;
// Few enough to be sorted in one step.
const RUN = 256;
// Sums of doubles differ by the order of what was added and taken away.
const SUM_DIGITS = 12;

/** All groups, in the order of their values. */
export class Groups<T extends KubernetesObject> extends FollowedObjects<T, Group> {
  readonly #options: GroupsOptions;
  readonly #tallies = new Map<string, Tally>();
  readonly #shares = new Map<string, Share>();
  #placeLengths = 0;

  constructor(content: Content<T>, options: GroupsOptions) {
    super(content, { ...options, reads: [...options.groupBy, ...options.sum] });
    this.#options = options;
  }

  get bytes(): number {
    const ofSums = SUM_BYTES * this.#options.sum.length;
    const ofTallies = this.#tallies.size * (TALLY_BYTES + 4 * ofSums) + VALUES_TIMES * this.#placeLengths;
    return this.#shares.size * (SHARE_BYTES + ofSums) + ofTallies;
  }

  protected clear(): void {
    this.#tallies.clear();
    this.#shares.clear();
    this.#placeLengths = 0;
  }

  protected read(objects: readonly FollowedObject<T>[]): void {
    this.#change(objects, new Set());
  }

  protected *settle(): Steps {
    const tallies = [...this.#tallies.values()];
    const runs: Block<Group>[] = [];
    for (let i = 0; i < tallies.length; i += RUN) {
      const run = tallies.slice(i, i + RUN).sort((a, b) => a.place < b.place ? -1 : 1);
      runs.push({ keys: run.map(({ place }) => place), values: run.map((tally) => this.#groupOf(tally)) });
      yield;
    }
    this.blocks = yield* mergedBlocks(runs);
  }

  protected put(objects: Iterable<FollowedObject<T>>): void {
    const changed = new Set<Tally>();
    this.#change(objects, changed);
    this.#show(changed);
  }

  #change(objects: Iterable<FollowedObject<T>>, changed: Set<Tally>): void {
    for (const { key, object } of objects) {
      const before = this.#shares.get(key);
      if (before !== undefined) this.#add(before, -1, changed);
      if (object === undefined) this.#shares.delete(key);
      else {
        const share = this.#shareOf(object);
        this.#add(share, 1, changed);
        this.#shares.set(key, share);
      }
    }
  }

  #show(changed: Iterable<Tally>): void {
    const groups = new Map<string, Group | undefined>();
    for (const tally of changed) {
      if (tally.count === 0 && this.#tallies.delete(tally.place)) this.#placeLengths -= tally.place.length;
      groups.set(tally.place, tally.count === 0 ? undefined : this.#groupOf(tally));
    }
    this.blocks = withChanges(this.blocks, groups.keys(), (place) => groups.get(place));
  }

  #add({ tallies, sums }: Share, sign: 1 | -1, changed: Set<Tally>): void {
    for (const tally of tallies) {
      tally.count += sign;
      for (const [i, sum] of sums.entries()) tally.sums[i].add(sign * sum);
      changed.add(tally);
    }
  }

  #shareOf(object: T): Share {
    const { groupBy, sum } = this.#options;
    let combinations: unknown[][] = [[]];
    for (const path of groupBy) {
      const values = new Map<string, unknown>();
      eachValue(object, path, (value) => {
        const scalar = typeof value === "object" ? null : value;
        values.set(JSON.stringify(scalar), scalar);
      });
      if (values.size === 0) values.set("null", null);
      combinations = combinations.flatMap((some) => Array.from(values.values(), (value) => [...some, value]));
      combinations.length = Math.min(combinations.length, MOST_OF_ONE);
    }
    return {
      tallies: combinations.map((values) => this.#tallyOf(values)),
      sums: sum.map((path) => aggregate("sum", path, object) ?? 0),
    };
  }

  #tallyOf(values: readonly unknown[]): Tally {
    const order = values.map((value) => sortText(value, { isDescending: false })).join("");
    const place = order + JSON.stringify(values);
    return getOrMake(this.#tallies, place, () => {
      this.#placeLengths += place.length;
      return { place, values, count: 0, sums: this.#options.sum.map(() => new Sum()) };
    });
  }

  #groupOf({ values, count, sums }: Tally): Group {
    const { groupBy, sum } = this.#options;
    const group = Object.fromEntries(groupBy.map(({ text }, i) => [text, values[i]]));
    if (sum.length === 0) return { group, count };
    const rounded = sum.map(({ text }, i) => [text, Number(sums[i].value.toPrecision(SUM_DIGITS))]);
    return { group, count, sums: Object.fromEntries(rounded) };
  }
}

export function groupList(metadata: ListMeta): Record<string, unknown> {
  return { kind: "GroupList", apiVersion: SCREENS_VERSION, metadata };
}
