/** Writes that take several turns: replacing the content of a store, adding indices to it. */

import { finish, STEP_OBJECTS, type Steps } from "../util/turns.ts";
import { IndexFuncError } from "./errors.ts";
import { type Entry, newEntry } from "./index_bucket.ts";
import type { Indexers } from "./index_func.ts";
import type { ReplaceOptions } from "./store.ts";
import { StoreIndex, type Values } from "./store_index.ts";

/** The content of a store, and what a write of several turns needs to know of the other writes meanwhile. */
export interface StoreContent<T> {
  readonly entries: ReadonlyMap<string, Entry<T>>;
  readonly index: StoreIndex<T>;
  /** The resourceVersion that the content has reached. */
  resourceVersion: string;
  /** Grows with every change of the objects, and of the indices. */
  readonly writes: number;
  /** Grows when the indices are others than before. */
  readonly indexChanges: number;
  /** Sets that receive the keys of the objects that are written. */
  readonly journals: Set<Set<string>>;
  /** Puts an object in under these values, and returns the one it replaces. */
  put(key: string, object: T, values: Values): T | undefined;
  /** Removes an object, and returns it. */
  remove(key: string): T | undefined;
  /** Has other entries from now on, in indices of their own. */
  become(entries: Map<string, Entry<T>>, index: StoreIndex<T>): void;
}

/** The content that takes the place of another. */
export interface NewContent<T> {
  readonly objects: ReadonlyMap<string, T>;
  readonly resourceVersion: string;
}

/** Up to so many differences, and half of what is stored, are put in one by one, in one step. */
const MOST_DIFFERENCES = 1_000;

/** An object to be stored, and its values in every index. */
interface Accepted<T> {
  readonly object: T;
  readonly values: Values;
}

/** The differences between a content and the new one. */
interface Differences<T> {
  /** Objects that are not stored, or not so. */
  readonly changed: readonly (readonly [key: string, object: T])[];
  /** Keys that the new content does not have. */
  readonly removed: string[];
}

/**
 * A replace in progress: prepared in steps, then done in one.
 *
 * Objects are put in one by one if the list differs little from the content; otherwise new content is made.
 * So a list of what is known needs next to no memory, and neither way takes long in one turn.
 *
 * Nothing is changed before `commit`. Prepared differences hold for the content that they were found in: if
 * it was written to since, new content is made, which holds whatever is written, as long as the indices are
 * the same.
 */
export class ContentReplacement<T> {
  readonly #content: StoreContent<T>;
  readonly #next: NewContent<T>;
  readonly #options: ReplaceOptions<T>;
  readonly #stepObjects: number;
  /**
   * Objects that could not be indexed, and what takes their place: one call of `onIndexFailure` each, however
   * often it is prepared.
   */
  readonly #unindexed = new Map<string, T | undefined>();
  #isAgain = false;
  /** Puts in what was prepared; `undefined` if it does not hold any more. */
  #apply: () => boolean = () => false;

  constructor(content: StoreContent<T>, next: NewContent<T>, options: ReplaceOptions<T> = {}) {
    this.#content = content;
    this.#next = next;
    this.#options = options;
    this.#stepObjects = options.stepObjects ?? STEP_OBJECTS;
  }

  /** Works out what is to be done, in steps; again where `commit` returned `false`. */
  *prepare(): Steps {
    const { writes } = this.#content;
    const differences = this.#isAgain ? undefined : yield* this.#differences();
    this.#isAgain = true;
    if (differences === undefined) return yield* this.#makeAll();
    const put = yield* this.#patch(differences);
    this.#apply = () => {
      if (this.#content.writes !== writes) return false;
      put();
      return true;
    };
  }

