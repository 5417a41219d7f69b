/** Objects in the order of their values. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { Held } from "../../store/holding.ts";
import { type Block, type Blocks, firstIn, mergedBlocks, NO_BLOCKS, withChanges } from "../content/states.ts";
import type { Content } from "../content/content.ts";
import type { Selection } from "../content/selection.ts";
import type { Steps } from "../../util/turns.ts";
import { type FollowedObject, FollowedObjects } from "./followed_objects.ts";
import type { OrderSpec } from "./order_spec.ts";
import { RowsState } from "./rows_state.ts";

/**
 * The selected objects of one content in one order. Objects of equal values are in the order of their keys.
 */
export class Order<T extends KubernetesObject> extends FollowedObjects<T> {
  readonly #spec: OrderSpec;
  #blocks: Blocks<Held<T>> = NO_BLOCKS;
  /** What was read, before it is joined. */
  #runs: Block<Held<T>>[] = [];
  /** Where each object is: the text that it is sorted by, then its key. */
  #places = new Map<string, string>();
  #state: RowsState<Held<T>> | undefined;

  constructor(content: Content<T>, { spec, selection }: OrderOptions) {
    super(content, { selection, reads: spec.reads });
    this.#spec = spec;
  }

  get length(): number {
    return this.#places.size;
  }

  /** The present state; {@linkcode Order.ready} must be done. */
  present(): RowsState<Held<T>> {
    this.catchUp();
    const { resourceVersion } = this.content.log.window;
    if (!this.#state?.isOf(this.#blocks, resourceVersion)) {
      this.#state = new RowsState(this.#blocks, resourceVersion);
    }
    return this.#state;
  }

  /** The state at a resourceVersion of the past; `undefined` if that is not known any more. */
  at(resourceVersion: string): RowsState<Held<T>> | undefined {
    this.catchUp();
    const differences = this.content.states.differencesAt(resourceVersion);
    if (differences === undefined) return undefined;
    const values = new Map<string, Held<T> | undefined>();
    for (const [key, held] of differences) {
      const object = held === undefined ? undefined : this.selected(key, held);
      const place = object && this.#spec.textOf(object) + key;
      const now = this.#places.get(key);
      if (now !== undefined && now !== place) values.set(now, undefined);
      if (place !== undefined) values.set(place, held);
    }
    return new RowsState(changed(this.#blocks, values), resourceVersion);
  }

  /** The index of an object in the present state; `undefined` if it is not there. */
  indexOf(key: string): number | undefined {
    this.catchUp();
    const place = this.#places.get(key);
    return place === undefined ? undefined : firstIn(this.#blocks, place);
  }

  protected clear(): void {
    this.#blocks = NO_BLOCKS;
    this.#runs = [];
    this.#places = new Map();
  }

  protected read(objects: readonly FollowedObject<T>[]): void {
    const read = objects.map(({ key, held, object }) => {
      const place = this.#spec.textOf(object!) + key;
      this.#places.set(key, place);
      return { place, held: held! };
    });
    read.sort((a, b) => a.place < b.place ? -1 : 1);
    this.#runs.push({ keys: read.map(({ place }) => place), values: read.map(({ held }) => held) });
  }

  protected *settle(): Steps {
    this.#blocks = yield* mergedBlocks(this.#runs);
    this.#runs = [];
  }

  protected put(objects: Iterable<FollowedObject<T>>): void {
    const values = new Map<string, Held<T> | undefined>();
    for (const { key, held, object } of objects) {
      const place = object && this.#spec.textOf(object) + key;
      const before = this.#places.get(key);
      if (before !== undefined && before !== place) values.set(before, undefined);
      if (place === undefined) this.#places.delete(key);
      else {
        values.set(place, held);
        this.#places.set(key, place);
      }
    }
    this.#blocks = changed(this.#blocks, values);
  }
}

export interface OrderOptions {
  readonly spec: OrderSpec;
  /** Which objects it has; all of them without. */
  readonly selection: Selection | undefined;
}

function changed<V>(blocks: Blocks<V>, values: ReadonlyMap<string, V | undefined>): Blocks<V> {
  return values.size === 0 ? blocks : withChanges(blocks, values.keys(), (place) => values.get(place));
}
