/** Objects in the order of their values, kept while they are read. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { Held } from "../../store/holding.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { OPEN_UNITS, type Pacer } from "../../util/turns.ts";
import { type Blocks, firstIn, NO_BLOCKS, readerOf, withChanges } from "../content/blocks.ts";
import type { Content } from "../content/content.ts";
import type { Selection } from "../content/selection.ts";
import type { Keeper, Readers } from "../request/readers.ts";
import type { OrderSpec } from "./order_spec.ts";

/** Objects in an order, as they are at one resourceVersion. Never changes. */
export interface OrderState<T> {
  readonly resourceVersion: string;
  readonly length: number;
  readonly object: (index: number) => Held<T>;
}

export interface OrderOptions {
  readonly spec: OrderSpec;
  /** Which objects it has; all of them without. */
  readonly selection: Selection | undefined;
}

// A batch is put into the blocks at once: few enough for one turn, enough to be worth the copies.
const BATCH = 1_024;
const SORT_UNITS = 200;
// After that, content that changes as fast as it is read is read in one turn.
const MOST_TRIES = 3;

/**
 * The selected objects of one content in one order. It reads all of them when it is first wanted, in turns;
 * from then on the entries of the log that have come since, when it is read: a change costs nothing until
 * the next read. Objects of equal values are in the order of their keys.
 */
export class Order<T extends KubernetesObject> {
  readonly #content: Content<T>;
  readonly #options: OrderOptions;
  #blocks: Blocks<Held<T>> = NO_BLOCKS;
  /** Where each object is: the text that it is sorted by, then its key. */
  #places = new Map<string, string>();
  /** The next entry to read; `undefined` before the first reading. */
  #next: number | undefined;
  #rewrites = 0;
  #reading: Promise<void> | undefined;
  #state: (OrderState<T> & { readonly blocks: Blocks<Held<T>> }) | undefined;
  /** How many windows show it. */
  windows = 0;

  constructor(content: Content<T>, options: OrderOptions) {
    this.#content = content;
    this.#options = options;
  }

  get length(): number {
    return this.#places.size;
  }

  /** Whether all objects must be read before it can be. */
  get isBehind(): boolean {
    const { tail, rewrites } = this.#content.log.window;
    return this.#next === undefined || this.#next < tail || this.#rewrites !== rewrites;
  }

