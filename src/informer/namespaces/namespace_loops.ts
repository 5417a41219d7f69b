/**
 * The loops of a source with a set of namespaces: one for each, all into one queue. Each is listed, watched
 * and tried again by itself. Their versions together are one merged resourceVersion (merged_version.ts):
 * objects keep the versions of their server, and a bookmark says where a batch of them leads. A namespace's
 * list replaces the objects of this namespace; when a namespace leaves the set, an empty list does.
 * @module
 */

import { encodeMergedVersion, newLayout } from "../../meta/merged_version.ts";
import type { NamespaceNames, VersionProof } from "../../meta/list_watch.ts";
import { isComparableResourceVersion, isOlder, resourceVersionOf } from "../../meta/object.ts";
import type { BookmarkInfo, ReflectorStore } from "../../queue/queue.ts";
import type { AtomicFIFO } from "../../queue/atomic_fifo.ts";
import { linkedAbort, onAbort } from "../../util/abort.ts";
import type { Moment } from "../../util/clock.ts";
import { Listeners } from "../../util/errors.ts";
import { defined } from "../../util/json.ts";
import { logsThrown } from "../../util/logger.ts";
import { Reflector } from "../../reflector/reflector.ts";
import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import { Quarantine } from "../../reflector/quarantine.ts";
import type { ReflectorOptions, ReflectorWiring } from "../../reflector/reflector_options.ts";
import type { FailedTry } from "../../reflector/failures.ts";
import type { ReflectorStatus } from "../../reflector/state.ts";

export type NamedOptions =
  & ReflectorOptions
  & Required<Pick<ReflectorOptions, "name" | "logger" | "shouldResync">>;

/** The queue that the loops fill, and the parts of the pipeline that they share besides the quarantine. */
interface Filled<T> {
  readonly queue: AtomicFIFO<T>;
  readonly wiring: ReflectorWiring;
}

/** The quarantine of the code that applies deltas, beside those of the loops. */
class QuarantineOfNamespaces extends Quarantine {
  /** The quarantines of the loops. */
  readonly loops: Set<Quarantine> = new Set();

  override release(key: string, through?: string): boolean {
    let isThere = super.release(key, through);
    for (const loop of this.loops) isThere = loop.release(key, through) || isThere;
    return isThere;
  }

  override explains(key: string, through: string | undefined): boolean {
    let isExplained = super.explains(key, through);
    for (const loop of this.loops) isExplained = loop.explains(key, through) || isExplained;
    return isExplained;
  }
}

/** A namespace: its loop, and the store that the loop writes to. */
interface Followed<T> {
  readonly loop: Reflector<T>;
  readonly store: NamespaceStore<T>;
  readonly signal: AbortSignal;
  readonly end: () => void;
}

/** One loop for each namespace of a set, which may change. */
export class NamespaceLoops<T> {
  readonly name: string;
  /** The quarantine of objects being applied; its losses are losses of every namespace. */
  readonly quarantine: QuarantineOfNamespaces;
  readonly #source: ListerWatcher<T>;
  readonly #namespaces: NamespaceNames;
  readonly #reflector: NamedOptions;
  readonly #listeners: Listeners<ReflectorStatus>;
  #filled: Filled<T> | undefined;
  #release = () => {};
  readonly #ended = new Set<Promise<void>>();
  #followed: ReadonlyMap<string, Followed<T>> = new Map();
  #layout = "";
  #signal: AbortSignal | undefined;
  #isSynced = false;
  /** The version that was queued last. */
  #told = "";
  #willTell = false;

  constructor(source: ListerWatcher<T>, namespaces: NamespaceNames, reflector: NamedOptions) {
    this.#source = source;
    this.#namespaces = namespaces;
    this.#reflector = reflector;
    const { name, logger } = reflector;
    this.name = name;
    this.#listeners = new Listeners(logsThrown({ logger, name }, "a status listener"));
    const quarantine = this.quarantine = new QuarantineOfNamespaces(reflector);
    quarantine.onLoss(() => quarantine.loops.forEach((loop) => loop.lost()));
  }