  /** Replaces the content; `false`, and nothing, where what was prepared does not hold any more. */
  commit(): boolean {
    if (!this.#apply()) return false;
    this.#content.resourceVersion = this.#next.resourceVersion;
    return true;
  }

  /** Replaces the content in this turn. */
  now(): void {
    do finish(this.prepare()); while (!this.commit());
  }

  /** The differences from the content; `undefined` if they are so many that new content is made. */
  *#differences(): Generator<undefined, Differences<T> | undefined, undefined> {
    const { entries } = this.#content;
    const { objects } = this.#next;
    const most = Math.min(MOST_DIFFERENCES, entries.size >> 1);
    const changed: [key: string, object: T][] = [];
    let present = 0;
    let step = 0;
    for (const [key, object] of objects) {
      const entry = entries.get(key);
      if (entry !== undefined) present++;
      if (entry === undefined || entry.object !== object) changed.push([key, object]);
      if (changed.length > most) return undefined;
      if (++step % this.#stepObjects === 0) yield;
    }
    const removed: string[] = [];
    if (entries.size - present > most) return undefined;
    if (present < entries.size) {
      for (const key of entries.keys()) {
        if (!objects.has(key)) removed.push(key);
        if (++step % this.#stepObjects === 0) yield;
      }
    }
    return { changed, removed };
  }

  /** Returns what puts a few differences into the content. */
  *#patch({ changed, removed }: Differences<T>): Generator<undefined, () => void, undefined> {
    const content = this.#content;
    const puts: [key: string, accepted: Accepted<T>][] = [];
    let step = 0;
    for (const [key, object] of changed) {
      const accepted = this.#accepted(key, object);
      if (accepted !== undefined) puts.push([key, accepted]);
      else removed.push(key);
      if (++step % this.#stepObjects === 0) yield;
    }
    return () => {
      for (const key of removed) content.remove(key);
      for (const [key, { object, values }] of puts) content.put(key, object, values);
    };
  }

  /** All of the content: again from the beginning if an index comes in between. */
  *#makeAll(): Steps {
    const content = this.#content;
    let { indexChanges } = content;
    const isOutdated = () => content.indexChanges !== indexChanges;
    do {
      ({ indexChanges } = content);
      const entries = new Map<string, Entry<T>>();
      const index = content.index.extendedCopy({});
      let step = 0;
      for (const [key, object] of this.#next.objects) {
        const accepted = this.#accepted(key, object);
        if (accepted !== undefined) {
          const entry = newEntry(key, accepted.object);
          entries.set(key, entry);
          index.insert(entry, accepted.values);
        }
        if (++step % this.#stepObjects === 0) yield;
        if (isOutdated()) break;
      }
      this.#apply = () => {
        if (isOutdated()) return false;
        content.become(entries, index);
        return true;
      };
    } while (isOutdated());
  }

  /**
   * The object to store: the given one, or its substitute where an index function throws; `undefined` for
   * none.
   */
  #accepted(key: string, object: T): Accepted<T> | undefined {
    const known = this.#known(key, object);
    if (known !== undefined) return known;
    if (this.#unindexed.has(key)) return this.#standIn(key, this.#unindexed.get(key));
    try {
      return { object, values: this.#content.index.valuesOf(key, object, "replace") };
    } catch (error) {
      const { onIndexFailure } = this.#options;
      if (onIndexFailure === undefined || !(error instanceof IndexFuncError)) throw error;
      const instead = onIndexFailure(error, object);
      this.#unindexed.set(key, instead);
      return this.#standIn(key, instead);
    }
  }

  #standIn(key: string, instead: T | undefined): Accepted<T> | undefined {
    if (instead === undefined) return undefined;
    return this.#known(key, instead) ??
      { object: instead, values: this.#content.index.valuesOf(key, instead, "replace") };
  }

  /** The object with its stored values, if it is stored: index functions are not asked again. */
  #known(key: string, object: T): Accepted<T> | undefined {
    const { entries, index } = this.#content;
    const stored = entries.get(key);
    return stored !== undefined && stored.object === object
      ? { object, values: index.valuesAt(stored) }
      : undefined;
  }
}

/**
 * Adds indices to what is stored, in steps. The last one makes them all there is; until then readers and
 * writers find the store as it was. Writes meanwhile are included; if all is replaced, the addition starts
 * again.
 *
 * It makes a second set of entries, as a `replace` does: for its time it costs the memory of the indices once
 * more.
 * @throws {IndexerConflictError} A name is taken; nothing was added.
 * @throws {IndexFuncError} An index function threw; nothing was added.
 */
export function* additionSteps<T>(
  content: StoreContent<T>,
  indexers: Indexers<T>,
  stepObjects: number = STEP_OBJECTS,
): Steps {
  const added = new StoreIndex(indexers);
  for (;;) {
    const before = content.entries;
    const { indexChanges } = content;
    const isOutdated = () => content.entries !== before || content.indexChanges !== indexChanges;
    const index = content.index.extendedCopy(indexers);
    const entries = new Map<string, Entry<T>>();
    const written = new Set<string>();
    const copy = (stored: Entry<T>) => {
      const { key, object } = stored;
      const values = content.index.valuesAt(stored).concat(added.valuesOf(key, object, "addIndexers"));
      const entry = entries.get(key);
      if (entry === undefined) {
        const first = newEntry(key, object);
        entries.set(key, first);
        index.insert(first, values);
      } else {
        entry.object = object;
        index.move(entry, values);
      }
    };
    content.journals.add(written);
    try {
      let step = 0;
      for (const stored of before.values()) {
        copy(stored);
        if (++step % stepObjects !== 0) continue;
        yield;
        if (isOutdated()) break;
      }
      while (!isOutdated()) {
        for (const key of written) {
          written.delete(key);
          const stored = before.get(key);
          const entry = entries.get(key);
          if (stored !== undefined) copy(stored);
          else if (entry !== undefined) {
            index.remove(entry);
            entries.delete(key);
          }
          if (++step % stepObjects === 0) break;
        }
        if (written.size === 0) return content.become(entries, index);
        yield;
      }
    } finally {
      content.journals.delete(written);
    }
  }
}
