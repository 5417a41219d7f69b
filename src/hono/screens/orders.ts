/** Objects in the order of their values, and pages of them: places are numbers of rows, in one state. */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import type { Held } from "../../store/holding.ts";
import {
  type Block,
  type Blocks,
  blocksOf,
  firstIn,
  mergedBlocks,
  NO_BLOCKS,
  readerOf,
  withChanges,
} from "../content/states.ts";
import type { Content } from "../content/content.ts";
import { isRewritten, type ListRequest, type Page, stateTooOld } from "../content/selection.ts";
import type { Pacer, Steps } from "../../util/turns.ts";
import { type FollowedObject, FollowedObjects, type FollowOptions } from "./followed_objects.ts";
import type { OrderSpec } from "./order_spec.ts";
import { RowsState } from "./row_changes.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import { decodeContinue, encodeContinue, LATEST } from "../../protocol/continue_token.ts";
import type { ScreenQuery } from "../../protocol/screen_query.ts";
import { continueTooOld, isStatus, quotedStart } from "../../protocol/statuses.ts";

/** Objects as they were read, in the order of their keys, with their places. */
interface ReadObjects<T> {
  readonly keys: string[];
  readonly helds: Held<T>[];
  readonly places: string[];
}

/** The objects that come first of those that were read, by their places there. */
class FirstObjects<T> {
  readonly #count: number;
  #best: number[] = [];
  readonly rows: PromiseWithResolvers<RowsState<Held<T>>> = Promise.withResolvers();

  constructor(count: number) {
    this.#count = count;
  }

