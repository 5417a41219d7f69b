/**
 * What lists read of an event log: the content now, parts of it, and its states of the past.
 * @module
 */

import { compareResourceVersions } from "../../meta/resource_version.ts";
import type { CandidateQuery } from "../../store/candidates.ts";
import type { Held } from "../../store/holding.ts";
import type { Indexer } from "../../store/indexer.ts";
import type { Clock } from "../../util/clock.ts";
import type { ServedStore } from "../upstream/served_informer.ts";
import { firstAfter, isOnTheWay, type LogWindow } from "../watches/log_window.ts";
import { PastStates } from "./past_states.ts";
import { type IndexValue, OrderedContent, rolledBack, type Snapshot } from "./snapshot.ts";

/** A log, as its states see it. */
export interface StatedLog<T> {
  /** The resourceVersion that the content has reached. */
  readonly resourceVersion: string;
  /** Differs whenever the objects have changed. */
  readonly contentRevision: number;
  readonly window: LogWindow<T>;
  /** The oldest known state: its resourceVersion, and the first entry after it. */
  readonly oldestState: { readonly resourceVersion: string; readonly sequence: number };
}

/** Makes snapshots of the content of a log, now and before. */
export class LogStates<T> {
  readonly #log: StatedLog<T>;
  readonly #ordered: OrderedContent<T>;
  /** The content now, if it was read since the last change. */
  #now: { readonly contentRevision: number; readonly snapshot: Snapshot<T> } | undefined;

  /** Those of the past that were read lately. */
  readonly past: PastStates<T>;

  /** @param from The store has its objects in their held form. */
  constructor(
    log: StatedLog<T>,
    from: { readonly store: ServedStore<Held<T>>; readonly clock: Clock },
  ) {
    this.#log = log;
    this.#ordered = new OrderedContent(from.store);
    this.past = new PastStates(from.clock);
  }

  /** An object was added. */
  added(key: string): void {
    this.#ordered.added(key);
  }

  /** An object was deleted. */
  deleted(key: string): void {
    this.#ordered.deleted(key);
  }

  /** The content now, in key order. Taken once per change. */
  snapshot(): Snapshot<T> {
    const { resourceVersion, contentRevision } = this.#log;
    let snapshot = this.#now?.contentRevision === contentRevision ? this.#now.snapshot : undefined;
    if (snapshot?.resourceVersion === resourceVersion) return snapshot;
    snapshot = snapshot === undefined
      ? this.#ordered.snapshot(resourceVersion)
      : { ...snapshot, resourceVersion };
    this.#now = { contentRevision, snapshot };
    return snapshot;
  }

  /**
   * The same, or less: at least what a query matches. Costs only what an index of the store has under one of the query's
   * labels or fields, if there is one.
   */
  candidates(query: CandidateQuery | undefined): Snapshot<T> {
    const candidates = query && this.#ordered.candidates(this.#log.resourceVersion, query);
    return candidates ?? this.snapshot();
  }

  /** The content under a value of an index of the store, which must have it. */
  indexed(under: IndexValue): Snapshot<T> {
    return this.#ordered.indexed(this.#log.resourceVersion, under);
  }

  /** The store of the objects in their held form, if it has indices. */
  get indexer(): Indexer<Held<T>> | undefined {
    return this.#ordered.indexer();
  }

  /**
   * The content as it was at a resourceVersion that is not in the future, or `undefined` if that is not known any more.
   * Costs a walk over the entries since, and over all keys; the state is kept for a moment, so that a list
   * in pages costs it once.
   */
  stateAt(resourceVersion: string): Snapshot<T> | undefined {
    const { oldestState, window, resourceVersion: now } = this.#log;
    if (compareResourceVersions(resourceVersion, oldestState.resourceVersion) < 0) return undefined;
    if (compareResourceVersions(resourceVersion, now) > 0) return undefined;
    const oldestResourceVersion = oldestState.resourceVersion;
    if (!isOnTheWay(window, resourceVersion, { oldestResourceVersion, resourceVersion: now })) {
      return undefined;
    }
    const { tail, entries } = window;
    const first = firstAfter(window, resourceVersion, oldestState.sequence);
    const gapAfter = entries.at(first - tail)?.gapAfter;
    if (gapAfter !== undefined && compareResourceVersions(resourceVersion, gapAfter) > 0) return undefined;
    const known = this.past.get(first);
    if (known !== undefined) return { ...known, resourceVersion };
    const before = new Map<string, Held<T> | undefined>();
    for (let i = first - tail; i < entries.length; i++) {
      const entry = entries.at(i);
      if (entry === undefined || entry.type === "BOOKMARK" || before.has(entry.key)) continue;
      before.set(entry.key, entry.oldObject);
    }
    if (before.size === 0) return { ...this.snapshot(), resourceVersion };
    const snapshot = rolledBack({ ...this.snapshot(), resourceVersion }, before);
    this.past.keep(first, snapshot);
    return snapshot;
  }
}