  /** Reads all objects, where it must, in turns; `undefined` if it need not. */
  ready(pacer: Pacer): Promise<void> | undefined {
    if (!this.isBehind && this.#reading === undefined) return undefined;
    return this.#reading ??= this.#readAll(pacer).finally(() => this.#reading = undefined);
  }

  /** The present state; {@linkcode Order.ready} must be done. */
  present(): OrderState<T> {
    this.#catchUp();
    const { resourceVersion } = this.#content.log.window;
    if (this.#state?.blocks !== this.#blocks || this.#state.resourceVersion !== resourceVersion) {
      this.#state = { ...stateOf(this.#blocks, resourceVersion), blocks: this.#blocks };
    }
    return this.#state;
  }

  /** The state at a resourceVersion of the past; `undefined` if that is not known any more. */
  at(resourceVersion: string): OrderState<T> | undefined {
    this.#catchUp();
    const differences = this.#content.states.differencesAt(resourceVersion);
    if (differences === undefined) return undefined;
    const values = new Map<string, Held<T> | undefined>();
    for (const [key, held] of differences) {
      const place = this.#placeOf(key, held);
      const now = this.#places.get(key);
      if (now !== undefined && now !== place) values.set(now, undefined);
      if (place !== undefined) values.set(place, held);
    }
    return stateOf(changed(this.#blocks, values), resourceVersion);
  }

  /** The index of an object in the present state; `undefined` if it is not there. */
  indexOf(key: string): number | undefined {
    this.#catchUp();
    const place = this.#places.get(key);
    return place === undefined ? undefined : firstIn(this.#blocks, place);
  }

  #placeOf(key: string, held: Held<T> | undefined): string | undefined {
    if (held === undefined) return undefined;
    const { selection, spec } = this.#options;
    if (selection?.mayHave(key) === false || selection?.hasLabels?.(held) === false) return undefined;
    const object = this.#content.holding.peek(held);
    if (selection?.hasFields?.(object) === false) return undefined;
    return spec.textOf(object) + key;
  }

  #catchUp(): void {
    const { tail, entries } = this.#content.log.window;
    const latest = new Map<string, Held<T> | undefined>();
    for (let i = this.#next! - tail; i < entries.length; i++) {
      const { type, key, object } = entries.at(i)!;
      if (type !== "BOOKMARK") latest.set(key, type === "DELETED" ? undefined : object);
    }
    this.#next = tail + entries.length;
    if (latest.size > 0) this.#put(latest);
  }

  #put(objects: ReadonlyMap<string, Held<T> | undefined>): void {
    const values = new Map<string, Held<T> | undefined>();
    for (const [key, held] of objects) {
      const place = this.#placeOf(key, held);
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

  async #readAll(pacer: Pacer): Promise<void> {
    const { log, states } = this.#content;
    const { selection } = this.#options;
    const units = SORT_UNITS + OPEN_UNITS + (selection?.units ?? 0);
    for (let tries = 1; this.isBehind; tries++) {
      const { head, window: { rewrites } } = log;
      const now = states.candidates(selection?.indexed);
      this.#blocks = NO_BLOCKS;
      this.#places = new Map();
      for (let i = 0; i < now.length;) {
        const batch = new Map<string, Held<T>>();
        for (; i < now.length && batch.size < BATCH; i++) batch.set(now.key(i), now.object(i));
        this.#put(batch);
        if (pacer.spend(units * batch.size) && tries <= MOST_TRIES) await pacer.rest();
      }
      this.#next = head;
      this.#rewrites = rewrites;
    }
  }
}

function changed<V>(blocks: Blocks<V>, values: ReadonlyMap<string, V | undefined>): Blocks<V> {
  return values.size === 0 ? blocks : withChanges(blocks, values.keys(), (place) => values.get(place));
}

function stateOf<T>(blocks: Blocks<Held<T>>, resourceVersion: string): OrderState<T> {
  const { value: object } = readerOf(blocks);
  return { resourceVersion, length: blocks.length, object };
}

interface KeptOrder {
  readonly order: Order<KubernetesObject>;
  readonly name: string;
  readonly ofContent: Map<string, KeptOrder>;
  usedMs: number;
  /** What was counted for it. */
  bytes: number;
}

// A reader turns a page within a minute.
const IDLE_MS = 60_000;
// The text and the key of one object, its places in two maps.
const ENTRY_BYTES = 250;

/**
 * Keeps the orders of all contents: while windows show them, and for a minute after they were last read. The
 * least recently used ones are dropped for the sake of readers when all bytes are spent. It needs no timer:
 * what is unused is dropped at the next request, whatever that is for.
 */
export class Orders implements Keeper {
  readonly #readers: Readers;
  readonly #clock: Clock;
  readonly #byContent = new WeakMap<Content<KubernetesObject>, Map<string, KeptOrder>>();
  /** The least recently used first. */
  readonly #kept = new Set<KeptOrder>();

  constructor({ readers, clock }: { readonly readers: Readers; readonly clock: Clock }) {
    this.#readers = readers;
    this.#clock = clock;
    readers.addKeeper(this);
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The order of that name, which it keeps; one of its own for objects that others do not select. */
  get(content: Content<KubernetesObject>, options: OrderOptions): Order<KubernetesObject> {
    const { selection, spec } = options;
    const selected = selection === undefined ? "" : selection.sharedAs;
    if (selected === undefined) return new Order(content, options);
    let ofContent = this.#byContent.get(content);
    if (ofContent === undefined) this.#byContent.set(content, ofContent = new Map());
    const name = JSON.stringify([spec.name, selected]);
    let kept = ofContent.get(name);
    if (kept === undefined) {
      kept = { order: new Order(content, options), name, ofContent, usedMs: 0, bytes: 0 };
      ofContent.set(name, kept);
    }
    kept.usedMs = monotonicNow(this.#clock);
    this.#kept.delete(kept);
    this.#kept.add(kept);
    this.#count(kept);
    return kept.order;
  }

  /** Drops what was not read for a while. */
  dropUnused(): void {
    if (this.#kept.size === 0) return;
    const beforeMs = monotonicNow(this.#clock) - IDLE_MS;
    for (const kept of this.#kept) {
      this.#count(kept);
      if (kept.order.windows === 0 && kept.usedMs <= beforeMs) this.#drop(kept);
    }
  }

  dropSome(): boolean {
    for (const kept of this.#kept) {
      if (kept.order.windows > 0 || kept.bytes === 0) continue;
      this.#drop(kept);
      return true;
    }
    return false;
  }

  /** Counts what has come since; once there is room, if there is none. */
  #count(kept: KeptOrder): void {
    const bytes = kept.order.length * ENTRY_BYTES;
    if (bytes <= kept.bytes) this.#readers.unkeep(kept.bytes - bytes);
    else if (!this.#readers.keep(bytes - kept.bytes)) return;
    // It may have been dropped for its own sake.
    if (this.#kept.has(kept)) kept.bytes = bytes;
    else this.#readers.unkeep(bytes - kept.bytes);
  }

  #drop(kept: KeptOrder): void {
    this.#kept.delete(kept);
    kept.ofContent.delete(kept.name);
    this.#readers.unkeep(kept.bytes);
    kept.bytes = 0;
  }
}