  /** The objects from one index on are new. */
  look({ places }: ReadObjects<T>, from: number): void {
    const best = this.#best;
    const last = best.length < this.#count ? undefined : places[best[this.#count - 1]];
    const { length } = best;
    for (let i = from; i < places.length; i++) if (last === undefined || places[i] < last) best.push(i);
    if (best.length === length) return;
    best.sort((a, b) => places[a] < places[b] ? -1 : 1);
    best.length = Math.min(best.length, this.#count);
  }

  settle({ keys, places, helds }: ReadObjects<T>, resourceVersion: string): void {
    const byPlace = new Map(this.#best.map((i) => [places[i], helds[i]]));
    const blocks = blocksOf([...byPlace.keys()], (place) => byPlace.get(place));
    this.rows.resolve(new RowsState(blocks, resourceVersion, keys.length));
  }
}

// More rows than a screen shows.
const MOST_FIRST = 2_000;
// Few enough to be sorted in one step.
const RUN = 256;
// The head of a place, and what refers to it, the key and the object: measured, with some garbage.
const ENTRY_BYTES = 100;

/** The selected objects of one content in one order; objects of equal values in the order of their keys. */
export class Order<T extends KubernetesObject> extends FollowedObjects<T, Held<T>> {
  readonly #spec: OrderSpec;
  /** The place of each object, by its key: the text that it is sorted by, then its key. */
  #places: Blocks<string> = NO_BLOCKS;
  /** Objects that were read and are not in order yet. */
  #read: ReadObjects<T> = nothingRead();
  #bytes = 0;
  /** Collects the first objects, for a reader that should not wait until all are in order. */
  #first: FirstObjects<T> | undefined;

  constructor(content: Content<T>, spec: OrderSpec, options: Omit<FollowOptions, "reads">) {
    super(content, { ...options, reads: spec.reads });
    this.#spec = spec;
  }

  get length(): number {
    return this.#places.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * The first objects, where the order has to be made: as soon as all are read, and before they are in order.
   * `undefined` once it is {@linkcode Order.ready}, where others wait for it already, or want more of it.
   */
  async first(count: number, pacer: Pacer): Promise<RowsState<Held<T>> | undefined> {
    if (!this.isBehind || this.isReading || count > MOST_FIRST) return undefined;
    const { rows } = this.#first = new FirstObjects(count);
    return await Promise.race([rows.promise, this.ready(pacer)?.then(() => undefined)]);
  }

  /** The state at a resourceVersion of the past; `undefined` if that is not known any more. */
  at(resourceVersion: string): RowsState<Held<T>> | undefined {
    this.catchUp();
    const differences = this.content.states.differencesAt(resourceVersion);
    if (differences === undefined) return undefined;
    const values = new Map<string, Held<T> | undefined>();
    for (const [key, held] of differences) {
      const object = held === undefined ? undefined : this.selected(key, held);
      const place = this.#placeFor(key, object);
      const now = this.#placeOf(key);
      if (now !== undefined) values.set(now, undefined);
      if (place !== undefined) values.set(place, held);
    }
    return new RowsState(changed(this.blocks, values), resourceVersion);
  }

  indexOf(key: string): number | undefined {
    this.catchUp();
    const place = this.#placeOf(key);
    return place === undefined ? undefined : firstIn(this.blocks, place);
  }

  protected clear(): void {
    this.#places = NO_BLOCKS;
    this.#read = nothingRead();
    this.#bytes = 0;
  }

  protected read(objects: readonly FollowedObject<T>[]): void {
    const { keys, helds, places } = this.#read;
    const from = keys.length;
    for (const { key, held, object } of objects) {
      const place = this.#placeFor(key, object)!;
      keys.push(key);
      helds.push(held!);
      places.push(place);
      this.#bytes += bytesOf(place);
    }
    this.#first?.look(this.#read, from);
  }

  protected *settle(resourceVersion: string | undefined): Steps {
    const { keys, helds, places } = this.#read;
    if (resourceVersion !== undefined) this.#first?.settle(this.#read, resourceVersion);
    this.#first = undefined;
    const runs: Block<Held<T>>[] = [];
    for (let from = 0; from < keys.length; from += RUN) {
      const run = Array.from({ length: Math.min(RUN, keys.length - from) }, (_, i) => from + i);
      run.sort((a, b) => places[a] < places[b] ? -1 : 1);
      runs.push({ keys: run.map((i) => places[i]), values: run.map((i) => helds[i]) });
      yield;
    }
    this.blocks = yield* mergedBlocks(runs);
    let next = 0;
    this.#places = blocksOf(keys, () => places[next++]);
    this.#read = nothingRead();
  }

  protected put(objects: Iterable<FollowedObject<T>>): void {
    const values = new Map<string, Held<T> | undefined>();
    const places = new Map<string, string | undefined>();
    for (const { key, held, object } of objects) {
      const place = this.#placeFor(key, object);
      const before = this.#placeOf(key);
      if (before !== undefined && before !== place) values.set(before, undefined);
      if (place !== undefined) values.set(place, held);
      if (before === place) continue;
      places.set(key, place);
      this.#bytes += (place === undefined ? 0 : bytesOf(place)) -
        (before === undefined ? 0 : bytesOf(before));
    }
    this.blocks = changed(this.blocks, values);
    this.#places = changed(this.#places, places);
  }

  /** The place of an object; `undefined` for none. */
  #placeFor(key: string, object: T | undefined): string | undefined {
    return object && this.#spec.textOf(object) + key;
  }

  #placeOf(key: string): string | undefined {
    const index = firstIn(this.#places, key);
    if (index === this.#places.length) return undefined;
    const reader = readerOf(this.#places);
    return reader.key(index) === key ? reader.value(index) : undefined;
  }
}

function nothingRead<T>(): ReadObjects<T> {
  return { keys: [], helds: [], places: [] };
}

const WIDE = /[^\0-\xff]/;

function bytesOf(place: string): number {
  return ENTRY_BYTES + place.length * (WIDE.test(place) ? 2 : 1);
}

function changed<V>(blocks: Blocks<V>, values: ReadonlyMap<string, V | undefined>): Blocks<V> {
  return values.size === 0 ? blocks : withChanges(blocks, values.keys(), (place) => values.get(place));
}

/** The first row of a page or a window; `undefined` if the object that it is around is not there. */
export function offsetOf(
  order: Pick<Order<KubernetesObject>, "indexOf" | "length">,
  { limit, offset = 0, around }: Pick<ScreenQuery, "limit" | "offset" | "around">,
): number | undefined {
  if (around === undefined) return Math.min(offset, order.length);
  const index = order.indexOf(around);
  if (index === undefined) return undefined;
  const rows = limit || order.length;
  return Math.max(0, Math.min(index - Math.floor(rows / 2), order.length - rows));
}

export function notAround(around: string): Status {
  const message = `around: ${quotedStart(around)} is none of the objects that are selected`;
  const cause = { reason: "FieldValueNotFound", message, field: "around" };
  return newStatus(404, "NotFound", message, { causes: [cause] });
}

/**
 * How many of the first rows are enough for a page or a window of the present state; `undefined` if the whole
 * order is wanted.
 */
export function firstRows({ limit, offset = 0, around }: ScreenQuery): number | undefined {
  return around === undefined && limit ? offset + limit : undefined;
}

/**
 * Cuts a page out of an order, in one turn: the present state, or that of a token or of an exact version.
 * @param first The first rows of the present state, where the order is not ready.
 */
export function cutSortedPage<T extends KubernetesObject>(
  { log }: Content<T>,
  order: Order<T>,
  request: ListRequest & { readonly screen: ScreenQuery; readonly first?: RowsState<Held<T>> | undefined },
): Page<T> | Status {
  const { options, screen, first } = request;
  const placed = first === undefined
    ? place(log.window, order, request)
    : { state: first, offset: screen.offset ?? 0 };
  if (isStatus(placed)) return placed;
  const { state, offset } = placed;
  const limit = options.limit ?? screen.limit ?? 0;
  const from = Math.min(offset, state.length);
  const to = limit === 0 ? state.length : Math.min(state.length, from + limit);
  const page = {
    resourceVersion: state.resourceVersion,
    object: state.value,
    from,
    to,
    bytes: 0, // the order has them
    window: { total: state.length, offset: from },
  };
  if (to === state.length) return page;
  const epoch = request.epochOf(log.window.rewrites);
  const next = (resourceVersion: string): ListMeta => ({
    continue: encodeContinue({ resourceVersion, epoch, start: String(to), list: request.identity() }),
    remainingItemCount: state.length - to,
  });
  return { ...page, next };
}

function place<T extends KubernetesObject>(
  window: Content<T>["log"]["window"],
  order: Order<T>,
  request: ListRequest & { readonly screen: ScreenQuery },
): { readonly state: RowsState<Held<T>>; readonly offset: number } | Status {
  const { options, screen } = request;
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (isStatus(token)) return token;
    const offset = Number(token.start);
    // The API server has none of sorted lists.
    if (token.list !== request.identity() || !/^[0-9]{1,9}$/.test(token.start)) {
      const why = "it is of another list; continue with the same path, order, selectors and user";
      return newStatus(400, "BadRequest", `invalid continue token: ${why}`);
    }
    if (token.resourceVersion === LATEST) return { state: order.present(), offset };
    const isSameEpoch = !isRewritten(token.epoch, request.epochOf(window.rewrites));
    const isPresent = token.resourceVersion === window.resourceVersion;
    const state = !isSameEpoch ? undefined : isPresent ? order.present() : order.at(token.resourceVersion);
    if (state !== undefined) return { state, offset };
    const rest = { resourceVersion: LATEST, start: token.start, list: request.identity() };
    return continueTooOld(encodeContinue(rest));
  }
  const { resourceVersion = "0", resourceVersionMatch } = options;
  if (resourceVersionMatch === "Exact") {
    const state = order.at(resourceVersion);
    return state === undefined ? stateTooOld(resourceVersion) : { state, offset: screen.offset ?? 0 };
  }
  const state = order.present();
  const offset = offsetOf(order, screen);
  return offset === undefined ? notAround(screen.around!) : { state, offset };
}
