/**
 * What lists read of an event log: the content now, parts of it, and its states of the past.
 * @module
 */

import { compareResourceVersions } from "../../meta/resource_version.ts";
import type { CandidateQuery } from "../../store/candidates.ts";
import type { Held } from "../../store/holding.ts";
import type { Indexer } from "../../store/indexer.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import type { ServedStore } from "../upstream/served_informer.ts";
import { firstAfter, isOnTheWay, type LogWindow } from "../watches/log_window.ts";
import { type IndexValue, OrderedContent, rolledBack, type Snapshot } from "./snapshot.ts";

/** A log, as its states see it. */
export interface StatedLog<T> {
  /** The resourceVersion that the content has reached. */
  readonly resourceVersion: string;
  /** Differs whenever the objects have changed. */
  readonly contentRevision: number;
  readonly window: LogWindow<T>;
  /** The sequence number of the next entry. */
  readonly head: number;
  /** The oldest known state: its resourceVersion, and the first entry after it. */
  readonly oldestState: { readonly resourceVersion: string; readonly sequence: number };
}

/** Makes snapshots of the content of a log, now and before. */
export class LogStates<T> {
  readonly #log: StatedLog<T>;
  readonly #ordered: OrderedContent<T>;
  readonly #clock: Clock;
  /** The content when it was read last, and the first entry after that. */
  #last:
    | { readonly contentRevision: number; readonly sequence: number; readonly snapshot: Snapshot<T> }
    | undefined;

  /** @param from The store has its objects in their held form. */
  constructor(
    log: StatedLog<T>,
    from: { readonly store: ServedStore<Held<T>>; readonly clock: Clock },
  ) {
    this.#log = log;
    this.#ordered = new OrderedContent(from.store);
    this.#clock = from.clock;
  }

  /** An object was added. */
  added(key: string): void {
    this.#ordered.added(key);
  }

  /** An object was deleted. */
  deleted(key: string): void {
    this.#ordered.deleted(key);
  }

  /** A new history begins, in which versions have other states. */
  restarted(): void {
    this.#last = undefined;
  }

  /** The content now, in key order. Taken once per change. */
  snapshot(): Snapshot<T> {
    const { resourceVersion, contentRevision, head } = this.#log;
    let snapshot = this.#last?.contentRevision === contentRevision ? this.#last.snapshot : undefined;
    if (snapshot?.resourceVersion === resourceVersion) return snapshot;
    snapshot = snapshot === undefined
      ? this.#ordered.snapshot(resourceVersion)
      : { ...snapshot, resourceVersion };
    this.#last = { contentRevision, sequence: head, snapshot };
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
   * The content as it was at a resourceVersion that is not in the future, or `undefined` if that is not known any more: an
   * API server compacts its history after five minutes. Costs a walk over the entries that have come since, up to the last
   * snapshot of the content, which all states of the past share.
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
    const next = entries.at(first - tail);
    if (next !== undefined && monotonicNow(this.#clock) - next.atMs >= PAST_MS) return undefined;
    const gapAfter = next?.gapAfter;
    if (gapAfter !== undefined && compareResourceVersions(resourceVersion, gapAfter) > 0) return undefined;
    if (this.#last === undefined || this.#last.sequence < first) this.snapshot();
    const { snapshot, sequence } = this.#last!;
    const before = new Map<string, Held<T> | undefined>();
    for (let i = first; i < sequence; i++) {
      const entry = entries.at(i - tail);
      if (entry === undefined || entry.type === "BOOKMARK" || before.has(entry.key)) continue;
      before.set(entry.key, entry.oldObject);
    }
    return before.size === 0
      ? { ...snapshot, resourceVersion }
      : rolledBack(snapshot, resourceVersion, before);
  }

  /** About how many units of a {@linkcode Pacer} a state at a resourceVersion takes. */
  unitsOf(resourceVersion: string): number {
    const { window, head } = this.#log;
    return ENTRY_UNITS * (head - firstAfter(window, resourceVersion, window.tail));
  }
}

// As kube-apiserver's --etcd-compaction-interval:
// https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/
const PAST_MS = 300_000;
// To note an entry, to sort its key and to find its place.
const ENTRY_UNITS = 50;