  /** Sets the queue to fill, before the loops run. */
  fill(queue: AtomicFIFO<T>, wiring: ReflectorWiring): this {
    this.#filled = { queue, wiring };
    this.#release = queue.holdPopulation();
    return this;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    if (signal.aborted) return this.#notify();
    const unlisten = this.#namespaces.onChange(() => this.#arrange(signal));
    try {
      this.#arrange(signal);
      await new Promise<void>((resolve) => onAbort(signal, resolve));
    } finally {
      unlisten();
      await Promise.all(this.#ended);
      this.#notify();
    }
  }

  /** The version that a namespace has in a merged version; `""` if it has none in this one. */
  partOf(namespace: string, parts: { readonly layout: string; readonly parts: readonly string[] }): string {
    if (!this.isLayout(parts.layout)) return "";
    const part = parts.parts[[...this.#followed.keys()].indexOf(namespace)] ?? "0";
    return part === "0" ? "" : part;
  }

  /** Whether a merged version is one of the present namespaces. */
  isLayout(layout: string): boolean {
    return layout === this.#layout;
  }

  /** The loop of a namespace, while it is in the set and the informer runs. */
  loopOf(namespace: string): Reflector<T> | undefined {
    return this.#followed.get(namespace)?.loop;
  }

  /** Whether a namespace has been listed. */
  hasListed(namespace: string): boolean {
    return this.#followed.get(namespace)?.store.hasListed === true;
  }

  lastSyncResourceVersion(): string {
    return this.#told;
  }

  /** Always false: each namespace has a position of its own, so no proof concerns all. */
  proven(_proof: VersionProof): boolean {
    return false;
  }

  /** Nothing: each namespace has a watch of its own. */
  overdue(_since: Moment): void {}

  confirmed(confirmation: { readonly isComplete: boolean }): void {
    for (const { loop } of this.#followed.values()) loop.confirmed(confirmation);
  }

  /** The failure of the first namespace that has one. */
  failure(): FailedTry | undefined {
    for (const { loop } of this.#followed.values()) {
      const failure = loop.failure();
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** The status of the first namespace that does not watch, with the statuses of all. */
  status(): ReflectorStatus {
    const all = [...this.#followed].map(([name, { loop }]) => [name, loop.status()] as const);
    const behind = all.find(([, { phase }]) => phase !== "watching") ?? all.at(0);
    const first = behind?.[1];
    const quarantined = all.reduce((sum, [, each]) => sum + each.quarantined, this.quarantine.count);
    const phase = first?.phase ?? "watching";
    return defined<ReflectorStatus>({
      attempt: 0,
      ...first,
      phase: this.#signal === undefined ? "idle" : this.#signal.aborted ? "stopped" : phase,
      resourceVersion: this.#told,
      quarantined,
      lagMs: this.lagMs(),
      namespaces: Object.fromEntries(all),
    });
  }

  lagMs(): number | undefined {
    const lags = [...this.#followed.values()].map(({ loop }) => loop.lagMs());
    return lags.includes(undefined) ? undefined : Math.max(0, ...lags as number[]);
  }

  consistentMs(): number | undefined {
    const moments = [...this.#followed.values()].map(({ loop }) => loop.consistentMs());
    return moments.includes(undefined) ? undefined : Math.min(Infinity, ...moments as number[]);
  }

  onStatus(listener: (status: ReflectorStatus) => void): () => void {
    return this.#listeners.add(listener);
  }

  /** Follows the namespaces that are in the set now, and no others. */
  #arrange(signal: AbortSignal): void {
    const { names } = this.#namespaces;
    const { queue } = this.#filled!;
    const before = this.#followed;
    this.#followed = new Map(names.map((name) => [name, before.get(name) ?? this.#follow(name, signal)]));
    this.#layout = newLayout(["namespaces", ...names]);
    for (const [name, { store, end }] of before) {
      if (this.#followed.has(name)) continue;
      store.isClosed = true;
      end();
      if (store.hasListed) queue.replaceNamespace([], this.#told = this.#merged(), { namespace: name });
    }
    if (this.#isSynced || [...before.values()].some(({ store }) => store.hasListed)) this.#tell();
    this.#listed();
    for (const [name, { loop, signal }] of this.#followed) {
      if (before.has(name)) continue;
      const ended = loop.run(signal).finally(() => this.#ended.delete(ended));
      this.#ended.add(ended);
    }
    this.#notify();
  }

  #follow(name: string, signal: AbortSignal): Followed<T> {
    const { queue, wiring } = this.#filled!;
    const { quarantine } = this;
    const reflector = this.#reflector;
    const own = new Quarantine({ ...reflector, name: `${this.name}: ${name}` });
    quarantine.loops.add(own);
    const link = linkedAbort(signal);
    const store = new NamespaceStore<T>(name, queue, {
      merged: () => this.#told = this.#merged(),
      moved: () => this.#moved(),
      listed: () => this.#listed(),
      quarantine: own,
    });
    const ofNamespace = this.#source.inNamespace!(name);
    const loop = new Reflector<T>(ofNamespace, store, {
      ...reflector,
      name: ofNamespace.description ?? `${this.name} in ${name}`,
      shouldResync: () => this.#firstWatching() === name && reflector.shouldResync(),
    }, { ...wiring, quarantine: own });
    loop.onStatus(() => {
      if (!store.isClosed) this.#notify();
    });
    const end = () => {
      link.abort(new Error(`the namespace ${name} was taken out of the set`));
      link.unlink();
      quarantine.loops.delete(own);
    };
    return { loop, store, signal: link.signal, end };
  }

  #firstWatching(): string | undefined {
    for (const [name, { loop }] of this.#followed) if (loop.status().phase === "watching") return name;
    return undefined;
  }

  /** The first lists are complete once every namespace that is present was listed. */
  #listed(): void {
    if (this.#isSynced || [...this.#followed.values()].some(({ store }) => !store.hasListed)) return;
    this.#isSynced = true;
    this.#release();
  }

  /** Changes of a namespace were queued: a bookmark with their version follows them, once for a batch. */
  #moved(): void {
    if (this.#willTell) return;
    this.#willTell = true;
    Promise.resolve().then(() => {
      this.#willTell = false;
      this.#tell();
    });
  }

  #tell(how?: Pick<BookmarkInfo, "byState">): void {
    this.#filled!.queue.bookmark(this.#told = this.#merged(), how);
  }

  #notify(): void {
    this.#listeners.call(this.status());
  }

  #merged(): string {
    const parts = [...this.#followed.values()].map(({ store }) => store.position);
    return encodeMergedVersion({ layout: this.#layout, parts: parts.length === 0 ? ["0"] : parts });
  }
}

interface NamespaceStoreOptions {
  /** The version of all, with the present one of this. */
  readonly merged: () => string;
  readonly moved: () => void;
  readonly listed: () => void;
  readonly quarantine: Quarantine;
}

/** The part of the queue that the loop of one namespace writes to. */
class NamespaceStore<T> implements ReflectorStore<T> {
  readonly #name: string;
  readonly #queue: AtomicFIFO<T>;
  readonly #options: NamespaceStoreOptions;
  /** The version up to which changes were queued; `"0"` before the first list. */
  position = "0";
  hasListed = false;
  /** Whether the namespace has left the set: its loop ends. */
  isClosed = false;

  constructor(name: string, queue: AtomicFIFO<T>, options: NamespaceStoreOptions) {
    this.#name = name;
    this.#queue = queue;
    this.#options = options;
  }

  add(object: T): void {
    if (this.#isNext(object)) this.#queue.add(object);
  }

  update(object: T): void {
    if (this.#isNext(object)) this.#queue.update(object);
  }

  delete(object: T): void {
    if (this.#isNext(object)) this.#queue.delete(object);
  }

  deleteKey(key: string, resourceVersion = ""): void {
    if (this.isClosed) return;
    this.#queue.deleteKey(key, resourceVersion); // the position moves by the bookmark that follows
  }

  replace(objects: readonly T[], resourceVersion: string): void {
    this.replaceKeeping(objects, resourceVersion, []);
  }

  replaceKeeping(objects: readonly T[], resourceVersion: string, keptKeys: readonly string[]): void {
    if (this.isClosed) return;
    if (isComparableResourceVersion(resourceVersion)) this.position = resourceVersion;
    this.hasListed = true;
    this.#queue.replaceNamespace(objects, this.#options.merged(), { namespace: this.#name, keptKeys });
    this.#options.listed();
  }

  resync(): void {
    if (!this.isClosed) this.#queue.resync();
  }

  bookmark(resourceVersion: string, how?: Pick<BookmarkInfo, "byState">): void {
    if (this.isClosed) return;
    if (!isOlder(resourceVersion, this.position) && isComparableResourceVersion(resourceVersion)) {
      this.position = resourceVersion;
    }
    this.#queue.bookmark(this.#options.merged(), how);
  }

  /**
   * Whether an event continues the history. One under an older version may have been sent again by a proxy: a
   * list decides, as nothing behind the queue knows the order of one namespace.
   */
  #isNext(object: T): boolean {
    if (this.isClosed) return false;
    const version = resourceVersionOf(object) ?? "";
    if (isOlder(version, this.position)) {
      this.#options.quarantine.lost();
      return false;
    }
    this.#moveTo(version);
    return true;
  }

  #moveTo(version: string): void {
    if (isComparableResourceVersion(version)) this.position = version;
    this.#options.moved();
  }
}
