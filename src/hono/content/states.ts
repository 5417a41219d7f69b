/**
 * The states of the content of an event log: the present one, parts of it, those of the past, and
 * versions, which show whether two of them are the same.
 * @module
 */

import type { FieldRequirement } from "../../meta/fields.ts";
import { compareResourceVersions, type KubernetesObject } from "../../meta/object.ts";
import { candidateKeysOf, type CandidateQuery } from "../../store/candidates.ts";
import type { Held } from "../../store/holding.ts";
import type { Indexer } from "../../store/store.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { firstIndex } from "../../util/collections.ts";
import { type Blocks, blocksOf, readerOf, withChanges } from "./blocks.ts";
import type { ServedStore } from "./served_informer.ts";
import type { EventLog } from "./event_log.ts";
import type { KeyFollower } from "./log_history.ts";

export interface IndexValue {
  readonly index: string;
  readonly value: string;
}

/** Objects in the order of their keys, as they are at one resourceVersion. Never changes. */
export interface Snapshot<T> {
  readonly resourceVersion: string;
  readonly length: number;
  /** The key at an index; they ascend, byte by byte. */
  readonly key: (index: number) => string;
  readonly object: (index: number) => Held<T>;
  /** The requirement of a query that all objects fulfil, if it was answered by an index. */
  readonly answers?: FieldRequirement | undefined;
}

/** The index of the first key from a bound on. */
export function firstFrom({ length, key }: Pick<Snapshot<unknown>, "length" | "key">, bound: string): number {
  return firstIndex(length, (index) => key(index) >= bound);
}

/** The content at one time. */
interface KeptState<T> {
  readonly revision: number;
  /** The first entry after it. */
  readonly sequence: number;
  readonly snapshot: Snapshot<T>;
  readonly blocks: Blocks<Held<T>>;
}

/**
 * Makes snapshots of the content of a log, now and before. Objects are in blocks in the order of their keys,
 * which snapshots share: a change costs a note, the next snapshot a copy of the blocks that have changed.
 */
export class ContentStates<T extends KubernetesObject> implements KeyFollower {
  readonly #log: EventLog<T>;
  readonly #store: ServedStore<Held<T>>;
  readonly #clock: Clock;
  /** The objects, but for what has changed since. */
  #blocks: Blocks<Held<T>> | undefined;
  /** The content when it was read last, and before that: pages continue at the state of the first one. */
  #kept: readonly KeptState<T>[] = [];

  constructor(log: EventLog<T>, store: ServedStore<Held<T>>, clock: Clock) {
    this.#log = log;
    this.#store = store;
    this.#clock = clock;
    log.followKeys(this);
  }

  noted(): void {
    if (this.#blocks === undefined) return this.#log.changedKeys.clear();
    this.#present();
    this.#keep(this.#kept[0]);
  }

  restarted(): void {
    this.#kept = [];
  }

  /** The content now, in key order. Taken once per change. */
  snapshot(): Snapshot<T> {
    const { resourceVersion, revision, tail, entries } = this.#log.window;
    const [last] = this.#kept;
    const same = last?.revision === revision ? last : undefined;
    if (same?.snapshot.resourceVersion === resourceVersion) return same.snapshot;
    const blocks = same?.blocks ?? this.#present();
    const snapshot = same === undefined
      ? snapshotOf(blocks, resourceVersion)
      : { ...same.snapshot, resourceVersion };
    this.#keep({ revision, sequence: tail + entries.length, snapshot, blocks });
    return snapshot;
  }

  /**
   * The same, or less: at least what a query matches. Costs only what an index of the store has under one of
   * the query's labels or fields, if there is one.
   */
  candidates(query: CandidateQuery | undefined): Snapshot<T> {
    const indexer = query && this.indexer;
    const found = indexer && candidateKeysOf(indexer, query);
    if (found === undefined) return this.snapshot();
    return this.#snapshotOf(found.keys, this.#log.window.resourceVersion, found.answers);
  }

  /** The content under a value of an index of the store, which must have it. Costs the size of that part. */
  indexed({ index, value }: IndexValue): Snapshot<T> {
    return this.#snapshotOf(this.indexer?.indexKeys(index, value) ?? [], this.#log.window.resourceVersion);
  }

  /** The store of the objects in their held form, if it has indices. */
  get indexer(): Indexer<Held<T>> | undefined {
    const store = this.#store as ServedStore<Held<T>> & Partial<Indexer<Held<T>>>;
    const isIndexed = store.indexKeys !== undefined && store.countByIndex !== undefined &&
      store.indexValueCounts !== undefined && store.getIndexers !== undefined;
    return isIndexed ? store as Indexer<Held<T>> : undefined;
  }

  /**
   * The content as it was at a resourceVersion that is not in the future, or `undefined` if that is not known
   * any more: an API server compacts its history after five minutes. Costs a walk over the entries that have
   * come since, up to the next snapshot of the content that is kept, which states of the past share.
   */
  stateAt(resourceVersion: string): Snapshot<T> | undefined {
    const first = this.#firstAfter(resourceVersion);
    if (first === undefined) return undefined;
    if (this.#kept.length === 0 || this.#kept[0].sequence < first) this.snapshot();
    const { snapshot, blocks, sequence } = this.#kept.findLast((state) => state.sequence >= first) ??
      this.#kept[0];
    const before = this.#changedIn(first, sequence);
    if (before.size === 0) return { ...snapshot, resourceVersion };
    return snapshotOf(withChanges(blocks, before.keys(), (key) => before.get(key)), resourceVersion);
  }

  /**
   * What differed from the present content at a resourceVersion: the objects of those keys as they were,
   * `undefined` for none. `undefined` where that is not known any more.
   */
  differencesAt(resourceVersion: string): ReadonlyMap<string, Held<T> | undefined> | undefined {
    const first = this.#firstAfter(resourceVersion);
    return first === undefined ? undefined : this.#changedIn(first, this.#log.head);
  }

  /** The first entry after a state of the past; `undefined` if that is not known any more. */
  #firstAfter(resourceVersion: string): number | undefined {
    const { oldestState } = this.#log;
    const { resourceVersion: now, tail, entries } = this.#log.window;
    if (compareResourceVersions(resourceVersion, oldestState.resourceVersion) < 0) return undefined;
    if (compareResourceVersions(resourceVersion, now) > 0) return undefined;
    if (!this.#log.isOnTheWay(resourceVersion, oldestState.resourceVersion)) return undefined;
    if (this.#log.mayLackEvents(resourceVersion)) return undefined;
    const first = this.#log.firstAfter(resourceVersion, oldestState.sequence);
    const next = entries.at(first - tail);
    if (next !== undefined && monotonicNow(this.#clock) - next.atMs >= PAST_MS) return undefined;
    const gapAfter = next?.gapAfter;
    if (gapAfter !== undefined && compareResourceVersions(resourceVersion, gapAfter) > 0) return undefined;
    return first;
  }

  /** The objects that changed in some entries, as they were before them. */
  #changedIn(first: number, end: number): Map<string, Held<T> | undefined> {
    const { tail, entries } = this.#log.window;
    const before = new Map<string, Held<T> | undefined>();
    for (let i = first; i < end; i++) {
      const entry = entries.at(i - tail);
      if (entry === undefined || entry.type === "BOOKMARK" || before.has(entry.key)) continue;
      before.set(entry.key, entry.oldObject);
    }
    return before;
  }

  /** About how many units of a `Pacer` a state at a resourceVersion takes. */
  unitsOf(resourceVersion: string): number {
    return ENTRY_UNITS * (this.#log.head - this.#log.firstAfter(resourceVersion));
  }

  #snapshotOf(keys: readonly string[], resourceVersion: string, answers?: FieldRequirement): Snapshot<T> {
    const objects: Held<T>[] = [];
    // Snapshots share the keys while these are the same.
    let present: string[] | undefined;
    for (const [i, key] of keys.entries()) {
      const object = this.#store.getByKey(key);
      if (object === undefined) {
        present ??= keys.slice(0, i);
        continue;
      }
      present?.push(key);
      objects.push(object);
    }
    const all = present ?? keys;
    return {
      resourceVersion,
      length: all.length,
      key: (index) => all[index],
      object: (index) => objects[index],
      answers,
    };
  }

  /** The objects now. */
  #present(): Blocks<Held<T>> {
    const { changedKeys } = this.#log;
    const valueOf = (key: string) => this.#store.getByKey(key);
    if (this.#blocks === undefined) this.#blocks = blocksOf(this.#store.listKeys().sort(), valueOf);
    else if (changedKeys.size > 0) this.#blocks = withChanges(this.#blocks, changedKeys, valueOf);
    changedKeys.clear();
    return this.#blocks;
  }

  /** Keeps a state as the latest one, and those before it that states may still be rolled back from. */
  #keep(latest: KeptState<T> | undefined): void {
    if (latest === undefined) return;
    const { sequence } = latest;
    const others = this.#kept.filter((state) =>
      state.sequence < sequence && state.sequence >= this.#log.window.tail
    );
    this.#kept = [latest, ...others.slice(0, KEPT_STATES - 1)];
  }
}

// Each keeps the objects that have changed since.
const KEPT_STATES = 8;
// As kube-apiserver's --etcd-compaction-interval:
// https://kubernetes.io/docs/reference/command-line-tools-reference/kube-apiserver/
const PAST_MS = 300_000;
// To note an entry, to sort its key and to find its place.
const ENTRY_UNITS = 50;

function snapshotOf<T>(blocks: Blocks<Held<T>>, resourceVersion: string): Snapshot<T> {
  const { key, value: object } = readerOf(blocks);
  return { resourceVersion, length: blocks.length, key, object };
}

/** The version of the content of a namespace. */
export interface ContentVersion {
  /** The entry of the log behind its last change: lists with the same have the same objects. */
  readonly changes: number;
  /** How often the content has changed in a way that resourceVersions do not show. */
  readonly rewrites: number;
  /** A watch may start here, and from any later list of the same version; it misses nothing. */
  readonly since: string;
}

/** When a namespace changed last. */
interface LastChange {
  readonly changes: number;
  since: string;
}

/**
 * Finds the version of each namespace, and of all. It reads the entries of the log when a version is
 * requested, so that a change costs nothing while there are no lists. Where entries were dropped unread, all
 * have changed.
 */
export class ContentVersions {
  readonly #log: Pick<EventLog<KubernetesObject>, "window" | "head" | "resume">;
  /** Those that have changed lately; the last one comes last. */
  readonly #namespaces = new Map<string, LastChange>();
  /** All the others. */
  #others: LastChange = { changes: 0, since: "" };
  /** The next entry to read. */
  #next = -1;
  #rewrites = 0;

  constructor(log: Pick<EventLog<KubernetesObject>, "window" | "head" | "resume">) {
    this.#log = log;
  }

  /** The version of the objects of a namespace; of all objects where it is empty. */
  versionOf(namespace: string): ContentVersion {
    this.#catchUp();
    const last = this.#namespaces.get(namespace) ?? this.#others;
    // Otherwise readers of this version, whose watches are refused, would receive 304 again and again.
    if (this.#log.resume(last.since) === undefined) last.since = this.#log.window.resourceVersion;
    return { ...last, rewrites: this.#rewrites };
  }

  #catchUp(): void {
    const { head, window: { tail, entries, rewrites, resourceVersion } } = this.#log;
    if (this.#next < tail || this.#rewrites !== rewrites) {
      this.#namespaces.clear();
      this.#others = { changes: head, since: resourceVersion };
      this.#next = head;
      this.#rewrites = rewrites;
    }
    for (; this.#next < head; this.#next++) {
      const { type, key, position } = entries.at(this.#next - tail)!;
      if (type === "BOOKMARK") continue;
      const slash = key.indexOf("/");
      for (const namespace of slash < 0 ? [""] : ["", key.slice(0, slash)]) {
        this.#namespaces.delete(namespace);
        this.#namespaces.set(namespace, { changes: this.#next + 1, since: position });
      }
    }
    for (const [namespace, last] of this.#namespaces) {
      if (this.#namespaces.size <= MOST_NAMESPACES) return;
      this.#namespaces.delete(namespace);
      this.#others = last;
    }
  }
}

// Those of namespaces that were deleted long ago are among them.
const MOST_NAMESPACES = 4_096;
